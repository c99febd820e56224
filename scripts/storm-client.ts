/** `npm run storm:client [-- rounds]`: the storm of the HTTP client's unit tests at full length, one seed for each round. */
import { storm } from '../packages/replaysafe/test/client/storm.js';

const rounds = Number(process.argv[2] ?? 100);
const CALLS = 1_000;

const total = { rounds, calls: 0, arrivals: 0, violations: 0 };
const ends: Record<string, number> = {};
for (let seed = 1; seed <= rounds; seed++) {
  const report = await storm(CALLS, seed);
  total.calls += report.calls;
  total.arrivals += report.arrivals;
  total.violations += report.violations.length;
  for (const [end, count] of Object.entries(report.ends)) ends[end] = (ends[end] ?? 0) + count;
  for (const violation of report.violations) process.stderr.write(`round ${seed}: ${violation}\n`);
}
process.stdout.write(`${JSON.stringify({ ...total, ends })}\n`);
process.exit(total.violations === 0 ? 0 : 1);
