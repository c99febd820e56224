/** Deeper than this, the text is taken as it is: recursion must not be steered by a client. */
const DEEPEST = 200;

class NotCanonical extends Error {}
const refuse = (): never => {
  throw new NotCanonical();
};

/**
 * The canonical form of a JSON text (RFC 8785), or nothing where going through it would lose something that a handler could
 * have seen: a name that occurs twice, a number that no double holds exactly as written (9007199254740993, 1e400, -0), a lone
 * surrogate. Texts that are not JSON have no form either.
 */
export function canonicalJson(text: string): string | undefined {
  try {
    const scanner = new Scanner(text);
    const canonical = scanner.value(0);
    scanner.end();
    return canonical;
  } catch (error) {
    if (error instanceof NotCanonical) return undefined;
    throw error;
  }
}

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): string {
    if (depth > DEEPEST) refuse();
    this.#space();
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(depth);
      case '[':
        return this.#array(depth);
      case '"':
        return JSON.stringify(this.#string());
      case 't':
        return this.#word('true');
      case 'f':
        return this.#word('false');
      case 'n':
        return this.#word('null');
      default:
        return this.#number();
    }
  }

  end(): void {
    this.#space();
    if (this.#at !== this.#text.length) refuse();
  }

  #object(depth: number): string {
    const members = new Map<string, string>();
    this.#list('}', () => {
      this.#space();
      const name = this.#string();
      this.#space();
      this.#expect(':');
      if (members.has(name)) refuse();
      members.set(name, this.value(depth + 1));
    });
    // Names are ordered by UTF-16 code units, which is how strings compare here.
    const names = [...members.keys()].sort();
    return `{${names.map((name) => `${JSON.stringify(name)}:${String(members.get(name))}`).join(',')}}`;
  }

  #array(depth: number): string {
    const items: string[] = [];
    this.#list(']', () => {
      items.push(this.value(depth + 1));
    });
    return `[${items.join(',')}]`;
  }

  #list(close: string, item: () => void): void {
    this.#at++;
    this.#space();
    if (this.#text[this.#at] === close) {
      this.#at++;
      return;
    }
    for (;;) {
      item();
      this.#space();
      const next = this.#text[this.#at++];
      if (next === close) return;
      if (next !== ',') refuse();
    }
  }

  #string(): string {
    const start = this.#at;
    this.#expect('"');
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      // NaN (the end of the text) and control characters.
      if (!(code >= 0x20)) refuse();
      this.#at++;
      if (code === 0x22) break;
      if (code === 0x5c) this.#at++;
    }
    let value: string;
    try {
      value = JSON.parse(this.#text.slice(start, this.#at)) as string;
    } catch {
      return refuse();
    }
    // With the u flag only a surrogate without its partner is one.
    if (/\p{Surrogate}/u.test(value)) refuse();
    return value;
  }

  #number(): string {
    const pattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
    pattern.lastIndex = this.#at;
    const token = pattern.exec(this.#text)?.[0];
    if (token === undefined) return refuse();
    this.#at += token.length;
    const value = Number(token);
    if (!Number.isFinite(value) || Object.is(value, -0)) refuse();
    const canonical = String(value);
    if (exactDecimal(token) !== exactDecimal(canonical)) refuse();
    return canonical;
  }

  #word(word: string): string {
    if (!this.#text.startsWith(word, this.#at)) refuse();
    this.#at += word.length;
    return word;
  }

  #expect(character: string): void {
    if (this.#text[this.#at++] !== character) refuse();
  }

  #space(): void {
    while (' \t\n\r'.includes(this.#text[this.#at] ?? 'end')) this.#at++;
  }
}

/** A decimal number as its significant digits and the power of ten behind them, so that 1.50, 15e-1 and 1.5 are one. */
function exactDecimal(token: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return '0';
  // Not by /0+$/: over a long run of inner zeros that is quadratic, and a client chooses the digits.
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  const significant = digits.slice(0, end);
  const power = Number(exponent) - fraction.length + (digits.length - significant.length);
  return `${sign}${significant}e${power}`;
}
