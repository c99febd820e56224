import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Finding } from 'replaysafe-crashkit';
import type { Guard } from '../service/guards.js';
import { dropDatabases } from '../shop/databases.js';
import { type Infrastructure, sessionFor } from '../shop/infrastructure.js';
import { startShop, type Shop } from '../shop/shop.js';
import { BookReader, reconcileOrders, type Books, type Progress } from './books.js';
import { Chaos } from './chaos.js';
import type { DemoOptions } from './options.js';
import { OrderingClient } from './ordering-client.js';
import { GroupLag, untilPipelineEmpty } from './pipeline.js';
import { planChaos } from './plan.js';
import { demoResult, type DemoResult, isSafe, renderLedger } from './report.js';
import type { Screen } from './screen.js';
import { SeededRandom } from './seeded-random.js';
import { switchedOff, weatherFor } from './weather.js';

const ANSWER_WITHIN_MS = { safe: 20_000, unsafe: 5_000 };
const SHOW_EVERY_MS = 250;
/** Short, since what the demo looks at is kills; a real service behind a balancer wants the default. */
const LAME_DUCK_MS = 500;

export interface DemoOutcome {
  readonly result: DemoResult;
  /** What `lost`, `double` and `wrongAmount` consist of. */
  readonly findings: readonly Finding[];
}

/** One whole run: shop, load and chaos, the wait for the end, the ledger. Undefined when it was ended from outside. */
export async function runDemo(
  options: DemoOptions,
  infrastructure: Infrastructure,
  screen: Screen,
  ending: AbortSignal,
): Promise<DemoOutcome | undefined> {
  const session = sessionFor(infrastructure);
  const guardsOff = options.unsafe === undefined ? [] : switchedOff(options.unsafe);
  const shared = !infrastructure.ownDatabase || !infrastructure.ownKafka;
  const suffix = shared ? `_demo_${randomBytes(4).toString('hex')}` : '';

  try {
    screen.say('starting two orders, two billing and a provider');
    const shop = await startShop({
      ...infrastructure,
      ...session,
      orders: 2,
      billing: 2,
      suffix,
      env: {
        all: { SHOP_UNSAFE: guardsOff.join(','), LAME_DUCK_MS: String(LAME_DUCK_MS), LOG_LEVEL: 'warn' },
        provider: { SHOP_FAULTS: '1' },
        // One relay in each mode: they share a schema and may run side by side.
        'orders-2': { RELAY_MODE: 'two-phase' },
      },
      signal: ending,
    });
    return await playIn(shop, { options, infrastructure, screen, ending, guardsOff, sessionMs: session.sessionMs });
  } finally {
    if (!infrastructure.ownDatabase) await dropDatabases(infrastructure.databaseUrl, suffix);
  }
}

interface Stage {
  readonly options: DemoOptions;
  readonly infrastructure: Infrastructure;
  readonly screen: Screen;
  readonly ending: AbortSignal;
  readonly guardsOff: readonly Guard[];
  readonly sessionMs: number;
}

async function playIn(shop: Shop, stage: Stage): Promise<DemoOutcome | undefined> {
  const { infrastructure, screen } = stage;
  const reader = new BookReader(shop.databases, shop.topic, !stage.guardsOff.includes('no-dedup-row'));
  const lag = new GroupLag(infrastructure.kafkaBrokers, shop.topic, shop.group);
  let outcome: DemoOutcome | undefined;
  try {
    outcome = await play({ ...stage, shop, reader, lag });
    // Before the services stop: nobody should have to wait for that.
    if (outcome !== undefined) screen.say(`\n${renderLedger(outcome.result, outcome.findings)}`);
    return outcome;
  } finally {
    await shop.stop();
    await reader.close();
    if (!infrastructure.ownKafka) await lag.deleteTopic();
    await lag.close();
    // What went wrong without a reason is worth a look.
    const explained = outcome === undefined || stage.guardsOff.length > 0 || isSafe(outcome.result);
    if (explained) await rm(shop.logFolder, { recursive: true, force: true });
    else screen.say(`the services' logs are in ${shop.logFolder}`);
  }
}

interface Play extends Stage {
  readonly shop: Shop;
  readonly reader: BookReader;
  readonly lag: GroupLag;
}

