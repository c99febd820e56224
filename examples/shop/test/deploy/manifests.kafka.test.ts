import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createDatabase, createTopics, freePort, type TestDatabase } from '@replaysafe/test-services';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

const root = fileURLToPath(new URL('../../../..', import.meta.url));

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly key: string } };
}
interface Container {
  readonly command: readonly [string, string];
  readonly env: readonly Variable[];
  readonly readinessProbe: { readonly httpGet: { readonly path: string } };
  readonly livenessProbe: { readonly httpGet: { readonly path: string } };
}

async function containerOf(service: string): Promise<Container> {
  const documents = parseAllDocuments(await readFile(join(root, `deploy/base/${service}.yaml`), 'utf8'));
  const deployment = documents.find((document) => document.get('kind') === 'Deployment');
  const { spec } = deployment!.toJS() as { spec: { template: { spec: { containers: [Container] } } } };
  return spec.template.spec.containers[0];
}

let folder: string;
let database: TestDatabase;
let child: ChildProcess | undefined;
const topic = `orders.confirmed.${randomBytes(4).toString('hex')}`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'replaysafe-deploy-'));
  database = await createDatabase(inject('databaseUrl'));
  await createTopics(inject('kafkaBrokers'), [{ topic }, { topic: `${topic}.dead` }]);
});

afterEach(() => {
  child?.kill('SIGKILL');
});

afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

describe.each([
  { service: 'orders', deadlineMs: 48_000 },
  { service: 'billing', deadlineMs: 58_000 },
  { service: 'provider', deadlineMs: 48_000 },
])('$service, started as its manifest says', ({ service, deadlineMs }) => {
  test('is asked on the paths of its probes, plans with its times, and stops with exit code 0 and a report', async () => {
    const { command, env, readinessProbe, livenessProbe } = await containerOf(service);
    const secrets: Record<string, string> = {
      [`${service}-database-url`]: database.url,
      'kafka-brokers': inject('kafkaBrokers'),
    };
    const given = env.map(({ name, value, valueFrom }) => [name, value ?? secrets[valueFrom!.secretKeyRef.key]]);
    const port = await freePort();
    const reportFile = join(folder, service);
    child = spawn(process.execPath, command.slice(1), {
      cwd: root,
      env: {
        PATH: process.env['PATH'],
        ...(Object.fromEntries(given) as Record<string, string>),
        // What a pod has for itself, and this machine shares with others.
        PORT: String(port),
        TERMINATION_LOG: reportFile,
        ORDERS_TOPIC: topic,
        KAFKA_GROUP: topic,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const log = text(child.stdout!);
    const ended = new Promise((resolve) =>
      child!.once('exit', (code, signal) => {
        resolve({ code, signal });
      }),
    );
    const status = async ({ httpGet }: Container['readinessProbe']): Promise<number> =>
      (await fetch(`http://127.0.0.1:${port}${httpGet.path}`)).status;
    await expect.poll(() => status(readinessProbe).catch(() => 0), { timeout: 30_000 }).toBe(200);
    expect(await status(livenessProbe)).toBe(200);

    child.kill('SIGTERM');
    await expect.poll(() => status(readinessProbe)).toBe(503);
    expect(await status(livenessProbe)).toBe(200);
    expect(await ended).toEqual({ code: 0, signal: null });
    expect(JSON.parse(await readFile(reportFile, 'utf8'))).toMatchObject({
      name: service,
      reason: 'SIGTERM',
      exitCode: 0,
    });
    expect(await log).toContain(`"deadlineMs":${deadlineMs},"msg":"stopping"`);
  });
});
