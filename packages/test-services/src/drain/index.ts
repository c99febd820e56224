export { drainRun, type DrainRun, type DrainRunOptions } from './drain-run.js';
export { total, type Count, type Outcome } from './tally.js';
