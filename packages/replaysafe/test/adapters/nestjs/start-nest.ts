/* eslint-disable @typescript-eslint/no-extraneous-class, @typescript-eslint/no-unsafe-class-instance-assignment -- how Nest is written */
import { request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import 'reflect-metadata';
import { type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ReplaysafeModule, type ReplaysafeModuleOptions } from '../../../src/adapters/nestjs.js';
import { createLifecycle, type Lifecycle, type LifecycleOptions } from '../../../src/lifecycle/index.js';
import { silentLogger } from '../../../src/ports/logger.js';

export type Platform = 'express' | 'fastify';

export interface StartedNest {
  readonly app: INestApplication;
  readonly lifecycle: Lifecycle;
  readonly url: string;
  /** What happened, in order. */
  readonly trail: string[];
  /** Resolves when the slow request has reached the application. */
  readonly slowArrived: Promise<void>;
  /** Resolves when `GET /events`, which never ends by itself, has sent its first event. */
  readonly eventsOpen: Promise<void>;
  /** Lets the slow request end. */
  readonly finishSlow: () => void;
}

export const QUICK: LifecycleOptions = {
  graceMs: 20_000,
  lameDuckMs: 20,
  httpDrainMs: 3_000,
  workMs: 1_000,
  consumersMs: 1_000,
  producersMs: 1_000,
  poolReserveMs: 500,
  exitMarginMs: 500,
  quietMs: 40,
  lingerMs: 20,
  logger: silentLogger,
};

/** Hooks of the stop as an application writes them. */
export function hooksOf(name: string, trail: string[], faults: { throws?: boolean; hangs?: boolean } = {}): object {
  const hook = (hookName: string) => async (): Promise<void> => {
    trail.push(`${name}.${hookName}`);
    if (faults.throws) throw new Error(`${name} cannot stop`);
    if (faults.hangs) await new Promise(() => undefined);
  };
  return {
    onModuleDestroy: hook('onModuleDestroy'),
    beforeApplicationShutdown: hook('beforeApplicationShutdown'),
    onApplicationShutdown: hook('onApplicationShutdown'),
  };
}

type FrameworkResponse = ServerResponse & { readonly raw?: ServerResponse; hijack?(): void };

/** A Nest application with the module, `GET /slow`, and providers whose hooks leave a trail. */
export async function startNest(
  platform: Platform,
  options: ReplaysafeModuleOptions & {
    providers?: readonly [string, object][];
    trail?: string[];
    budget?: object;
  } = {},
): Promise<StartedNest> {
  const { providers = [], trail = [], budget, ...moduleOptions } = options;
  const lifecycle = createLifecycle({ ...QUICK, ...budget });
  class Root {}
  const root = {
    module: Root,
    imports: [ReplaysafeModule.forRoot({ lifecycle, signals: false, ...moduleOptions })],
    providers: providers.map(([provide, instance]) => ({ provide, useFactory: () => instance })),
  };
  const app = await NestFactory.create(root, adapterOf(platform), { logger: false, abortOnError: false });
  app.setGlobalPrefix('api');
  return listening(app, lifecycle, trail);
}

/** The same as the guide shows it without the module. */
export async function startPlain(platform: Platform, trail: string[]): Promise<StartedNest> {
  const lifecycle = createLifecycle(QUICK);
  class Root {}
  const root = { module: Root, providers: [{ provide: 'a', useFactory: () => hooksOf('a', trail) }] };
  const app = await NestFactory.create(root, adapterOf(platform), { logger: false, abortOnError: false });
  lifecycle.server(app.getHttpServer() as Server);
  lifecycle.producer({ name: 'nest', stop: () => app.close() });
  const started = await listening(app, lifecycle, trail);
  lifecycle.started();
  return started;
}

const adapterOf = (platform: Platform): ExpressAdapter | FastifyAdapter =>
  platform === 'express' ? new ExpressAdapter() : new FastifyAdapter();

async function listening(app: INestApplication, lifecycle: Lifecycle, trail: string[]): Promise<StartedNest> {
  let finishSlow = (): void => undefined;
  let arrived = (): void => undefined;
  const released = new Promise<void>((resolve) => (finishSlow = resolve));
  const slowArrived = new Promise<void>((resolve) => (arrived = resolve));
  let eventsOpened = (): void => undefined;
  const eventsOpen = new Promise<void>((resolve) => (eventsOpened = resolve));
  const adapter = app.getHttpAdapter();
  adapter.get('/slow', (_request: unknown, response: FrameworkResponse) => {
    response.hijack?.();
    arrived();
    void released.then(() => {
      trail.push('slow answered');
      (response.raw ?? response).end('slow');
    });
  });
  adapter.get('/events', (_request: unknown, response: FrameworkResponse) => {
    response.hijack?.();
    const stream = response.raw ?? response;
    stream.writeHead(200, { 'content-type': 'text/event-stream' });
    stream.write('data: hello\n\n');
    eventsOpened();
  });
  adapter.get('/quick', (_request: unknown, response: FrameworkResponse) => {
    response.hijack?.();
    (response.raw ?? response).end('quick');
  });
  await app.listen(0, '127.0.0.1');
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  return { app, lifecycle, url: `http://127.0.0.1:${port}`, trail, slowArrived, finishSlow, eventsOpen };
}

/** A GET whose headers can be looked at; no agent, so that nothing is kept between tests. */
export function ask(url: string): Promise<{ status: number; headers: IncomingMessage['headers']; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { agent: false, headers: { connection: 'keep-alive' } }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}