async function play(parts: Play): Promise<DemoOutcome | undefined> {
  const { options, shop, reader, lag, screen, ending, guardsOff, sessionMs } = parts;
  const random = new SeededRandom(options.seed);
  const weather = weatherFor(options.unsafe);
  const totalMs = options.seconds * 1_000;
  const client = new OrderingClient({
    addresses: shop.orders.map((instance) => instance.address),
    random: random.fork(3),
    rate: weather.rate,
    lostConnections: weather.lostConnections,
    keyPerTry: guardsOff.includes('key-per-try'),
  });
  const chaos = new Chaos(shop, (line) => {
    screen.say(line);
  });
  // The group stands still for a session after a SIGKILL; on a slow session the shop needs time in between.
  const plan = planChaos(random, weather, totalMs, sessionMs < 6_000 ? sessionMs + 1_000 : 8_000);

  const unsafe = options.unsafe !== undefined;
  const show = watch({ ...parts, client, chaos, totalMs });
  const startedAt = performance.now();
  const isOver = (): boolean => ending.aborted;
  // Not AbortSignal.timeout inside of AbortSignal.any: Node 20 lets it be collected before it fires.
  const timeUp = new AbortController();
  const timer = setTimeout(() => {
    timeUp.abort();
  }, totalMs);
  const endEarly = (): void => {
    timeUp.abort();
  };
  ending.addEventListener('abort', endEarly);
  try {
    show.phase = 'placing orders, killing processes';
    await Promise.all([client.run(timeUp.signal), chaos.run(plan, timeUp.signal)]);
    if (isOver()) return undefined;

    show.phase = 'waiting for the last answers';
    await chaos.calm();
    await client.finish(unsafe ? ANSWER_WITHIN_MS.unsafe : ANSWER_WITHIN_MS.safe);
    if (isOver()) return undefined;

    show.phase = 'waiting until nothing is under way';
    const end = await untilPipelineEmpty(
      reader,
      lag,
      // Without a guard what is missing stays missing; then it is enough that the group had time to come back.
      { withinMs: 60_000, quietMs: unsafe ? sessionMs + 1_500 : 15_000 },
      (progress) => {
        show.progress = progress;
      },
      async (ms) => {
        await sleep(ms, undefined, { signal: ending }).catch(() => undefined);
      },
    );
    if (isOver()) return undefined;
    const books = await reader.read();
    const reconciliation = reconcileOrders(client.intended, books);
    const drained = end !== 'timed-out';
    const result = demoResult({
      options,
      guardsOff,
      client,
      chaos,
      books,
      reconciliation,
      drained,
      elapsedMs: Math.round(performance.now() - startedAt),
    });
    return { result, findings: reconciliation.findings };
  } finally {
    clearTimeout(timer);
    ending.removeEventListener('abort', endEarly);
    await client.close();
    await show.stop();
  }
}

/** Keeps the screen up to date. */
function watch(parts: Play & { client: OrderingClient; chaos: Chaos; totalMs: number }) {
  const { shop, reader, screen, client, chaos, options, totalMs } = parts;
  const startedAt = performance.now();
  const stopped = new AbortController();
  const off = parts.guardsOff.length > 0 ? `, with ${parts.guardsOff.join(' and ')}` : '';
  const state = {
    phase: '',
    progress: {
      orders: 0,
      open: 0,
      published: 0,
      charged: 0,
      ordersCharged: 0,
      providerCharges: 0,
      tasksOpen: 0,
    } as Progress,
    absorbed: { consumer: 0, provider: 0 } as Books['absorbed'],
  };
  const loop = (async () => {
    while (!stopped.signal.aborted) {
      // The screen is not worth a failed run.
      state.progress = await reader.progress().catch(() => state.progress);
      state.absorbed = await reader.absorbed().catch(() => state.absorbed);
      screen.show({
        title: `replaysafe: orders under fire${off}, seed ${String(options.seed)}`,
        elapsedMs: performance.now() - startedAt,
        totalMs,
        client,
        chaos,
        shop,
        ...state,
      });
      await sleep(SHOW_EVERY_MS, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  })();
  return Object.assign(state, {
    stop: async () => {
      stopped.abort();
      await loop;
      screen.leave();
    },
  });
}
