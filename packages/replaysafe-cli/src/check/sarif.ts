import { isAbsolute, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Report } from './check.js';
import type { Finding, Place } from './finding.js';
import { STDIN } from './inputs.js';
import { RULE_CODES, RULES } from './rule-table.js';

const LEVELS = { error: 'error', hint: 'note' } as const;

/** The report as SARIF 2.1.0, which code reviews show beside the lines. */
export function reportSarif(report: Report, folder: string): Readonly<Record<string, unknown>> {
  const seen = new Map<string, number>();
  const notification = (level: string) => (item: { readonly place: Place; readonly message: string }) => ({
    level,
    message: { text: item.message },
    locations: [location(item.place, folder)],
  });
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'replaysafe',
            rules: RULE_CODES.map((code) => ({
              id: code,
              shortDescription: { text: RULES[code] },
              help: { text: `${code}: ${RULES[code]}. See docs/guides/kubernetes.md of replaysafe.` },
              defaultConfiguration: { level: 'error' },
            })),
          },
        },
        columnKind: 'utf16CodeUnits',
        invocations: [
          {
            executionSuccessful: report.unreadable.length === 0,
            toolExecutionNotifications: [
              ...report.unreadable.map(notification('error')),
              ...report.notes
                .map((note) => ({ ...note, message: `${note.subject}: cannot tell ${note.message}` }))
                .map(notification('note')),
            ],
          },
        ],
        results: report.findings.map((finding) => result(finding, seen, folder)),
      },
    ],
  };
}

function result(finding: Finding, seen: Map<string, number>, folder: string): Readonly<Record<string, unknown>> {
  const { code, severity, place, subject, message } = finding;
  const kind = `${code} ${place.file} ${subject}`;
  const nth = (seen.get(kind) ?? 0) + 1;
  seen.set(kind, nth);
  return {
    ruleId: code,
    ruleIndex: RULE_CODES.indexOf(code),
    level: LEVELS[severity],
    message: { text: `${subject}: ${message}` },
    locations: [location(place, folder)],
    // The same finding on another line is no new one; a second of its kind on the same container is.
    partialFingerprints: { 'replaysafe/v1': nth === 1 ? kind : `${kind} ${nth}` },
  };
}

function location({ file, line, column }: Place, folder: string): Readonly<Record<string, unknown>> {
  return {
    physicalLocation: {
      artifactLocation: { uri: uriOf(file, folder) },
      region: { startLine: line, startColumn: column },
    },
  };
}

/** Relative to the folder where the file is below it, since a review knows no other paths. */
function uriOf(file: string, folder: string): string {
  if (file === STDIN) return 'stdin';
  const path = isAbsolute(file) ? relative(folder, file) : file;
  if (path.startsWith('..')) return pathToFileURL(file).href;
  return path.replaceAll('\\', '/').replace(/^\.\//, '').split('/').map(encodeURIComponent).join('/');
}
