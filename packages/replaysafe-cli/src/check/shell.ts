const SHELL = /^(?:\/(?:usr\/)?(?:local\/)?bin\/)?(?:sh|bash|ash|dash|ksh|zsh)$/;
const ENV = /^(?:\/usr)?\/bin\/env$/;
/** Commands that are over at once. */
const INSTANT = new Set(
  [
    '',
    ':',
    'true',
    'echo',
    'printf',
    'touch',
    'rm',
    'kill',
    'killall',
    'pkill',
    'date',
    'exit',
    'set',
    'export',
    'trap',
  ].concat(['sync', 'mkdir', 'cd', 'test', '[']),
);

/** The script of `sh -c "…"`, also behind `/usr/bin/env` and with flags such as `-ec`; `undefined` for any other command. */
export function shellScript(command: readonly string[]): string | undefined {
  const [first = '', ...rest] = ENV.test(command[0] ?? '') ? command.slice(1) : command;
  if (!SHELL.test(first)) return undefined;
  for (let index = 0; index < rest.length; index += 1) {
    const word = rest[index] ?? '';
    if (/^-[a-zA-Z]*c$/.test(word)) return rest[index + 1];
    // `-o pipefail` has a word of its own.
    if (word === '-o') index += 1;
    else if (!word.startsWith('-')) return undefined;
  }
  return undefined;
}

/** Simple commands of a script, in order; comments are left out. */
export function simpleCommands(script: string): string[] {
  return script
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, ''))
    .join('\n')
    .split(/&&|\|\||[;\n]|(?<!&)&(?!&)/)
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

export interface CommandTime {
  /** Seconds of all `sleep`s that can be read. */
  readonly seconds: number;
  /** Whether something in it takes a time that the text does not tell. */
  readonly isOpen: boolean;
}

/** How long a command takes, as far as its text tells. `variables` are the container's plain environment variables. */
export function commandTime(command: readonly string[], variables: ReadonlyMap<string, string>): CommandTime {
  const script = shellScript(command);
  const parts = script === undefined ? [command.join(' ')] : simpleCommands(script);
  const times = parts.map((part) => partTime(part, variables));
  return {
    seconds: times.reduce((sum, { seconds }) => sum + seconds, 0),
    isOpen: times.some(({ isOpen }) => isOpen),
  };
}

function partTime(part: string, variables: ReadonlyMap<string, string>): CommandTime {
  const words = part.split(/\s+/).map((word) => expanded(unquoted(word), variables));
  const command = words[0] === 'exec' ? words.slice(1) : words;
  const name = (command[0] ?? '').replace(/^.*\//, '');
  if (name === 'busybox') return partTime(command.slice(1).join(' '), variables);
  if (name === 'sleep') {
    const seconds = command.slice(1).map(sleepSeconds);
    const isOpen = seconds.length === 0 || seconds.includes(undefined);
    return { seconds: seconds.reduce<number>((sum, each) => sum + (each ?? 0), 0), isOpen };
  }
  if (name === 'nginx' && part.includes('-s')) return { seconds: 0, isOpen: false };
  return { seconds: 0, isOpen: !INSTANT.has(name) };
}

/** GNU sleep takes a unit; several arguments add up. */
function sleepSeconds(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(text);
  if (match === null) return undefined;
  return Number(match[1]) * { s: 1, m: 60, h: 3_600, d: 86_400, '': 1 }[match[2] as 's' | 'm' | 'h' | 'd' | ''];
}

function expanded(word: string, variables: ReadonlyMap<string, string>): string {
  const variable = /\$(?:\{(?<braced>\w+)(?::?-(?<fallback>[^}]*))?\}|\((?<bracketed>\w+)\)|(?<bare>\w+))/g;
  return [...word.matchAll(variable)].reduce((text, { 0: whole, groups = {} }) => {
    const name = groups['braced'] ?? groups['bracketed'] ?? groups['bare'] ?? '';
    return text.replace(whole, () => variables.get(name) ?? groups['fallback'] ?? whole);
  }, word);
}

function unquoted(word: string): string {
  return word.replace(/^(['"])(.*)\1$/, '$2');
}
