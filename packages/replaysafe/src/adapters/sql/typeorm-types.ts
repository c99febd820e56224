/* eslint-disable @typescript-eslint/no-explicit-any -- TypeORM's own declarations say `any` here, in 0.3 and in 1.x */

/** The part of a TypeORM `QueryRunner` that is called. */
export interface TypeormQueryRunner {
  readonly isReleased: boolean;
  readonly isTransactionActive: boolean;
  connect(): Promise<any>;
  release(): Promise<void>;
  query(query: string, parameters?: any[]): Promise<any>;
}

/** The part of a TypeORM `EntityManager` that an application and this adapter share. */
export interface TypeormEntityManager {
  readonly queryRunner?: TypeormQueryRunner | undefined;
  query(query: string, parameters?: any[]): Promise<any>;
}

/** The part of a TypeORM `DataSource` (>= 0.3.20, 1.x) that is used. */
export interface TypeormDataSource {
  readonly options: { readonly type: string };
  readonly manager: TypeormEntityManager;
  createQueryRunner(mode?: 'master' | 'slave'): TypeormQueryRunner;
}

/** The same runner as this adapter sees it. What is optional here is not in TypeORM's public interface. */
export interface RawRunner extends Omit<TypeormQueryRunner, 'isTransactionActive'> {
  readonly manager: TypeormEntityManager;
  isTransactionActive: boolean;
  /** How many of the transactions nested in one another are open; inside one, TypeORM sets savepoints. */
  transactionDepth?: number;
  /** The `pg` client, once there is one. */
  readonly databaseConnection?: unknown;
  releasePostgresConnection?(error?: Error): Promise<void>;
  readonly broadcaster?: { broadcast?(event: TransactionEvent): unknown };
}

/** What TypeORM tells its subscribers about a transaction. */
export type TransactionEvent =
  | 'BeforeTransactionStart'
  | 'AfterTransactionStart'
  | 'BeforeTransactionCommit'
  | 'AfterTransactionCommit'
  | 'BeforeTransactionRollback'
  | 'AfterTransactionRollback';
