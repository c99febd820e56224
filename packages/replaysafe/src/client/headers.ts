const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** What is wrong with the first header that cannot be sent, or nothing. Values are not shown: they may be secrets. */
export function invalidHeader(headers: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof headers !== 'object') return 'has headers that are no object';
  for (const [name, value] of Object.entries(headers)) {
    if (!NAME.test(name)) return `has a header whose name cannot be sent: ${JSON.stringify(name)}`;
    if (typeof value !== 'string' || !VALUE.test(value)) return `has a value that cannot be sent in header ${name}`;
  }
  return undefined;
}

export function lowerCased(headers: Readonly<Record<string, string>>): Map<string, string> {
  return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
