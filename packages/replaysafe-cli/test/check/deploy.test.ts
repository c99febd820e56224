import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { budgetOf } from 'replaysafe/lifecycle';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, type Document } from 'yaml';
import { RULE_CODES } from '../../src/check/rule-table.js';
import { run } from '../../src/run.js';
import { changed, messages, verdicts } from './manifests.js';

const folder = fileURLToPath(new URL('../../../../deploy', import.meta.url));
const read = (name: string): string => readFileSync(`${folder}/${name}.yaml`, 'utf8');

interface Container {
  readonly command: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly terminationMessagePath: string;
}
interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [Container];
}

const isDeployment = (document: Document): boolean => document.get('kind') === 'Deployment';

function podOf(service: string): Pod {
  const deployment = parseAllDocuments(read(`base/${service}`)).find(isDeployment);
  return (deployment?.toJS() as { spec: { template: { spec: Pod } } }).spec.template.spec;
}

test('replaysafe check has nothing to say about the manifests of deploy/', async () => {
  const out: string[] = [];
  const streams = { out: (text: string) => out.push(text), err: (text: string) => out.push(text) };
  const code = await run(['check', folder], {}, { ...streams, input: async () => '' });
  expect({ code, out }).toEqual({ code: 0, out: ['0 errors, 0 hints in 3 workloads of 6 files'] });
});

test.each([
  ['      terminationGracePeriodSeconds: 60\n', '', 'error R-SHUT-K8S-1'],
  ['      maxUnavailable: 0\n', '      maxUnavailable: 1\n', 'error R-SHUT-K8S-3'],
  ['                seconds: 10\n', '                seconds: 5\n', 'error R-SHUT-HTTP-2'],
  ['path: /health/ready\n', 'path: /health/live\n', 'error R-SHUT-CFG-4'],
  ["value: '10000'\n", "value: '0'\n", 'error R-SHUT-OBS-1'],
])('deploy/base/orders.yaml is judged: with %j as %j it breaks %s', (from, to, verdict) => {
  expect(verdicts(changed(read('base/orders'), [from, to])).join('\n')).toContain(verdict);
});

describe.each(['orders', 'billing', 'provider'])('deploy/base/%s.yaml', (service) => {
  const { terminationGracePeriodSeconds, containers } = podOf(service);
  const [{ env, lifecycle, terminationMessagePath }] = containers;
  const values = new Map(env.map(({ name, value }) => [name, value]));

  test('R-SHUT-OBS-1: tells the service what it gives, and createLifecycle can plan its stop with that', () => {
    const told = { graceMs: Number(values.get('GRACE_MS')), preStopMs: Number(values.get('PRE_STOP_MS') ?? 0) };
    expect(told).toEqual({
      graceMs: terminationGracePeriodSeconds * 1_000,
      preStopMs: (lifecycle?.preStop.sleep.seconds ?? 0) * 1_000,
    });
    expect(budgetOf(told).watchdogMs).toBeLessThan(told.graceMs - told.preStopMs);
  });

  test('has the report written where Kubernetes reads it', () => {
    expect(values.get('TERMINATION_LOG')).toBe(terminationMessagePath);
  });
});

describe('deploy/exec-pre-stop', () => {
  interface Kustomization {
    readonly patches: readonly [{ readonly target: { readonly name: string }; readonly patch: string }];
  }
  const [{ target, patch }] = (parse(read('exec-pre-stop/kustomization')) as Kustomization).patches;
  const operations = parse(patch) as { op: string; path: string; value: unknown }[];

  test('is for every service that has a hook', () => {
    const hooked = ['orders', 'billing', 'provider'].filter(
      (name) => podOf(name).containers[0].lifecycle !== undefined,
    );
    expect(target.name.split('|')).toEqual(hooked);
  });

  test.each(target.name.split('|'))('%s follows every rule with the exec form, too', (service) => {
    const documents = parseAllDocuments(read(`base/${service}`));
    for (const { op, path, value } of operations) {
      const keys = path.slice(1).split('/');
      const deployment = documents.find(isDeployment)!;
      expect([op, deployment.hasIn(keys)]).toEqual(['replace', true]);
      deployment.setIn(keys, deployment.createNode(value));
    }
    const text = documents.join('');
    expect(text).toContain('exec:');
    expect(text).not.toContain('seconds: 10\n');
    expect([...verdicts(text), messages(text)].join('')).toBe('');
  });
});

describe('docs/guides/kubernetes.md', () => {
  const guide = readFileSync(fileURLToPath(new URL('../../../../docs/guides/kubernetes.md', import.meta.url)), 'utf8');

  test('shows a manifest that follows every rule', () => {
    const [, manifest = ''] = /^```yaml\n([\s\S]*?)^```$/m.exec(guide) ?? [];
    const text = `kind: Deployment\nmetadata: { name: orders }\n${manifest}`;
    expect([...verdicts(text), messages(text)].join('')).toBe('');
    expect(verdicts(changed(text, ['seconds: 10', 'seconds: 5']))).toContain('error R-SHUT-HTTP-2 :18');
  });

  test('explains every rule that is checked, and no other', () => {
    const codes = [...guide.matchAll(/^\| (R-SHUT-[\w-]+)/gm)].map(([, code]) => code);
    expect(codes.sort()).toEqual([...RULE_CODES].sort());
  });
});
