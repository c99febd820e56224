import { match, startFaultProxy } from '@replaysafe/test-services';
import { expect, onTestFinished, test } from 'vitest';
import { onEvent } from '../../../src/events.js';
import { Gate, insertOrder, json, send, type StartServer } from './harness.js';
import { expectProblem, expectReplay, useScenario } from './scenario.js';

/** What any HTTP adapter must do when the database goes away, over real sockets and a proxy that cuts and withholds. */
export function httpDatabaseConformance(start: StartServer): void {
  const { store, serve, serveFrom, newName, createOrder } = useScenario(start);

  const proxied = async () => {
    const { hostname, port } = new URL(store().database.url);
    const proxy = await startFaultProxy({ target: { host: hostname, port: Number(port) } });
    onTestFinished(() => proxy.stop());
    const url = new URL(store().database.url);
    url.host = `127.0.0.1:${proxy.port}`;
    return { proxy, pool: store().openPool({ connectionString: url.href }) };
  };

  test('down at the start: 503 with Retry-After, and the handler does not run', async () => {
    const { proxy, pool } = await proxied();
    await proxy.stop();
    let ran = false;
    const url = await serveFrom(pool, async () => {
      ran = true;
      return json(201, {});
    });
    expectProblem(await send(url, { key: newName(), body: {} }), 503, 'idempotency-store-unavailable', true);
    expect(ran).toBe(false);
  });

  test.each(['tx.begin', 'idempotency.lock', 'idempotency.claim'])(
    'lost at %s: 503, the handler does not run',
    async (at) => {
      const name = newName();
      const { proxy, pool } = await proxied();
      let runs = 0;
      const url = await serveFrom(pool, async (context) => {
        runs += 1;
        return json(201, { orderId: await insertOrder(context, name) });
      });
      proxy.onClientData = match(`replaysafe:${at}`, (connection) => {
        proxy.onClientData = undefined;
        connection.cut();
        return 'drop';
      });
      expectProblem(await send(url, { key: name, body: {} }), 503, 'idempotency-store-unavailable', true);
      expect(runs).toBe(0);
      expect((await send(url, { key: name, body: {} })).status).toBe(201);
    },
  );

  test('lost while the handler runs: a retryable 503, nothing remains, and the next try is executed', async () => {
    const name = newName();
    const { proxy, pool } = await proxied();
    let tries = 0;
    const url = await serveFrom(pool, async (context) => {
      tries += 1;
      const orderId = await insertOrder(context, name);
      if (tries === 1) {
        proxy.cut();
        await context.tx.query('select 1');
      }
      return json(201, { orderId });
    });
    expectProblem(await send(url, { key: name, body: {} }), 503, 'transaction-rolled-back', true);
    expect((await send(url, { key: name, body: {} })).status).toBe(201);
    expect(await store().orders(name)).toBe(1);
  });

  test('the reply to COMMIT is lost: the committed answer is sent all the same, and replayed later', async () => {
    const name = newName();
    const { proxy, pool } = await proxied();
    const url = await serveFrom(pool, createOrder(name));
    const executed: unknown[] = [];
    const listener = onEvent('idempotency.executed', (payload) => executed.push(payload));
    onTestFinished(() => {
      listener.unsubscribe();
    });
    proxy.onServerData = match('COMMIT\0', (connection) => {
      proxy.onServerData = undefined;
      connection.cut();
      return 'drop';
    });
    const first = await send(url, { key: name, body: {} });
    expect(first.status).toBe(201);
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    expect(executed).toHaveLength(1);
    expectReplay(await send(url, { key: name, body: {} }), first);
    expect(await store().orders(name)).toBe(1);
  });

  test('COMMIT never arrives: a retryable 503 that says unknown, never 409 about oneself; the next try is executed', async () => {
    const name = newName();
    const { proxy, pool } = await proxied();
    let tries = 0;
    const url = await serveFrom(pool, async (context) => {
      tries += 1;
      return json(201, { orderId: await insertOrder(context, name) });
    });
    proxy.onClientData = match('tx.commit', (connection) => {
      proxy.onClientData = undefined;
      connection.cut();
      return 'drop';
    });
    expectProblem(await send(url, { key: name, body: {} }), 503, 'transaction-outcome-unknown', true);
    expect(tries).toBe(1);
    expect((await send(url, { key: name, body: {} })).status).toBe(201);
    expect(await store().orders(name)).toBe(1);
  });

  test('no reply to COMMIT at all: the request ends at its bound with the committed answer', async () => {
    const name = newName();
    const { proxy, pool } = await proxied();
    const url = await serveFrom(pool, createOrder(name), { transactionTimeoutMs: 1_000 });
    proxy.onServerData = match('COMMIT\0', () => {
      proxy.onServerData = undefined;
      return 'hold';
    });
    const first = await send(url, { key: name, body: {} });
    expect(first.status).toBe(201);
    expectReplay(await send(url, { key: name, body: {} }), first);
    expect(await store().orders(name)).toBe(1);
  });

  test('a handler that hangs is cut at its bound: a retryable 503, and its key is free', async () => {
    const name = newName();
    const gate = new Gate();
    let tries = 0;
    const url = await serve(
      async (context) => {
        tries += 1;
        const orderId = await insertOrder(context, name);
        if (tries === 1) await gate.pass();
        return json(201, { orderId });
      },
      {},
      { transactionTimeoutMs: 500 },
    );
    expectProblem(await send(url, { key: name, body: {} }), 503, 'transaction-rolled-back', true);
    gate.open();
    expect((await send(url, { key: name, body: {} })).status).toBe(201);
    expect(await store().orders(name)).toBe(1);
  });
}
