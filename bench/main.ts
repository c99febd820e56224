/**
 * `npm run bench [-- <suite>…] [--json]`: compares the library with the same steps written by hand, in one run.
 * With `--json` each case is one line `{"case","contender","value","unit","runs"}`.
 */
import { parseArgs } from 'node:util';
import { type Measured } from './case.js';
import { benchClient } from './client.js';
import { benchRelay } from './relay.js';
import { benchTasks } from './tasks.js';

const SUITES: Readonly<Record<string, () => Promise<Measured[]>>> = {
  relay: benchRelay,
  client: benchClient,
  tasks: benchTasks,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'boolean', default: false } },
});
const unknown = positionals.filter((name) => !(name in SUITES));
if (unknown.length > 0) {
  console.error(`no suite is called ${unknown.join(', ')}; there are ${Object.keys(SUITES).join(', ')}`);
  process.exit(2);
}

for (const [name, suite] of Object.entries(SUITES)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  const measured = await suite();
  if (values.json) for (const one of measured) console.log(JSON.stringify(one));
  else print(measured);
}

function print(measured: readonly Measured[]): void {
  for (const { case: name, contender, value, unit, runs } of measured) {
    const bare = measured.find((other) => other.case === name && other.contender === 'bare');
    const ratio = bare === undefined || contender === 'bare' ? '' : `  ${(value / bare.value).toFixed(2)} of bare`;
    console.log(
      `${name.padEnd(36)} ${contender.padEnd(12)} ${value.toFixed(value < 100 ? 2 : 0).padStart(8)} ${unit} (median of ${runs})${ratio}`,
    );
  }
}
