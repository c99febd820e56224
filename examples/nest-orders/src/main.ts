import 'reflect-metadata';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module';
import { settings } from './settings';

async function main(): Promise<void> {
  // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- how Nest documents it
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  await app.listen(settings.port, '127.0.0.1');
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  console.log(JSON.stringify({ listening: port }));
}

void main();
