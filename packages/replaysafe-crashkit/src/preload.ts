/**
 * For `node --import replaysafe-crashkit/preload service.js`: kills a program that knows nothing of this package.
 *
 * - `REPLAYSAFE_KILL_AT`: `<event>[:<nth>[:<signal>]]`, several parted by commas; empty or absent kills nothing.
 * - `REPLAYSAFE_KILL_MARKER`: the marker file of {@link killAt}; the first kill of any process that shares it is the only one.
 * - `REPLAYSAFE_KILL_LIST`: the file of {@link killByList}, for a test that decides as it goes.
 */
import { killAt, parseKillPoint } from './kill-at.js';
import { killByList } from './kill-list.js';

const marker = process.env['REPLAYSAFE_KILL_MARKER'];

for (const text of (process.env['REPLAYSAFE_KILL_AT'] ?? '').split(',').filter((part) => part !== '')) {
  const { event, nth, signal } = parseKillPoint(text);
  killAt(event, nth, signal, marker === undefined ? {} : { marker });
}

const list = process.env['REPLAYSAFE_KILL_LIST'];
if (list !== undefined && list !== '') killByList(list);
