import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent as HttpAgent } from 'node:http';
import axios from 'axios';
import axiosRetry from 'axios-retry';
import got from 'got';
import ky from 'ky';
import { createHttpClient } from 'replaysafe/client';
import { Pool, RetryAgent } from 'undici';
import { median, type Measured } from './case.js';

const CALLS = 20_000;
const CONCURRENT = 50;
const RUNS = 7;
/** The slow ones are given less to do; rates can be compared all the same. */
const FEW = CALLS / 10;

const SERVER = `
  const server = require('node:http').createServer((request, response) => { request.resume(); response.end('{"ok":true}'); });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
  process.stdin.on('end', () => process.exit()).resume();
`;
const TEXT = 'x'.repeat(280);

interface Peer {
  readonly name: string;
  readonly calls: number;
  call(n: number): Promise<unknown>;
}

/** What one run of a contender came to. */
interface Run {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly cpu: number;
}

/** POST calls over loopback, 50 at once, with every retry, breaker, bulkhead and time-out armed and none needed. */
export async function benchClient(): Promise<Measured[]> {
  const server = spawn(process.execPath, ['-e', SERVER], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [port] = (await once(server.stdout, 'data')) as [Buffer];
  const baseUrl = `http://127.0.0.1:${port.toString().trim()}`;
  const client = createHttpClient({ name: 'bench', baseUrl, connections: CONCURRENT });
  const pool = new Pool(baseUrl, { connections: CONCURRENT });
  const retried = new Pool(baseUrl, { connections: CONCURRENT });
  try {
    const peers = [
      {
        name: 'replaysafe',
        calls: CALLS,
        call: async (n: number) =>
          (await client.post('/', { idempotencyKey: `k-${n}`, json: { n, text: TEXT } })).json(),
      },
      { name: 'bare', calls: CALLS, call: (n: number) => undiciPost(pool, n) },
      { name: 'undici', calls: CALLS, call: retryAgentCall(retried, baseUrl) },
      ...others(baseUrl),
    ];
    return await race(peers);
  } finally {
    await client.stop();
    await Promise.all([pool.close(), retried.close()]);
    server.stdin.end();
  }
}

const headersOf = (n: number) => ({ 'content-type': 'application/json', 'idempotency-key': `k-${n}` });

async function undiciPost(pool: Pool, n: number): Promise<unknown> {
  const body = JSON.stringify({ n, text: TEXT });
  const answer = await pool.request({ path: '/', method: 'POST', headers: headersOf(n), body });
  return answer.body.json();
}

function retryAgentCall(pool: Pool, origin: string): Peer['call'] {
  const agent = new RetryAgent(pool, { maxRetries: 2, methods: ['POST'] });
  return async (n) => {
    const body = JSON.stringify({ n, text: TEXT });
    const answer = await agent.request({ origin, path: '/', method: 'POST', headers: headersOf(n), body });
    return answer.body.json();
  };
}

function others(baseUrl: string): Peer[] {
  const httpAgent = new HttpAgent({ keepAlive: true, maxSockets: CONCURRENT });
  const gotten = got.extend({
    agent: { http: httpAgent },
    retry: { limit: 2, methods: ['POST'] },
    timeout: { request: 30_000 },
  });
  const axed = axios.create({ baseURL: baseUrl, httpAgent, timeout: 30_000 });
  axiosRetry(axed, { retries: 2 });
  const kyed = ky.create({ retry: { limit: 2, methods: ['post'] }, timeout: 30_000 });
  return [
    {
      name: 'axios-retry',
      calls: FEW,
      call: async (n) => (await axed.post<unknown>('/', { n, text: TEXT }, { headers: headersOf(n) })).data,
    },
    {
      name: 'got',
      calls: FEW,
      call: (n) => gotten.post(`${baseUrl}/`, { json: { n, text: TEXT }, headers: headersOf(n) }).json(),
    },
    {
      name: 'ky',
      calls: FEW,
      call: (n) => kyed.post(`${baseUrl}/`, { json: { n, text: TEXT }, headers: headersOf(n) }).json(),
    },
  ];
}

/** In turn, A B A B, so that a busy machine slows all of them; the first round warms up. */
async function race(peers: readonly Peer[]): Promise<Measured[]> {
  const runs = new Map(peers.map(({ name }) => [name, [] as Run[]]));
  for (let round = 0; round <= RUNS; round++) {
    for (const peer of round % 2 === 0 ? peers : [...peers].reverse()) {
      const run = await callMany(peer);
      if (round > 0) runs.get(peer.name)!.push(run);
    }
  }
  const column = (name: string, unit: string, pick: (run: Run) => number): Measured[] =>
    [...runs].map(([contender, of]) => ({ case: name, contender, value: median(of.map(pick)), unit, runs: RUNS }));
  return [
    ...column('client.post', 'calls/s', (run) => run.perSecond),
    ...column('client.post.p50', 'ms', (run) => run.p50),
    ...column('client.post.p99', 'ms', (run) => run.p99),
    ...column('client.post.cpu', 'us/call', (run) => run.cpu),
  ];
}

async function callMany(peer: Peer): Promise<Run> {
  const { calls } = peer;
  let next = 0;
  const tookMs: number[] = [];
  const one = async (): Promise<void> => {
    while (next < calls) {
      const startedAt = performance.now();
      await peer.call(next++);
      tookMs.push(performance.now() - startedAt);
    }
  };
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: CONCURRENT }, one));
  const elapsedMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpuBefore);
  tookMs.sort((a, b) => a - b);
  return {
    perSecond: (calls * 1_000) / elapsedMs,
    p50: tookMs[Math.floor(calls * 0.5)]!,
    p99: tookMs[Math.floor(calls * 0.99)]!,
    cpu: (user + system) / calls,
  };
}
