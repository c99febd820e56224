import { describe, expect, onTestFinished, test } from 'vitest';
import { EVENTS, onEvent, type EventName } from '../../../src/events.js';
import { json, send, type StartServer } from './harness.js';
import { expectProblem, expectReplay, useScenario } from './scenario.js';

/** What any HTTP adapter must answer to records that cannot be replayed, and what must not be found in them. */
export function httpRecordConformance(start: StartServer): void {
  const { store, serve, newName, createOrder } = useScenario(start);
  const alter = (set: string) =>
    store().pool.query(`update replaysafe.idempotency_record set ${set} where created_at =
      (select max(created_at) from replaysafe.idempotency_record)`);

  describe('an operation that is done is never executed again', () => {
    test('an answer over the limit is sent once; the retry hears that it is not available', async () => {
      const name = newName();
      const body = 'x'.repeat(5 * 1_048_576);
      const url = await serve(createOrder(name, { body, headers: { 'content-type': 'text/plain' } }));
      const first = await send(url, { key: name, body: {} });
      expect(first.status).toBe(201);
      expect(first.bytes.byteLength).toBe(body.length);
      for (let i = 0; i < 2; i++) {
        const retry = await send(url, { key: name, body: {} });
        expectProblem(retry, 409, 'idempotency-response-unavailable', false);
      }
      expect(await store().orders(name)).toBe(1);
    });

    test('an answer as long as the limit is stored', async () => {
      const name = newName();
      const url = await serve(createOrder(name, { body: Buffer.alloc(10, 7) }), {}, { maxBodyBytes: 10 });
      const first = await send(url, { key: name, body: {} });
      expectReplay(await send(url, { key: name, body: {} }), first);
    });

    test('a completed row without a response is not an endless 409 in progress', async () => {
      const name = newName();
      const url = await serve(createOrder(name));
      await send(url, { key: name, body: {} });
      await alter('body = null, body_omitted = true');
      expectProblem(await send(url, { key: name, body: {} }), 409, 'idempotency-response-unavailable', false);
      expect(await store().orders(name)).toBe(1);
    });

    test.each([
      ['past its retention', `expires_at = clock_timestamp() - interval '1 second'`],
      ['of which only the tombstone is left', `state = 'expired', headers = null, body = null, status = null`],
    ])('a key %s is refused, not run again', async (_, set) => {
      const name = newName();
      const url = await serve(createOrder(name));
      await send(url, { key: name, body: {} });
      await alter(set);
      expectProblem(await send(url, { key: name, body: {} }), 409, 'idempotency-key-expired', false);
      // Another request under it is told that first.
      expectProblem(await send(url, { key: name, body: { other: 1 } }), 422, 'idempotency-key-reused', false);
      expect(await store().orders(name)).toBe(1);
    });

    test('the time of an answer runs by the clock of the database', async () => {
      const name = newName();
      const url = await serve(createOrder(name), {}, { retentionMs: 1 });
      await send(url, { key: name, body: {} });
      expectProblem(await send(url, { key: name, body: {} }), 409, 'idempotency-key-expired', false);
    });

    test('a committed running row under a lease is in progress; whoever meets it does not take it over', async () => {
      const name = newName();
      const url = await serve(createOrder(name), {}, { waitMs: 100 });
      await send(url, { key: name, body: {} });
      await alter(`state = 'running', status = null, headers = null, body = null, completed_at = null, expires_at = null,
        owner = 'elsewhere', locked_until = clock_timestamp() + interval '1 minute', recovery_point = 'charged'`);
      expectProblem(await send(url, { key: name, body: {} }), 409, 'idempotency-in-progress', true);
      expect(await store().orders(name)).toBe(1);
    });

    test('a fingerprint of a later version is left to the release that knows it', async () => {
      const name = newName();
      const url = await serve(createOrder(name));
      await send(url, { key: name, body: {} });
      await alter('fp_version = 2');
      expectProblem(await send(url, { key: name, body: {} }), 503, 'idempotency-store-unavailable', true);
      expect(await store().orders(name)).toBe(1);
    });
  });

  test('neither events nor the database hold the key, the body, or a header that is not stored', async () => {
    const key = 'a-secret-key-of-the-client';
    const url = await serve(async () => json(201, {}, { 'x-secret': 'header-secret', 'set-cookie': 'cookie-secret' }));
    const events: [EventName, unknown][] = [];
    for (const name of Object.keys(EVENTS) as EventName[]) {
      const listener = onEvent(name, (payload) => events.push([name, payload]));
      onTestFinished(() => {
        listener.unsubscribe();
      });
    }
    await send(url, { key, body: { card: 'body-secret' } });
    await send(url, { key, body: { card: 'body-secret' } });
    await send(url, { key, body: { card: 'other-secret' } });
    expect(events.map(([name]) => name)).toEqual([
      'idempotency.executed',
      'idempotency.replayed',
      'idempotency.refused',
    ]);
    const { rows } = await store().pool.query(
      `select r::text, convert_from(body, 'UTF8') from replaysafe.idempotency_record r`,
    );
    expect(JSON.stringify([events, rows])).not.toContain('secret');
    const hashes = new Set(events.map(([, payload]) => (payload as { keyHash: string }).keyHash));
    expect([...hashes]).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
  });

  test('further headers are stored where they are named', async () => {
    const name = newName();
    const answer = json(201, {}, { 'X-Total': '7', 'x-other': '8' });
    const url = await serve(async () => answer, {}, { storedHeaders: ['x-total'] });
    await send(url, { key: name, body: {} });
    const replay = await send(url, { key: name, body: {} });
    expect([replay.headers['x-total'], replay.headers['x-other']]).toEqual(['7', undefined]);
  });
}
