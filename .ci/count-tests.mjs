// Prints "passed failed skipped" of a vitest JSON report: `node .ci/count-tests.mjs <report> <exit code of the runner>`.
import { readFileSync } from 'node:fs';

const [, , file, exitCode] = process.argv;
let passed = 0;
let failed = 0;
let skipped = 0;
try {
  for (const { status, assertionResults } of JSON.parse(readFileSync(file, 'utf8')).testResults) {
    const states = assertionResults.map((result) => result.status);
    passed += states.filter((state) => state === 'passed').length;
    failed += states.filter((state) => state === 'failed').length;
    skipped += states.filter((state) => state !== 'passed' && state !== 'failed').length;
    // A file that could not be loaded, or whose hooks failed, has no failed test of its own.
    if (status === 'failed' && !states.includes('failed')) failed += 1;
  }
} catch (error) {
  process.stderr.write(`No report of the tests: ${error.message}\n`);
}
// The runner may fail beside its tests: services that do not start, an unhandled rejection, a time limit.
if (exitCode !== '0' && failed === 0) failed = 1;
// Nothing ran: that is no success either.
if (passed + failed + skipped === 0) failed = 1;
process.stdout.write(`${passed} ${failed} ${skipped}`);
