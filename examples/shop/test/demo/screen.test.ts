import { describe, expect, test } from 'vitest';
import { createScreen, render, type View } from '../../src/demo/screen.js';

const view = (elapsedMs = 12_000): View => ({
  title: 'title',
  elapsedMs,
  totalMs: 45_000,
  phase: 'placing orders',
  client: { intended: [1, 2, 3], accepted: 2, openOrders: 1, retries: 7, replayed: 4 } as never,
  chaos: { kills: 5, sigkills: 3 } as never,
  shop: { instances: [{ name: 'orders-1', state: 'ready' }] } as never,
  progress: { orders: 2, open: 1, published: 2, charged: 2, ordersCharged: 2, providerCharges: 2, tasksOpen: 0 },
  absorbed: { consumer: 8, provider: 9 },
});

function fakeStream(isTTY: boolean) {
  const written: string[] = [];
  const stream = { isTTY, columns: 80, write: (text: string) => written.push(text) };
  return { written, screen: createScreen(stream as never) };
}

describe('the screen of the demo', () => {
  test('shows orders, kills, repeated tries, and what each guard absorbed', () => {
    const text = render(view(), ['  3 s SIGKILL to orders-1']).join('\n');
    for (const part of [
      '3 placed',
      '2 accepted',
      '5 in all',
      '7 by the client',
      '4 HTTP',
      '8 consumer',
      '9 provider',
    ]) {
      expect(text).toContain(part);
    }
    expect(text).toContain('SIGKILL to orders-1');
  });

  test('keeps its height, so that it can be drawn over itself', () => {
    expect(render(view(), [])).toHaveLength(render(view(), Array<string>(8).fill('news')).length);
  });

  test('is drawn over itself on a terminal', () => {
    const { written, screen } = fakeStream(true);
    screen.show(view());
    screen.show(view());
    const height = render(view(), []).length;
    expect(written[0]).not.toContain('\x1b[' + String(height) + 'A');
    expect(written[1]).toContain('\x1b[' + String(height) + 'A');
  });

  test('is a plain line now and then elsewhere', () => {
    const { written, screen } = fakeStream(false);
    for (let ms = 0; ms < 10_000; ms += 250) screen.show(view(ms));
    expect(written).toHaveLength(2);
    expect(written.join('')).not.toContain('\x1b');
  });
});
