import { describe, expect, onTestFinished, test } from 'vitest';
import { onEvent, type EventName } from '../../../src/events.js';
import { waitForEvent } from '../../../src/testing/index.js';
import { Gate, insertOrder, json, send, type Sent, type StartServer } from './harness.js';
import { expectProblem, expectReplay, useScenario } from './scenario.js';

/** What any HTTP adapter must do when clients race, handlers fail and databases die, over real sockets. */
export function httpFaultConformance(start: StartServer): void {
  const { store, serve, serveFrom, newName, createOrder } = useScenario(start);

  const seen = (name: EventName): unknown[] => {
    const payloads: unknown[] = [];
    const listener = onEvent(name, (payload) => payloads.push(payload));
    onTestFinished(() => {
      listener.unsubscribe();
    });
    return payloads;
  };

  describe('duplicates at the same time', () => {
    test('20 parallel duplicates over two servers both run: one effect, all others replay or 409', async () => {
      const pools = [store().openPool({ max: 5 }), store().openPool({ max: 5 })];
      for (let round = 0; round < 5; round++) {
        const name = newName();
        const urls = await Promise.all(pools.map((pool) => serveFrom(pool, createOrder(name))));
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_, i) => send(urls[i % 2]!, { key: name, body: { amount: 1 } })),
        );
        expect(await store().orders(name)).toBe(1);
        const first = answers.find((answer) => answer.status === 201 && !answer.headers['idempotent-replayed'])!;
        for (const answer of answers) {
          if (answer === first) continue;
          if (answer.status === 201) expectReplay(answer, first);
          else expectProblem(answer, 409, 'idempotency-in-progress', true);
        }
        for (const url of urls) expectReplay(await send(url, { key: name, body: { amount: 1 } }), first);
      }
    });

    test('a duplicate waits for the first request and gets its answer, holding no connection', async () => {
      const name = newName();
      const gate = new Gate();
      // One connection is the handler's; all others must do with the second.
      const pool = store().openPool({ max: 2 });
      const handle = createOrder(name);
      const url = await serveFrom(
        pool,
        async (context, body) => {
          if (context.key === name) await gate.pass();
          return handle(context, body);
        },
        { waitMs: 10_000 },
      );
      const first = send(url, { key: name, body: {} });
      await gate.entered;
      const refused = waitForEvent('idempotency.refused');
      const waited = seen('idempotency.waited');
      const duplicates = Array.from({ length: 5 }, () => send(url, { key: name, body: {} }));
      // Four may wait; the fifth is told to come again.
      expect(await refused).toMatchObject({ code: 'RS_IDEMPOTENCY_IN_PROGRESS' });
      expect((await send(url, { key: newName(), body: {} })).status).toBe(201);
      gate.open();
      const answers = await Promise.all(duplicates);
      for (const answer of answers.filter((each) => each.status === 201)) expectReplay(answer, await first);
      const tooMany = answers.filter((each) => each.status !== 201);
      expect(tooMany).toHaveLength(1);
      expectProblem(tooMany[0]!, 409, 'idempotency-in-progress', true);
      expect(waited).toHaveLength(4);
    });

    test('a duplicate of a request that is rolled back is executed', async () => {
      const name = newName();
      const gate = new Gate();
      let tries = 0;
      const url = await serve(
        async (context) => {
          tries += 1;
          const orderId = await insertOrder(context, name);
          if (tries > 1) return json(201, { orderId });
          await gate.pass();
          return json(500, {});
        },
        {},
        { waitMs: 10_000 },
      );
      const first = send(url, { key: name, body: {} });
      await gate.entered;
      const second = send(url, { key: name, body: {} });
      gate.open();
      expect((await first).status).toBe(500);
      expect((await second).status).toBe(201);
      expect((await second).headers['idempotent-replayed']).toBeUndefined();
      expect(await store().orders(name)).toBe(1);
    });

    test('waiting can be switched off', async () => {
      const gate = new Gate();
      const url = await serve(async () => gate.pass().then(() => json(200, {})), {}, { waitMs: 0 });
      const first = send(url, { key: 'no-wait', body: {} });
      await gate.entered;
      expectProblem(await send(url, { key: 'no-wait', body: {} }), 409, 'idempotency-in-progress', true);
      gate.open();
      expect((await first).status).toBe(200);
    });

    test('R-SHUT-HTTP-1: when the process stops, waiters are sent away at once and the running handler finishes', async () => {
      const name = newName();
      const gate = new Gate();
      const stop = new AbortController();
      const signals = { stopping: stop.signal, deadline: new AbortController().signal, budgetMs: 1_000 };
      const handle = createOrder(name);
      const url = await serve(
        async (context, body) => gate.pass().then(() => handle(context, body)),
        {},
        {
          waitMs: 10_000,
          signals,
        },
      );
      const first = send(url, { key: name, body: {} });
      await gate.entered;
      const waiter = send(url, { key: name, body: {} });
      stop.abort();
      const evicted = await waiter;
      expectProblem(evicted, 409, 'idempotency-in-progress', true);
      expect(evicted.headers.connection).toBe('close');
      gate.open();
      expect((await first).status).toBe(201);
      expectReplay(await send(url, { key: name, body: {} }), await first);
    });
  });

  describe('answers that are not the last word', () => {
    test.each([500, 503, 401, 403, 408, 413, 421, 425, 429])(
      'a %d is not stored and its effect is rolled back',
      async (status) => {
        const name = newName();
        let tries = 0;
        const url = await serve(async (context) => {
          await insertOrder(context, name);
          tries += 1;
          return tries === 1 ? json(status, { tries }) : json(201, { tries });
        });
        const discarded = waitForEvent('idempotency.discarded');
        const refused = await send(url, { key: name, body: {} });
        expect([refused.status, refused.json]).toEqual([status, { tries: 1 }]);
        expect(await discarded).toMatchObject({ status });
        expect(await store().orders(name)).toBe(0);
        expect((await send(url, { key: name, body: {} })).json).toEqual({ tries: 2 });
        expect(await store().orders(name)).toBe(1);
      },
    );

    test('a handler that throws is rolled back and answered by the framework; the next try is executed', async () => {
      const name = newName();
      let tries = 0;
      const url = await serve(async (context) => {
        await insertOrder(context, name);
        tries += 1;
        if (tries === 1) throw new Error('a bug');
        return json(201, {});
      });
      expect((await send(url, { key: name, body: {} })).status).toBe(500);
      expect(await store().orders(name)).toBe(0);
      expect((await send(url, { key: name, body: {} })).status).toBe(201);
    });
  });

  describe('transactions that are not what they seem', () => {
    const insertTwice = async (query: () => Promise<unknown>): Promise<void> => {
      await query();
      await query().catch(() => undefined);
    };

    test('P1: a database error that the handler hides is a 500 that is not stored, though COMMIT would not complain', async () => {
      const name = newName();
      let hide = true;
      const url = await serve(async (context) => {
        await insertOrder(context, name);
        const query = () => context.tx.query('insert into unique_name values ($1)', [name]);
        if (hide) await insertTwice(query);
        return json(201, {});
      });
      expectProblem(await send(url, { key: name, body: {} }), 500, 'transaction-aborted', false);
      expect(await store().orders(name)).toBe(0);
      hide = false;
      expect((await send(url, { key: name, body: {} })).status).toBe(201);
    });

    test('P1: inside a savepoint an expected database error is survived', async () => {
      const name = newName();
      const url = await serve(async (context) => {
        await insertOrder(context, name);
        await insertTwice(() =>
          context.sql.savepoint(async () => context.tx.query('insert into unique_name values ($1)', [name])),
        );
        return json(201, {});
      });
      expect((await send(url, { key: name, body: {} })).status).toBe(201);
      expect(await store().orders(name)).toBe(1);
    });

    test.each(['commit', 'rollback'])(
      'P1: a handler that sends %s itself is told, and is not run for that key again',
      async (sql) => {
        const name = newName();
        const url = await serve(async (context) => {
          await insertOrder(context, name);
          await context.tx.query(sql);
          return json(201, {});
        });
        expectProblem(await send(url, { key: name, body: {} }), 500, 'transaction-lost', false);
        const again = await send(url, { key: name, body: {} });
        if (sql === 'commit') {
          expectProblem(again, 409, 'idempotency-response-unavailable', false);
          expect(await store().orders(name)).toBe(1);
        } else {
          expect(await store().orders(name)).toBe(0);
        }
      },
    );

    test('P1: a handler that removes its own claim commits nothing', async () => {
      const name = newName();
      const url = await serve(async (context) => {
        await insertOrder(context, name);
        await context.tx.query('delete from replaysafe.idempotency_record where state = $1', ['running']);
        return json(201, {});
      });
      expectProblem(await send(url, { key: name, body: {} }), 500, 'transaction-lost', false);
      expect(await store().orders(name)).toBe(0);
    });

    test('P5: a statement that nobody waits for, and that fails, fails the request', async () => {
      const name = newName();
      const url = await serve(async (context) => {
        await insertOrder(context, name);
        void context.tx.query('select 1 / 0').catch(() => undefined);
        return json(201, {});
      });
      expectProblem(await send(url, { key: name, body: {} }), 500, 'transaction-aborted', false);
      expect(await store().orders(name)).toBe(0);
    });

    test('the answer is not sent before COMMIT: a constraint that fails there turns 201 into 500', async () => {
      const name = newName();
      let bad = true;
      const url = await serve(async (context) => {
        await context.tx.query('set constraints unique_name_once deferred');
        for (let i = 0; i < (bad ? 2 : 1); i++) await context.tx.query('insert into unique_name values ($1)', [name]);
        return json(201, { secret: name }, { 'set-cookie': 'session=of-nobody', location: `/orders/${name}` });
      });
      const refused = await send(url, { key: name, body: {} });
      expect(refused.status).toBe(500);
      expect(refused.text).not.toContain(`"secret"`);
      expect(refused.headers['set-cookie']).toBeUndefined();
      expect(refused.headers.location).toBeUndefined();
      bad = false;
      expect((await send(url, { key: name, body: {} })).status).toBe(201);
    });

    test.each(['40001', '40P01'])(
      'P4: %s is a retryable 503, and the handler is not run again inside the request',
      async (state) => {
        const name = newName();
        let tries = 0;
        const url = await serve(async (context) => {
          tries += 1;
          await insertOrder(context, name);
          if (tries === 1) await context.tx.query(`do $$ begin raise sqlstate '${state}'; end $$`);
          return json(201, { tries });
        });
        expectProblem(await send(url, { key: name, body: {} }), 503, 'transaction-rolled-back', true);
        expect(tries).toBe(1);
        expect((await send(url, { key: name, body: {} })).json).toEqual({ tries: 2 });
        expect(await store().orders(name)).toBe(1);
      },
    );
  });

  test('a client that disconnects does not stick its key: the handler goes on, and the retry gets the answer', async () => {
    const name = newName();
    const gate = new Gate();
    const handle = createOrder(name);
    const url = await serve(async (context, body) => gate.pass().then(() => handle(context, body)));
    const client = new AbortController();
    const gone = send(url, { key: name, body: {}, signal: client.signal }).catch((error: unknown) => error);
    await gate.entered;
    client.abort();
    await gone;
    const executed = waitForEvent('idempotency.executed');
    gate.open();
    await executed;
    const replay: Sent = await send(url, { key: name, body: {} });
    expect(replay.status).toBe(201);
    expect(replay.headers['idempotent-replayed']).toBe('true');
    expect(await store().orders(name)).toBe(1);
  });
}
