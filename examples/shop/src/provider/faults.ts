/** How the provider is told to misbehave. */
export interface Faults {
  /** Milliseconds between the work, already committed, and its answer: the caller times out on a charge that was made. */
  readonly slowMs: number;
  /** Share of requests, 0 to 1, that are answered 503 before any work; from 2 on a number of requests. */
  readonly fail503: number;
  /** Share of requests, 0 to 1, whose connection is dropped after the work, without an answer; from 2 on a number. */
  readonly dropAfterWork: number;
}

export const NO_FAULTS: Faults = { slowMs: 0, fail503: 0, dropAfterWork: 0 };

/** Faults as they are used up, request by request. */
export class FaultBox {
  #faults = NO_FAULTS;
  #left = { fail503: 0, dropAfterWork: 0 };

  get current(): Faults {
    return this.#faults;
  }

  set(faults: Faults): void {
    this.#faults = faults;
    this.#left = { fail503: faults.fail503, dropAfterWork: faults.dropAfterWork };
  }

  /** Whether this request is to be hit. */
  hits(name: 'fail503' | 'dropAfterWork'): boolean {
    const value = this.#faults[name];
    if (value < 2) return Math.random() < value;
    this.#left[name] -= 1;
    return this.#left[name] >= 0;
  }
}

/** Reads the body of `PUT /faults`: what is not said is off. Says what is wrong, or gives the faults. */
export function parseFaults(body: unknown): Faults | string {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return 'the body must be a JSON object';
  const faults = { ...NO_FAULTS };
  for (const [name, given] of Object.entries(body as Record<string, unknown>)) {
    if (!Object.hasOwn(NO_FAULTS, name)) return `"${name}" is none of ${Object.keys(NO_FAULTS).join(', ')}`;
    const value = given === true ? 1 : given === false || given === null ? 0 : given;
    if (typeof value !== 'number' || !Number.isFinite(value) || value < 0)
      return `${name} must be a number of at least 0`;
    if (name === 'slowMs' ? value > 60_000 : value > 1 && !Number.isInteger(value)) {
      return name === 'slowMs' ? 'slowMs must be at most 60000' : `${name} must be a share up to 1, or a whole number`;
    }
    faults[name as keyof Faults] = value;
  }
  return faults;
}
