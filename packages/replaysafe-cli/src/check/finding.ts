import type { RuleCode } from './rule-table.js';

/** Where something stands; lines and columns count from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** A file as a whole. */
export function startOf(file: string): Place {
  return { file, line: 1, column: 1 };
}

/** *error*: the rule is broken in the cluster. *hint*: it holds, but not as the standard writes it, or may not hold. */
export type Severity = 'error' | 'hint';

export interface Finding {
  readonly code: RuleCode;
  readonly severity: Severity;
  readonly place: Place;
  /** `Deployment/orders`, with the container where one is meant. */
  readonly subject: string;
  readonly message: string;
}

/** What the files cannot tell. */
export interface Note {
  readonly place: Place;
  readonly subject: string;
  readonly message: string;
}

/** A file that cannot be judged at all. */
export interface Unreadable {
  readonly place: Place;
  readonly message: string;
}

/** Collects what the rules have to say about one workload. */
export interface Judge {
  readonly error: Find;
  readonly hint: Find;
  readonly cannotTell: (place: Place, message: string, container?: string) => void;
}

type Find = (code: RuleCode, place: Place, message: string, container?: string) => void;

export class Verdicts {
  readonly findings: Finding[] = [];
  readonly notes: Note[] = [];

  about(subject: string): Judge {
    const named = (container: string | undefined): string =>
      container === undefined ? subject : `${subject} container ${container}`;
    const find =
      (severity: Severity) =>
      (code: RuleCode, place: Place, message: string, container?: string): void => {
        this.findings.push({ code, severity, place, subject: named(container), message });
      };
    return {
      error: find('error'),
      hint: find('hint'),
      cannotTell: (place, message, container) => {
        this.notes.push({ place, subject: named(container), message });
      },
    };
  }
}
