/* eslint-disable @typescript-eslint/no-extraneous-class, @typescript-eslint/no-unsafe-class-instance-assignment -- how Nest is written */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ReplaysafeModule } from '../../src/adapters/nestjs.js';

/** A Nest service for tests of signals. Each line of its output is one JSON object. */
const [platform, nestHandlers] = process.argv.slice(2) as ['express' | 'fastify', 'enableShutdownHooks' | 'ours alone'];
const say = (fields: object): void => void process.stdout.write(`${JSON.stringify(fields)}\n`);
const ignore = (): void => undefined;
const log = (fields: object, message: string): void => {
  say({ message, ...fields });
};

// Long enough for a signal that Nest sends again to arrive before the exit.
const flushLogs = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 100));

class Root {}
const hook = (name: string) => (signal?: string) => {
  say({ mark: name, signal });
};
const hooks = { onModuleDestroy: hook('destroy'), onApplicationShutdown: hook('shutdown') };
const lifecycle = { lameDuckMs: 50, quietMs: 50, logger: { debug: ignore, info: log, warn: log, error: log } };
const root = {
  module: Root,
  imports: [ReplaysafeModule.forRoot({ lifecycle, signals: { flushLogs } })],
  providers: [{ provide: 'hooks', useFactory: () => hooks }],
};
const adapter = platform === 'express' ? new ExpressAdapter() : new FastifyAdapter();
const app = await NestFactory.create(root, adapter, { logger: false });
if (nestHandlers === 'enableShutdownHooks') {
  app.enableShutdownHooks();
  // An application that has a handler of its own as well, which somebody calls twice.
  process.on('SIGTERM', () => {
    void app.close();
    void app.close();
  });
}
await app.listen(0, '127.0.0.1');
say({ mark: 'up', port: ((app.getHttpServer() as Server).address() as AddressInfo).port });
