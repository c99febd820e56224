import { runProgram, START_FAILED } from '../shop/program.js';
import { startInfrastructure } from '../shop/infrastructure.js';
import { GUARDS } from '../service/guards.js';
import { runDemo } from './run.js';
import { parseDemoOptions, USAGE } from './options.js';
import { isSafe } from './report.js';
import { createScreen } from './screen.js';
import { switchedOff } from './weather.js';

runProgram(async (ending) => {
  let options: ReturnType<typeof parseDemoOptions>;
  try {
    options = parseDemoOptions(process.argv.slice(2), () => Math.floor(Math.random() * 1_000_000));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    return START_FAILED;
  }
  if (options === 'help') {
    console.log(USAGE);
    return 0;
  }
  // With --json, stdout belongs to the one object.
  const screen = createScreen(options.json ? process.stderr : process.stdout);
  screen.say(`seed ${String(options.seed)}`);
  if (options.unsafe !== undefined) {
    const off = switchedOff(options.unsafe);
    screen.say(`UNSAFE: switched off ${off.join(' and ')}`);
    for (const guard of off) screen.say(`  ${guard}: ${GUARDS[guard]}`);
  }
  screen.say('starting PostgreSQL and Kafka');
  const infrastructure = await startInfrastructure((line) => {
    screen.say(line);
  }, ending);
  if (infrastructure === undefined) return ending.reason as number;
  try {
    const outcome = await runDemo(options, infrastructure, screen, ending);
    if (outcome === undefined) return ending.reason as number;
    if (options.json) process.stdout.write(JSON.stringify(outcome.result) + '\n');
    return isSafe(outcome.result) ? 0 : 1;
  } catch (error) {
    if (ending.aborted) return ending.reason as number;
    throw error;
  } finally {
    await infrastructure.stop();
  }
});
