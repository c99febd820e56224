/**
 * What is stopped when. The first three run side by side from the first moment; each later one begins when all before it
 * have ended, so that nothing is closed under the hands of what uses it (R-SHUT-DB-1).
 *
 * `management` holds the servers that answer probes and metrics to the very end.
 */
export const PHASES = ['http', 'work', 'consumers', 'producers', 'pools', 'management'] as const;

export type Phase = (typeof PHASES)[number];

/** The phases in the order in which they may begin; what stands together runs side by side. */
export const STAGES: readonly (readonly Phase[])[] = [
  ['http', 'work', 'consumers'],
  ['producers'],
  ['pools'],
  ['management'],
];

export function stageOf(phase: Phase): number {
  return STAGES.findIndex((stage) => stage.includes(phase));
}
