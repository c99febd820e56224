// Runs the demo with one guard off and fails unless its ledger shows the damage: `node .ci/demo-shows-damage.mjs <guard>`.
// The exit code of the demo alone would not do: it is not 0 as well when the demo could not run at all.
import { spawnSync } from 'node:child_process';

const [, , guard] = process.argv;
const { status, stdout } = spawnSync(
  'npm',
  ['run', '-s', 'demo', '--', `--unsafe=${guard}`, '--seconds', '30', '--json'],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  },
);
process.stdout.write(stdout);
let damage = 0;
try {
  const { lost, double, wrongAmount } = JSON.parse(stdout.trimEnd().split('\n').at(-1));
  damage = lost + double + wrongAmount;
} catch (error) {
  process.stderr.write(`The demo printed no ledger: ${error.message}\n`);
}
if (status !== 1 || !(damage > 0)) {
  process.stderr.write(`With --unsafe=${guard} the demo ended with ${status} and a damage of ${damage}\n`);
  process.exit(1);
}
