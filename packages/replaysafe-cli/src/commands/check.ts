import { check } from '../check/check.js';
import { readInputs } from '../check/inputs.js';
import { at, reportJson, reportLines } from '../check/print.js';
import { reportSarif } from '../check/sarif.js';
import { readBudgetFile } from '../check/service-budget.js';
import { UsageError, type FileCommand } from '../command.js';

export const checkCommand: FileCommand = {
  name: 'check',
  needs: 'files',
  operands: '<files…|->',
  summary: 'check Kubernetes manifests, and with --budget what the service plans (exit code 1 where a rule is broken)',
  options: {
    budget: {
      type: 'string',
      value: '<file>',
      summary: 'JSON with the options of createLifecycle, or with several such objects by the name of their workload',
    },
    sarif: { type: 'boolean', summary: 'print SARIF 2.1.0 for code review' },
  },
  run: async ({ files, options, input }) => {
    if (files.length === 0) throw new UsageError('check needs files, directories, or - for standard input');
    if (options['sarif'] === true && options['json'] === true)
      throw new UsageError('--sarif and --json exclude each other');
    const budget = typeof options['budget'] === 'string' ? await readBudgetFile(options['budget']) : undefined;
    const { texts, unreadable } = await readInputs(files, input);
    const judged = check(texts, budget);
    const report = { ...judged, unreadable: [...unreadable, ...judged.unreadable] };
    const isSarif = options['sarif'] === true;
    return {
      json: isSarif ? reportSarif(report, process.cwd()) : reportJson(report),
      isDocument: isSarif,
      lines: reportLines(report),
      failed: report.findings.some(({ severity }) => severity === 'error'),
      unreadable: report.unreadable.map(({ place, message }) => `${at(place)}: ${message}`),
    };
  },
};
