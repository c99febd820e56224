import { emit } from '../events.js';
import { pause, type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { type Budget } from './budget.js';
import { STAGES, stageOf, type Phase } from './phases.js';
import { overran, type PhaseReport, type StepReport } from './report.js';
import { runStep, type RunningStep, type StepContext, type StepResult } from './step.js';
import { followersOf, usersOf, type Ordered } from './stop-order.js';

/** A registered resource as the stop sees it. */
export interface Entry extends Ordered {
  run(context: StepContext): Promise<StepResult | undefined>;
}

export interface ShutdownOptions {
  readonly budget: Budget;
  /** Live: what is registered while the stop runs is in it. */
  readonly entries: ReadonlyMap<string, Entry>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when HTTP, work and consumers have ended: nothing uses what is closed from now on. */
  readonly onUsersStopped: () => void;
}

export interface Shutdown {
  /** Runs all phases; never rejects. */
  run(): Promise<void>;
  /** Goes on by another budget, counted from now: what runs has less time, what follows as well. */
  hurry(budget: Budget): void;
  /** Takes care of an entry registered during the stop: at once, unless the turn of its phase is still to come. */
  join(entry: Entry): void;
  readonly phases: readonly PhaseReport[];
  readonly steps: readonly StepReport[];
  elapsedMs(): number;
}

/** What each follower in a chain of the same stage is left at least, in milliseconds, as far as there is time at all. */
const FOLLOWER_MS = 2_000;

export function createShutdown(options: ShutdownOptions): Shutdown {
  const { entries, clock, logger } = options;
  const beganAtMs = clock.monotonicMs();
  const phases: PhaseReport[] = [];
  const steps: StepReport[] = [];
  const running = new Map<string, Promise<StepReport>>();
  const underWay = new Map<Entry, RunningStep>();
  let { budget } = options;
  /** When the budget began to count, in milliseconds after the stop did. */
  let budgetFromMs = 0;
  let stage = 0;

  const elapsedMs = (): number => clock.monotonicMs() - beganAtMs;

  const endMs = (entry: Entry): number =>
    Math.max(
      budgetFromMs + budget.endsMs[entry.phase],
      ...usersOf(entry, entries)
        .filter((user) => stageOf(user.phase) === stageOf(entry.phase))
        .map(endMs),
    );

  const stepEndMs = (entry: Entry): number => {
    const end = endMs(entry);
    const followers = followersOf(entry, entries);
    return end - followers * Math.min(FOLLOWER_MS, Math.max(0, end - elapsedMs()) / (followers + 1));
  };

  const stopAfterUsers = async (entry: Entry): Promise<StepReport> => {
    await Promise.all(usersOf(entry, entries).map(stopOnce));
    const step = runStep(clock, {
      name: entry.name,
      phase: entry.phase,
      endsAtMs: beganAtMs + stepEndMs(entry),
      run: (context) => entry.run(context),
    });
    underWay.set(entry, step);
    const report = await step.report;
    underWay.delete(entry);
    steps.push(report);
    logStep(logger, report);
    emit('lifecycle.resource-stopped', {
      resource: report.name,
      durationMs: report.durationMs,
      outcome: report.outcome,
    });
    return report;
  };

  const stopOnce = (entry: Entry): Promise<StepReport> => {
    const known = running.get(entry.name);
    if (known) return known;
    const stopping = stopAfterUsers(entry);
    running.set(entry.name, stopping);
    return stopping;
  };

  const timed = async (phase: PhaseReport['phase'], body: () => Promise<boolean>): Promise<void> => {
    const startedMs = elapsedMs();
    emit('lifecycle.phase-started', { phase });
    const forced = await body();
    const durationMs = elapsedMs() - startedMs;
    phases.push({ phase, startedMs, durationMs, forced });
    logger.info({ phase, durationMs: Math.round(durationMs), forced }, 'shutdown phase ended');
    emit('lifecycle.phase-ended', { phase, durationMs, forced });
  };

  const runPhase = async (phase: Phase): Promise<void> => {
    const members = [...entries.values()].filter((entry) => entry.phase === phase);
    if (members.length === 0) return;
    if (phase === 'http' && budget.lameDuckMs > 0) {
      await timed('lame-duck', async () => {
        await pause(clock, budget.lameDuckMs);
        return false;
      });
    }
    await timed(phase, async () => (await Promise.all(members.map(stopOnce))).some(overran));
  };

  return {
    phases,
    steps,
    elapsedMs,
    run: async () => {
      for (stage = 0; stage < STAGES.length; stage++) {
        if (stage === 1) options.onUsersStopped();
        await Promise.all((STAGES[stage] ?? []).map(runPhase));
        await settled(running);
      }
    },
    hurry: (shorter) => {
      budget = shorter;
      budgetFromMs = elapsedMs();
      for (const [entry, step] of underWay) step.hurry(beganAtMs + stepEndMs(entry));
    },
    join: (entry) => {
      if (stageOf(entry.phase) <= stage) void stopOnce(entry);
    },
  };
}

/** Waits until everything that was begun has ended, what was begun meanwhile included. */
async function settled(running: ReadonlyMap<string, Promise<StepReport>>): Promise<void> {
  let seen = -1;
  while (seen !== running.size) {
    seen = running.size;
    await Promise.all(running.values());
  }
}

function logStep(logger: Logger, report: StepReport): void {
  const fields = { resource: report.name, phase: report.phase, durationMs: Math.round(report.durationMs) };
  if (report.outcome === 'stopped') logger.debug(fields, 'resource stopped');
  else if (report.outcome === 'failed') logger.error({ ...fields, err: report.error }, 'resource failed to stop');
  else logger.error({ ...fields, outcome: report.outcome }, 'resource did not stop in time');
}
