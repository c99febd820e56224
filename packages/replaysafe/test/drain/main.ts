/**
 * `npm run test:drain [-- --runs 20 --latency 0,5,50 --servers node,koa --parallel 1 --write]`: every server under every
 * latency, each run with all kinds of clients, every second one with clients that never leave. Ends with 1 if anything was
 * lost or reset, or an exit came too late; `--write` puts the table into docs/drain.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { drainRun, total, type DrainRun } from '@replaysafe/test-services';
import { DRAIN_TIMES, SET_UPS } from './set-ups.js';

interface Row {
  readonly server: string;
  readonly oneWayMs: number;
  readonly runs: readonly DrainRun[];
}

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '20' },
    latency: { type: 'string', default: '0,5,50' },
    servers: { type: 'string', default: Object.keys(SET_UPS).join(',') },
    parallel: { type: 'string', default: '1' },
    slack: { type: 'string', default: '0' },
    write: { type: 'boolean', default: false },
  },
});
const servers = values.servers.split(',');
const unknown = servers.filter((name) => !(name in SET_UPS));
if (unknown.length > 0)
  throw new Error(`there is no ${unknown.join(', ')}; there are ${Object.keys(SET_UPS).join(', ')}`);

const jobs = values.latency.split(',').flatMap((latency) =>
  servers.flatMap((server) =>
    Array.from({ length: Number(values.runs) }, (_, n) => ({
      server,
      oneWayMs: Number(latency),
      sticky: n % 2 === 1,
    })),
  ),
);
const done: { server: string; oneWayMs: number; run: DrainRun }[] = [];
const queue = [...jobs];

async function work(): Promise<void> {
  for (let job = queue.shift(); job; job = queue.shift()) {
    const { server, oneWayMs, sticky } = job;
    const run = await drainRun({
      ...SET_UPS[server]!,
      ...DRAIN_TIMES,
      oneWayMs,
      sticky,
      slackMs: Number(values.slack),
    });
    done.push({ server, oneWayMs, run });
    const { complaints } = run;
    if (complaints.length > 0)
      console.log(`${server}, ${oneWayMs} ms${sticky ? ', sticky' : ''}: ${complaints.join('; ')}`);
    else if (done.length % 10 === 0) console.log(`${done.length} of ${jobs.length} runs`);
  }
}
await Promise.all(Array.from({ length: Number(values.parallel) }, work));

const rows: Row[] = values.latency.split(',').flatMap((latency) =>
  servers.map((server) => ({
    server,
    oneWayMs: Number(latency),
    runs: done.filter((each) => each.server === server && each.oneWayMs === Number(latency)).map(({ run }) => run),
  })),
);
const table = render(rows);
console.log(`\n${table}`);
if (values.write) writeTable(table);
process.exitCode = rows.some(({ runs }) => runs.some(({ complaints }) => complaints.length > 0)) ? 1 : 0;

function render(all: readonly Row[]): string {
  const head = [
    'server',
    'one-way latency',
    'runs',
    'requests answered',
    'lost',
    'reset',
    'crossed our FIN',
    'exits too late',
  ];
  const lines = all.map(({ server, oneWayMs, runs }) => {
    const counts = runs.flatMap((run) => run.counts);
    const late = runs.filter(({ exitMs, exitByMs }) => exitMs > exitByMs).length;
    const figures = [
      runs.length,
      ...(['answered', 'lost', 'reset', 'crossed'] as const).map((kind) => total(counts, kind)),
      late,
    ];
    return [server, `${oneWayMs} ms`, ...figures.map(String)];
  });
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function writeTable(text: string): void {
  const page = new URL('../../../../docs/drain.md', import.meta.url);
  const where = `${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${availableParallelism()} cores`;
  const marker = /<!-- result -->[\s\S]*<!-- end -->/;
  writeFileSync(
    page,
    readFileSync(page, 'utf8').replace(marker, `<!-- result -->\n\n${where}:\n\n${text}\n\n<!-- end -->`),
  );
}
