/** The part of a `pg` result that is read. */
export interface PgResult {
  readonly rows: unknown[];
  readonly rowCount: number | null;
}

/** The part of a `pg` client (8.x) that an application and this adapter share. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<PgResult>;
}

/** The part of a `pg.Pool` that is called. */
export interface PgPool<Client extends PgClient = PgClient> {
  connect(): Promise<Client>;
}

/** What a pool of one sort hands out, whether its `connect` has a callback form too or not. */
export type PgClientOf<Pool extends PgPool> = Pool extends {
  connect: { (): Promise<infer Client extends PgClient>; (callback: (...args: never[]) => void): void };
}
  ? Client
  : Pool extends PgPool<infer Client>
    ? Client
    : PgClient;

/** `I` idle, `T` in a transaction, `E` in a failed one; `null` before the first answer. */
export type PgStatus = 'I' | 'T' | 'E' | null | undefined;

export interface PgNotice {
  readonly code?: string;
  readonly file?: string;
  readonly routine?: string;
}

export interface PgTaggedResult extends PgResult {
  /** First word of the command tag: `COMMIT`, `ROLLBACK`, … */
  readonly command?: string;
}

/** One result, or one for each statement of a text with several. */
export type PgAnswer = PgTaggedResult | readonly PgTaggedResult[];

/** The same client as this adapter sees it. */
export interface RawClient {
  query(config: unknown, values: unknown, callback: (error: unknown, answer?: PgAnswer) => void): unknown;
  release(destroy?: boolean): void;
  on(event: string, listener: (value: unknown) => void): unknown;
  removeListener(event: string, listener: (value: unknown) => void): unknown;
  /** Since pg 8.21. */
  getTransactionStatus?(): PgStatus;
  readonly connection?: { readonly stream?: { destroy?(): unknown } };
}

export interface RawPool {
  connect(): Promise<RawClient>;
  on?(event: 'error', listener: (error: unknown) => void): unknown;
  listenerCount?(event: 'error'): number;
}
