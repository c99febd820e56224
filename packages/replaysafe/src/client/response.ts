/** An answer, read to its end. */
export interface HttpResponse {
  readonly status: number;
  /** Lower-case names; a repeated header is joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Whether the other side says that it answered from its store (`Idempotent-Replayed: true`). */
  readonly replayed: boolean;
  /** How many tries it took. */
  readonly tries: number;
  text(): string;
  /** @throws SyntaxError when the body is not JSON */
  json<T = unknown>(): T;
}

export function httpResponse(
  status: number,
  rawHeaders: Readonly<Record<string, string | string[] | undefined>>,
  body: Uint8Array,
  tries: number,
): HttpResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(rawHeaders)) {
    if (value !== undefined) headers[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
  }
  const text = (): string => Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  return {
    status,
    headers,
    body,
    tries,
    replayed: headers['idempotent-replayed'] === 'true',
    text,
    json: <T>() => JSON.parse(text()) as T,
  };
}
