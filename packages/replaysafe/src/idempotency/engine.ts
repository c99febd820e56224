import { emit } from '../events.js';
import { parseOptions, type ParsedOptions } from '../options.js';
import type { HttpAnswer } from './http.js';
import { idempotencyOptions, type IdempotencyOptions } from './options.js';
import { problem, type ProblemCode, type ProblemOverrides } from './problem.js';
import { Store, type Operation } from './store.js';
import { answerCodec } from './stored-answer.js';
import { Waiters } from './waiters.js';

/** What the verbs of this room share. */
export interface Engine<Tx> {
  readonly options: ParsedOptions<ReturnType<typeof idempotencyOptions<Tx>>>;
  readonly store: Store;
  readonly waiters: Waiters;
}

export function createEngine<Tx>(given: IdempotencyOptions<Tx>): Engine<Tx> {
  const options = parseOptions('createIdempotency', idempotencyOptions<Tx>(), given);
  const { sql, schema, retentionMs, waitMs, clock, random, signals } = options;
  const codec = answerCodec(options.storedHeaders, options.maxBodyBytes);
  return {
    options,
    store: new Store({ sql, schema, retentionMs, codec }),
    waiters: new Waiters({ waitMs, clock, random, signals }),
  };
}

/** Answers with a problem and says so. */
export function refuse<Tx>(
  { options }: Engine<Tx>,
  code: ProblemCode,
  operation?: Operation,
  overrides?: ProblemOverrides,
): HttpAnswer {
  emit('idempotency.refused', { keyHash: operation && shownHash(operation), code });
  return problem(options, code, overrides);
}

export const shownHash = ({ keyHash }: Operation): string => keyHash.toString('hex');
