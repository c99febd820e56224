import type { Chaos } from './chaos.js';
import type { Books, Progress } from './books.js';
import type { OrderingClient } from './ordering-client.js';
import type { Shop } from '../shop/shop.js';
import type { InstanceState } from '../shop/instance.js';

const PLAIN_EVERY_MS = 5_000;
const NEWS_LINES = 8;

/** All that is shown while the demo runs. */
export interface View {
  readonly title: string;
  readonly elapsedMs: number;
  readonly totalMs: number;
  readonly phase: string;
  readonly client: OrderingClient;
  readonly chaos: Chaos;
  readonly shop: Shop;
  readonly progress: Progress;
  readonly absorbed: Books['absorbed'];
}

export interface Screen {
  /** One line, at once or among the news. */
  say(line: string): void;
  show(view: View): void;
  /** Leaves the screen as it is; what comes next stands below. */
  leave(): void;
}

/** One screen that is drawn again and again on a terminal, lines of text elsewhere. */
export function createScreen(out: NodeJS.WriteStream): Screen {
  return out.isTTY ? new DrawnScreen(out) : new PlainScreen(out);
}

class PlainScreen implements Screen {
  readonly #out: NodeJS.WriteStream;
  #shownAtMs = -Infinity;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  say(line: string): void {
    this.#out.write(line + '\n');
  }

  show(view: View): void {
    if (view.elapsedMs - this.#shownAtMs < PLAIN_EVERY_MS) return;
    this.#shownAtMs = view.elapsedMs;
    const { client, chaos, progress, absorbed } = view;
    this.say(
      `${seconds(view.elapsedMs)} ${view.phase}: ${String(client.accepted)} orders accepted, ${String(progress.published)} published, ` +
        `${String(progress.charged)} charged, ${String(chaos.kills)} kills, ${String(client.retries)} tries repeated, ` +
        `absorbed ${String(client.replayed)} http ${String(absorbed.consumer)} consumer ${String(absorbed.provider)} provider`,
    );
  }

  leave(): void {
    // Lines need no cleaning up.
  }
}

const STATE_SIGN: Readonly<Record<InstanceState, string>> = {
  ready: '\x1b[32m●\x1b[0m',
  starting: '\x1b[33m◐\x1b[0m',
  stopping: '\x1b[33m○\x1b[0m',
  down: '\x1b[31m✗\x1b[0m',
};

class DrawnScreen implements Screen {
  readonly #out: NodeJS.WriteStream;
  readonly #news: string[] = [];
  #drawnLines = 0;
  #view: View | undefined;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  say(line: string): void {
    if (this.#view === undefined) {
      this.#out.write(line + '\n');
      return;
    }
    this.#news.push(`${seconds(this.#view.elapsedMs)} ${line}`);
    if (this.#news.length > NEWS_LINES) this.#news.shift();
    this.#draw(this.#view);
  }

  show(view: View): void {
    this.#view = view;
    this.#draw(view);
  }

  leave(): void {
    this.#view = undefined;
    this.#drawnLines = 0;
    this.#out.write('\n');
  }

  #draw(view: View): void {
    const width = this.#out.columns;
    const lines = render(view, this.#news).map((line) => (line.includes('\x1b') ? line : line.slice(0, width - 1)));
    const up = this.#drawnLines > 0 ? `\x1b[${String(this.#drawnLines)}A` : '';
    this.#drawnLines = lines.length;
    this.#out.write(up + lines.map((line) => `\x1b[2K${line}\n`).join('') + '\x1b[J');
  }
}

/** The lines of the screen; exported for its test. */
export function render(view: View, news: readonly string[]): string[] {
  const { client, chaos, shop, progress, absorbed } = view;
  const done = Math.min(1, view.elapsedMs / view.totalMs);
  const bar = '█'.repeat(Math.round(done * 40)).padEnd(40, '░');
  const row = (name: string, ...values: string[]): string => `  ${name.padEnd(22)}${values.join('   ')}`;
  const count = (value: number, of: string): string => `${String(value).padStart(6)} ${of}`;
  return [
    view.title,
    `  ${bar} ${seconds(view.elapsedMs)} of ${seconds(view.totalMs)}  ${view.phase}`,
    '',
    `  ${shop.instances.map((instance) => `${STATE_SIGN[instance.state]} ${instance.name}`).join('  ')}`,
    '',
    row(
      'orders',
      count(client.intended.length, 'placed'),
      count(client.accepted, 'accepted'),
      count(client.openOrders, 'without an answer yet'),
    ),
    row('events', count(progress.published, 'published'), count(progress.open, 'waiting in the outbox')),
    row('charges', count(progress.charged, 'recorded'), count(progress.providerCharges, 'at the provider')),
    row('kills', count(chaos.kills, 'in all'), count(chaos.sigkills, 'by SIGKILL')),
    row('tries repeated', count(client.retries, 'by the client, same key')),
    row(
      'duplicates absorbed',
      count(client.replayed, 'HTTP'),
      count(absorbed.consumer, 'consumer'),
      count(absorbed.provider, 'provider'),
    ),
    '',
    ...Array.from({ length: NEWS_LINES }, (_, index) => (news[index] === undefined ? '' : `  ${news[index]}`)),
  ];
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(0).padStart(3)} s`;
}
