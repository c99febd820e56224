/* eslint-disable @typescript-eslint/no-extraneous-class, @typescript-eslint/no-unsafe-class-instance-assignment -- how Nest is written */
import 'reflect-metadata';
import { type IncomingMessage } from 'node:http';
import { type AddressInfo, type Server } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Controller, Get, HttpCode, Post, Query, Req, Sse, StreamableFile } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { interval, map } from 'rxjs';
import { ReplaysafeModule } from '../../../src/adapters/nestjs.js';
import { DOWNLOAD, pieces, slowly, withWebSockets } from './serving.js';
import { TIMES } from './times.js';

/** A Nest application on the platform that is named in the first argument. */
const onExpress = process.argv[2] === 'express';

class Routes {
  fast(): string {
    return 'fast';
  }

  async slow(ms: string): Promise<string> {
    await slowly(ms);
    return 'slow';
  }

  stream(): StreamableFile {
    return new StreamableFile(Readable.from(pieces(), { objectMode: false }));
  }

  download(): StreamableFile {
    return new StreamableFile(DOWNLOAD);
  }

  async upload(request: IncomingMessage): Promise<string> {
    // Fastify has read it by then.
    if (onExpress) await text(request);
    return 'taken';
  }

  sse(): unknown {
    return interval(50).pipe(map(() => ({ data: 'tick' })));
  }
}

// Decorators called by hand: this program runs from TypeScript that knows none.
const { prototype } = Routes;
const on = (method: keyof Routes, decorate: MethodDecorator): void => {
  decorate(prototype, method, Object.getOwnPropertyDescriptor(prototype, method) ?? {});
};
on('fast', Get('fast'));
on('slow', Get('slow'));
Query('ms')(prototype, 'slow', 0);
on('stream', Get('stream'));
on('download', Get('download'));
on('upload', Post('upload'));
on('upload', HttpCode(200));
Req()(prototype, 'upload', 0);
on('sse', Sse('sse'));
Controller()(Routes);

const root = {
  module: class Root {},
  imports: [ReplaysafeModule.forRoot({ lifecycle: { name: 'drained', ...TIMES } })],
  controllers: [Routes],
};
const adapter = onExpress ? new ExpressAdapter() : new FastifyAdapter({ bodyLimit: 10_000_000 });
const app = await NestFactory.create(root, adapter, { logger: false });
const server = app.getHttpServer() as Server;
withWebSockets(server as never);
await app.listen(0, '127.0.0.1');
process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
