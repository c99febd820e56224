import { emit } from '../events.js';
import { ReplaysafeError } from '../errors.js';
import type { InboxEvent } from './event.js';
import type { Item } from './item.js';
import { joinSignals, orAbort, type Lease } from './lease.js';
import { bounded, downstreamKey, type Work } from './work.js';
import type { Place } from './run.js';

interface Candidate {
  readonly index: number;
  readonly item: Item;
  readonly event: InboxEvent;
}

/**
 * Prepares the events of a run that a plain read does not find settled, several at once over different keys, in order within a
 * key. Each item then says how it went. Nothing behind a failed one is begun, since it has to wait for it anyway; everything
 * before it is, so that it can be committed.
 *
 * @returns how many items at the front of the run may go on into the transaction
 * @throws what the plain read throws
 */
export async function prepareRun<Tx, Prepared>(
  work: Work<Tx, Prepared>,
  place: Place,
  run: readonly Item[],
  lease: Lease,
): Promise<number> {
  const open: Candidate[] = [];
  for (const [index, item] of run.entries()) {
    if (item.duplicate || item.content.kind !== 'event' || item.preparation.state !== 'none') continue;
    open.push({ index, item, event: item.content.event });
  }
  if (open.length > 0) await dropSettled(work, open, lease);
  const candidates = open.filter(({ item }) => !item.duplicate);
  if (candidates.length > 0) await prepareAll(work, candidates, lease);

  const ready = candidates.filter(({ item }) => item.preparation.state === 'ready').map(({ event }) => event.id);
  if (ready.length > 0) emit('inbox.prepared', { consumer: work.options.consumer, ...place, eventIds: ready });
  const stuck = run.findIndex((item) => !item.duplicate && item.preparation.state !== 'ready');
  return stuck === -1 ? run.length : stuck;
}

async function dropSettled<Tx, Prepared>(
  work: Work<Tx, Prepared>,
  open: readonly Candidate[],
  lease: Lease,
): Promise<void> {
  const ids = open.map(({ event }) => event.id);
  const settled = await bounded(work.options.clock, () => work.processed.settled(ids), lease.cut);
  for (const { item, event } of open) if (settled.has(event.id)) item.duplicate = true;
}

function prepareAll<Tx, Prepared>(
  work: Work<Tx, Prepared>,
  candidates: readonly Candidate[],
  lease: Lease,
): Promise<void> {
  const waiting = [...candidates];
  const busyKeys = new Set<string>();
  let firstFailed = Number.POSITIVE_INFINITY;
  let running = 0;

  return new Promise((resolve) => {
    const begin = ({ index, item, event }: Candidate): void => {
      running++;
      if (event.key !== null) busyKeys.add(event.key);
      void prepareOne(work, event, item.attempts, lease)
        .then(
          (value) => {
            item.preparation = { state: 'ready', value };
          },
          (error: unknown) => {
            item.preparation = { state: 'failed', error };
            firstFailed = Math.min(firstFailed, index);
          },
        )
        .then(() => {
          running--;
          if (event.key !== null) busyKeys.delete(event.key);
          proceed();
        });
    };
    const proceed = (): void => {
      while (running < work.options.prepareConcurrency && !lease.interrupted.aborted) {
        const next = waiting.findIndex(({ event }) => event.key === null || !busyKeys.has(event.key));
        const candidate = waiting[next];
        if (candidate === undefined || candidate.index > firstFailed) break;
        waiting.splice(next, 1);
        begin(candidate);
      }
      if (running === 0) resolve();
    };
    proceed();
  });
}

async function prepareOne<Tx, Prepared>(
  { options }: Work<Tx, Prepared>,
  event: InboxEvent,
  attempts: number,
  lease: Lease,
): Promise<Prepared> {
  const { prepare } = options;
  if (prepare === undefined) return undefined as Prepared;
  const late = new AbortController();
  const cut = joinSignals(lease.cut, late.signal);
  const timer = options.clock.setTimer(options.prepareTimeoutMs, () => {
    late.abort(new ReplaysafeError('RS_INBOX_HANDLER_TIMEOUT', { detail: `prepare, ${options.prepareTimeoutMs} ms` }));
  });
  try {
    const context = {
      signal: cut.signal,
      logger: options.logger,
      attempt: attempts + 1,
      keyFor: (step: string) => downstreamKey(options.consumer, event.id, step),
    };
    return await orAbort((async () => prepare(event, context))(), cut.signal);
  } finally {
    timer.cancel();
    cut.dispose();
  }
}
