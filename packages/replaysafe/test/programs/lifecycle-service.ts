import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { pino, type DestinationStream } from 'pino';
import { createLifecycle, installSignals } from '../../src/lifecycle/index.js';
import { onEvent } from '../../src/events.js';

/**
 * A service whose faults are told on the command line, as JSON. Each line of its output is one JSON object: its log, or
 * `{ mark }` for what the test waits for.
 */
export interface ServiceConfig {
  readonly budget?: Record<string, number>;
  /** Resource → what it does when it is told to stop. */
  readonly faults?: Record<string, 'hang' | 'throw' | 'linger' | 'block'>;
  /** Do not say started(): the service is still coming up. */
  readonly reportFile?: string;
  readonly watchdog?: boolean;
  /** How often the signals are installed. */
  readonly installs?: number;
  /** GET /stop stops the lifecycle. */
  readonly stopsItself?: boolean;
  /** Log there, with pino and its transport in a thread, and nowhere else. */
  readonly pinoFile?: string;
  readonly neverStarted?: boolean;
  readonly workerRunMs?: number;
  readonly throwAtStop?: boolean;
  /** Answer /-/prestop on a port of its own. */
  readonly management?: boolean;
}

const config = JSON.parse(process.argv[2] ?? '{}') as ServiceConfig;
const write = (fields: object): void => void process.stdout.write(`${JSON.stringify(fields)}\n`);
const mark = (name: string, fields: object = {}): void => {
  write({ mark: name, ...fields });
};
const log =
  (level: string) =>
  (fields: object, message: string): void => {
    const err = 'err' in fields && fields.err instanceof Error ? { err: fields.err.message } : {};
    write({ level, message, ...fields, ...err });
  };

const threaded =
  config.pinoFile === undefined
    ? undefined
    : pino(pino.transport({ target: 'pino/file', options: { destination: config.pinoFile } }) as DestinationStream);
const lifecycle = createLifecycle({
  name: 'test-service',
  graceMs: 30_000,
  lameDuckMs: 100,
  httpDrainMs: 10_000,
  workMs: 5_000,
  consumersMs: 5_000,
  producersMs: 1_000,
  poolReserveMs: 1_000,
  exitMarginMs: 500,
  quietMs: 100,
  lingerMs: 50,
  ...config.budget,
  logger: threaded ?? { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
});
for (let n = 0; n < (config.installs ?? 1); n++) {
  installSignals(lifecycle, {
    ...(config.reportFile !== undefined && { reportFile: config.reportFile }),
    ...(config.watchdog !== undefined && { watchdog: config.watchdog }),
    ...(threaded && {
      flushLogs: () =>
        new Promise<void>((done) => {
          threaded.flush(() => {
            done();
          });
        }),
    }),
  });
}

const resource = (name: string, usedBy: string[] = []) => ({
  name,
  usedBy,
  stop: async (deadline: AbortSignal): Promise<void> => {
    mark(`stopping ${name}`);
    const fault = config.faults?.[name];
    if (fault === 'throw') throw new Error(`${name} cannot stop`);
    while (fault === 'block');
    if (fault === 'hang') await new Promise(() => undefined);
    if (fault === 'linger')
      await new Promise((resolve) => {
        deadline.addEventListener('abort', resolve);
      });
    mark(`stopped ${name}`);
  },
});

onEvent('lifecycle.stop-requested', () => {
  if (config.throwAtStop) {
    setTimeout(() => {
      throw new Error('thrown during the stop');
    });
  }
});

const server = createServer((request, response) => {
  if (lifecycle.health(request, response)) return;
  const url = new URL(request.url!, 'http://localhost');
  switch (url.pathname) {
    case '/slow':
      setTimeout(() => response.end('slow'), Number(url.searchParams.get('ms')));
      mark('slow request');
      return;
    case '/download':
      setImmediate(() => {
        response.end(Buffer.alloc(Number(url.searchParams.get('bytes')), 'x'));
        mark('download request');
      });
      return;
    case '/stop':
      if (config.stopsItself) void lifecycle.stop('by itself');
      response.end('stopping');
      return;
    case '/crash':
      setImmediate(() => {
        throw new Error('a bug');
      });
      return;
    case '/reject':
      void Promise.reject(new Error('a bug'));
      return;
    default:
      response.end('quick');
  }
});

lifecycle.server(server);
// Nobody uses it: its drain shows how long a quiet line takes.
lifecycle.server(createServer(), { name: 'unused' });
onEvent('lifecycle.http-drained', (event) => {
  mark(`drained ${event.server}`);
});
lifecycle.relay(resource('relay'));
lifecycle.consumer(resource('consumer'));
lifecycle.producer(resource('producer'));
lifecycle.pool(resource('pool'));
if (config.workerRunMs !== undefined) {
  lifecycle.worker({
    name: 'worker',
    everyMs: 1,
    run: async () => {
      mark('worker run begun');
      await new Promise((resolve) => setTimeout(resolve, config.workerRunMs));
      mark('worker run ended');
    },
  });
}

const listen = async (listener: Server): Promise<number> => {
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return (listener.address() as AddressInfo).port;
};

const startManagement = (): Promise<number> => {
  const management = createServer((request, response) => {
    if (!lifecycle.prestop(request, response)) response.writeHead(404).end();
  });
  return listen(lifecycle.server(management, { name: 'management', management: true }));
};

const managementPort = config.management ? await startManagement() : undefined;
const port = await listen(server);
if (!config.neverStarted) lifecycle.started();
mark('up', { port, managementPort });
