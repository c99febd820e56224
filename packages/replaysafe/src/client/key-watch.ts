import { createHash } from 'node:crypto';

export type KeyMisuse = 'two-keys-for-one-object' | 'two-requests-with-one-key';

interface Keyed {
  readonly method: string;
  readonly path: string;
  readonly body: string | Uint8Array | null;
  readonly key: string | undefined;
}

/**
 * Notices keys that are made inside of what is repeated, and keys that are used for two things. For development: it hashes every
 * keyed request. Remembers the last `most` keys, and of objects only those that still exist.
 */
export class KeyWatch {
  readonly #most: number;
  readonly #keyOfObject = new WeakMap<object, string>();
  readonly #requestOfKey = new Map<string, string>();

  constructor(most = 1_000) {
    this.#most = most;
  }

  get remembered(): number {
    return this.#requestOfKey.size;
  }

  /** @param subject what the caller passed as `json` or `body` */
  see(call: Keyed, subject: unknown): KeyMisuse | undefined {
    const { key } = call;
    if (key === undefined) return undefined;
    const request = fingerprint(call);
    const before = this.#requestOfKey.get(key);
    this.#requestOfKey.delete(key);
    this.#requestOfKey.set(key, request);
    for (const oldest of this.#requestOfKey.keys()) {
      if (this.#requestOfKey.size <= this.#most) break;
      this.#requestOfKey.delete(oldest);
    }
    if (before !== undefined && before !== request) return 'two-requests-with-one-key';
    if (typeof subject !== 'object' || subject === null) return undefined;
    const other = this.#keyOfObject.get(subject);
    this.#keyOfObject.set(subject, key);
    return other === undefined || other === key ? undefined : 'two-keys-for-one-object';
  }
}

function fingerprint({ method, path, body }: Keyed): string {
  const hash = createHash('sha256').update(`${method} ${path}\n`);
  return (body === null ? hash : hash.update(body)).digest('base64');
}
