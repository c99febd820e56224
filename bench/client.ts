import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createHttpClient } from 'replaysafe/client';
import { Pool } from 'undici';
import { measure, perSecond, type Measured } from './case.js';

const CALLS = 20_000;
const CONCURRENT = 50;
const RUNS = 5;

const SERVER = `
  const server = require('node:http').createServer((request, response) => { request.resume(); response.end('{"ok":true}'); });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
  process.stdin.on('end', () => process.exit()).resume();
`;

/** Calls per second over loopback, all time-outs and retries armed and none needed. */
export async function benchClient(): Promise<Measured[]> {
  const server = spawn(process.execPath, ['-e', SERVER], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [port] = (await once(server.stdout, 'data')) as [Buffer];
  const baseUrl = `http://127.0.0.1:${port.toString().trim()}`;
  const client = createHttpClient({ name: 'bench', baseUrl, connections: CONCURRENT });
  const pool = new Pool(baseUrl, { connections: CONCURRENT });
  try {
    return await measure('client.post', 'calls/s', RUNS, [
      { name: 'replaysafe', run: () => callMany((n) => client.post('/', { idempotencyKey: `k-${n}`, json: { n } })) },
      {
        name: 'bare',
        run: () =>
          callMany(async (n) => {
            const headers = { 'content-type': 'application/json', 'idempotency-key': `k-${n}` };
            const { body } = await pool.request({ path: '/', method: 'POST', headers, body: JSON.stringify({ n }) });
            await body.arrayBuffer();
          }),
      },
    ]);
  } finally {
    await client.stop();
    await pool.close();
    server.stdin.end();
  }
}

function callMany(call: (n: number) => Promise<unknown>): Promise<number> {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < CALLS) await call(next++);
  };
  return perSecond(CALLS, async () => {
    await Promise.all(Array.from({ length: CONCURRENT }, one));
  });
}
