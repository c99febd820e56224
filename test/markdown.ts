/** The fenced blocks of one language, without their fences. */
export function codeBlocks(markdown: string, language: string): string[] {
  return [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , code]) => code!);
}

/** The rows of every table, header and rule left out, cells trimmed. */
export function tableRows(markdown: string): string[][] {
  return markdown
    .split('\n')
    .filter((line, index, lines) => line.startsWith('|') && !isRule(line) && !isRule(lines[index + 1] ?? ''))
    .map((line) =>
      line
        .slice(1, line.trimEnd().lastIndexOf('|'))
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
}

function isRule(line: string): boolean {
  return /^\|[\s:|-]+\|$/.test(line.trim());
}

/** The targets of all links that do not leave the repository, without their fragments. */
export function localLinks(markdown: string): string[] {
  return [...markdown.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target!)
    .filter((target) => !/^(https?:|mailto:|#)/.test(target))
    .map((target) => target.replace(/#.*$/, ''));
}
