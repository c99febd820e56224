import { channel } from 'node:diagnostics_channel';
import { writeSync } from 'node:fs';

for (let turn = 1; turn <= 3; turn++) {
  writeSync(1, `before ${String(turn)}\n`);
  channel('replaysafe:outbox.marked').publish({ relay: 'r', ids: [], mode: 'single-phase' });
  writeSync(1, `after ${String(turn)}\n`);
}
