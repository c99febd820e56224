/** The times of the servers of the drain tests, in milliseconds. */
export const TIMES = { lameDuckMs: 500, httpDrainMs: 5_000 };
