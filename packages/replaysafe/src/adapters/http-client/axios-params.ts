type Pair = readonly [string, string];

/** The query string that axios would make of `params`: `a[]=1&a[]=2`, `a[b]=1`, dates in ISO form; nothing of null. */
export function queryOf(params: unknown, serializer: unknown): string {
  if (params === undefined || params === null) return '';
  const own = serializerOf(serializer);
  if (own !== undefined) return own(params);
  if (params instanceof URLSearchParams) return params.toString();
  return pairs(params, '')
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join('&');
}

function serializerOf(given: unknown): ((params: unknown) => string) | undefined {
  const candidate = typeof given === 'object' && given !== null && 'serialize' in given ? given.serialize : given;
  return typeof candidate === 'function' ? (candidate as (params: unknown) => string) : undefined;
}

function pairs(value: unknown, name: string): Pair[] {
  if (value === undefined || value === null) return [];
  if (value instanceof Date) return [[name, value.toISOString()]];
  if (Array.isArray(value)) return value.flatMap((item) => pairs(item, `${name}[]`));
  if (typeof value === 'object') {
    return Object.entries(value).flatMap(([key, inner]) => pairs(inner, name === '' ? key : `${name}[${key}]`));
  }
  return [[name, `${value as string | number | bigint | boolean}`]];
}
