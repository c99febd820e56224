import type { Report } from './check.js';
import type { Place } from './finding.js';

/** One line for each finding, as compilers print theirs, and a sum. */
export function reportLines(report: Report): string[] {
  const errors = report.findings.filter(({ severity }) => severity === 'error').length;
  return [
    ...report.findings.map(
      ({ place, severity, code, subject, message }) => `${at(place)}: ${severity} ${code} ${subject}: ${message}`,
    ),
    ...report.notes.map(({ place, subject, message }) => `${at(place)}: note ${subject}: cannot tell ${message}`),
    `${count(errors, 'error')}, ${count(report.findings.length - errors, 'hint')} in ${count(report.workloads, 'workload')} of ${count(report.files, 'file')}`,
  ];
}

export function reportJson(report: Report): Readonly<Record<string, unknown>> {
  const flat = <Item extends { readonly place: Place }>({ place, ...rest }: Item) => ({ ...place, ...rest });
  return {
    findings: report.findings.map(flat),
    notes: report.notes.map(flat),
    unreadable: report.unreadable.map(flat),
    files: report.files,
    workloads: report.workloads,
  };
}

export function at({ file, line, column }: Place): string {
  return `${file}:${line}:${column}`;
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}
