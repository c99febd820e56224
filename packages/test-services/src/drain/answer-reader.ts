/** An answer of HTTP/1.1 that has arrived completely. */
export interface Answer {
  readonly status: number;
  /** It says `Connection: close`. */
  readonly close: boolean;
  readonly bodyBytes: number;
}

interface Head {
  readonly status: number;
  readonly close: boolean;
  readonly length: number | 'chunked' | 'until-end';
}

const HEAD_END = '\r\n\r\n';

/** Reads answers from bytes as they come. Of bodies only the length is kept: they may be large. */
export class AnswerReader {
  #buffer: Buffer = Buffer.alloc(0);
  #head: Head | undefined;
  #bodyBytes = 0;
  /** Of the chunk that is being read; undefined before its size is known. */
  #chunkLeft: number | undefined;

  push(data: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? data : Buffer.concat([this.#buffer, data]);
    // At once, or a large body would be copied with each of its pieces.
    if (this.#readHead() && this.#head?.length !== 'chunked') this.#readBody();
  }

  /** Whether an answer has begun to arrive and is not complete. */
  get begun(): boolean {
    return this.#head !== undefined;
  }

  /** What has not been read as part of an answer. */
  pending(): Buffer {
    return this.#buffer;
  }

  next(): Answer | undefined {
    if (!this.#readHead() || !this.#head) return undefined;
    const { length } = this.#head;
    if (length === 'chunked') return this.#readChunks() ? this.#finish() : undefined;
    this.#readBody();
    return length !== 'until-end' && this.#bodyBytes >= length ? this.#finish() : undefined;
  }

  /** The end of the connection ends an answer that says no length. */
  complete(ending: 'fin' | 'reset'): Answer | undefined {
    return ending === 'fin' && this.#head?.length === 'until-end' ? this.#finish() : undefined;
  }

  #readHead(): boolean {
    if (this.#head) return true;
    const end = this.#buffer.indexOf(HEAD_END);
    if (end < 0) return false;
    const [line = '', ...fields] = this.#buffer.subarray(0, end).toString('latin1').split('\r\n');
    this.#take(end + HEAD_END.length);
    const headers = new Map(
      fields.map((field) => {
        const colon = field.indexOf(':');
        return [
          field.slice(0, colon).toLowerCase(),
          field
            .slice(colon + 1)
            .trim()
            .toLowerCase(),
        ];
      }),
    );
    const length = headers.get('content-length');
    const chunked = headers.get('transfer-encoding') === 'chunked';
    const status = Number(line.split(' ')[1]);
    const bodiless = status === 204 || status === 304 || status < 200;
    this.#head = {
      status,
      close: headers.get('connection') === 'close',
      length: bodiless ? 0 : chunked ? 'chunked' : length === undefined ? 'until-end' : Number(length),
    };
    return true;
  }

  #readBody(): void {
    const { length } = this.#head ?? {};
    const wanted = typeof length === 'number' ? length : Number.POSITIVE_INFINITY;
    const taken = Math.min(this.#buffer.length, wanted - this.#bodyBytes);
    this.#take(taken);
    this.#bodyBytes += taken;
  }

  #readChunks(): boolean {
    for (;;) {
      if (this.#chunkLeft === undefined) {
        const end = this.#buffer.indexOf('\r\n');
        if (end < 0) return false;
        this.#chunkLeft = Number.parseInt(this.#buffer.subarray(0, end).toString('latin1'), 16);
        this.#take(end + 2);
        if (this.#chunkLeft === 0) {
          this.#take(2);
          return true;
        }
      }
      const taken = Math.min(this.#chunkLeft, this.#buffer.length);
      this.#take(taken);
      this.#bodyBytes += taken;
      this.#chunkLeft -= taken;
      if (this.#chunkLeft > 0 || this.#buffer.length < 2) return false;
      this.#take(2);
      this.#chunkLeft = undefined;
    }
  }

  #take(count: number): void {
    this.#buffer = this.#buffer.subarray(count);
  }

  #finish(): Answer {
    const { status = 0, close = false } = this.#head ?? {};
    const answer = { status, close, bodyBytes: this.#bodyBytes };
    this.#head = undefined;
    this.#bodyBytes = 0;
    this.#chunkLeft = undefined;
    return answer;
  }
}
