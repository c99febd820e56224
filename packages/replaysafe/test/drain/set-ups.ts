import { fileURLToPath } from 'node:url';
import { type DrainRunOptions } from '@replaysafe/test-services';
import { TIMES } from './servers/times.js';

type SetUp = Pick<DrainRunOptions, 'command' | 'speaks'>;

const program = (file: string, ...args: string[]): DrainRunOptions['command'] => [
  process.execPath,
  '--import',
  'tsx',
  fileURLToPath(new URL(`servers/${file}.ts`, import.meta.url)),
  ...args,
];

/** Every server that is drained. Those that speak HTTP/2 are asked over it. */
export const SET_UPS: Readonly<Record<string, SetUp>> = {
  node: { command: program('node') },
  'express-4': { command: program('express', '4') },
  'express-5': { command: program('express', '5') },
  fastify: { command: program('fastify') },
  'nest-express': { command: program('nest', 'express') },
  'nest-fastify': { command: program('nest', 'fastify') },
  koa: { command: program('koa') },
  hono: { command: program('hono') },
  http2: { command: program('http2'), speaks: 'http2' },
  https2: { command: program('https2'), speaks: 'https2' },
};

/** `server.close()`, as a check of the test itself. */
export const BARE: SetUp = { command: program('bare') };

/** The times that the servers were given. */
export const DRAIN_TIMES = { lameDuckMs: TIMES.lameDuckMs, httpEndMs: TIMES.lameDuckMs + TIMES.httpDrainMs };
