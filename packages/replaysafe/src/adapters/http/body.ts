import type { Readable } from 'node:stream';

export const TOO_LARGE = Symbol('too large');

/**
 * Reads a request's body to its end. What lies beyond the limit is read and dropped, so that the client, which sends before it
 * listens, hears the refusal.
 *
 * @param limit bytes
 * @returns rejects when the client goes away in the middle: a request that did not arrive is never executed
 */
export function readBody(stream: Readable, limit: number): Promise<Uint8Array | typeof TOO_LARGE> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer | string): void => {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      size += bytes.byteLength;
      if (size <= limit) {
        chunks.push(bytes);
        return;
      }
      done();
      stream.on('error', () => undefined);
      stream.resume();
      resolve(TOO_LARGE);
    };
    const onEnd = (): void => {
      done();
      const [first] = chunks;
      resolve(chunks.length === 1 && first ? first : Buffer.concat(chunks, size));
    };
    const onError = (error: Error): void => {
      done();
      reject(error);
    };
    const onClose = (): void => {
      done();
      reject(new Error('the client went away before its request had arrived'));
    };
    const done = (): void => {
      stream.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
    };
    stream.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
    if (stream.destroyed && !stream.readableEnded) onClose();
  });
}
