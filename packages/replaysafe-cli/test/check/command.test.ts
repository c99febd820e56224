import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { run } from '../../src/run.js';
import { good, GOOD, PRE_STOP, PROBES } from './manifests.js';

const BAD = good([PRE_STOP, ''], ['/health/live', '/livez']);
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'replaysafe-check-'));
});

afterEach(() => rm(folder, { recursive: true }));

async function write(name: string, text: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, text);
  return path;
}

async function replaysafe(args: readonly string[], stdin = '') {
  const out: string[] = [];
  const err: string[] = [];
  const code = await run(
    args,
    {},
    { out: (text) => out.push(text), err: (text) => err.push(text), input: async () => stdin },
  );
  return { code, out: out.join('\n'), err: err.join('\n') };
}

test('needs no database; passes what is right with exit code 0', async () => {
  const file = await write('a.yaml', GOOD);
  expect(await replaysafe(['check', file])).toEqual({
    code: 0,
    out: '0 errors, 0 hints in 1 workload of 1 file',
    err: '',
  });
});

test('prints each broken rule with file, line and column; exit code 1', async () => {
  const file = await write('a.yaml', BAD);
  const { code, out, err } = await replaysafe(['check', file]);
  expect({ code, err }).toEqual({ code: 1, err: '' });
  const lines = out.split('\n');
  expect(lines[0]).toMatch(`${file}:15:11: error R-SHUT-K8S-X1 Deployment/orders container app: takes traffic`);
  expect(lines[1]).toMatch(
    `${file}:20:11: hint R-SHUT-K8S-2 Deployment/orders container app: liveness is asked on /livez`,
  );
  expect(lines[2]).toBe('1 error, 1 hint in 1 workload of 1 file');
});

test('hints alone exit with 0', async () => {
  expect((await replaysafe(['check', '-'], good(['/health/live', '/livez']))).code).toBe(0);
});

test('reads standard input, and files together: a Service in one tells about the other', async () => {
  const { code, out } = await replaysafe(['check', '-'], BAD);
  expect(code).toBe(1);
  expect(out).toContain('<stdin>:15:11: error R-SHUT-K8S-X1');
});

test('reads a directory with all its *.yaml and *.yml, and nothing else in it', async () => {
  await write('a.yaml', GOOD);
  await write('sub/b.yml', BAD);
  await write('README.md', '{{ no yaml }}');
  const { code, out } = await replaysafe(['check', folder]);
  expect(code).toBe(1);
  expect(out).toContain('in 2 workloads of 2 files');
});

test('--json is one object', async () => {
  const { code, out } = await replaysafe(['check', '--json', '-'], BAD);
  expect(code).toBe(1);
  expect(JSON.parse(out)).toMatchObject({
    findings: [
      {
        file: '<stdin>',
        line: 15,
        column: 11,
        code: 'R-SHUT-K8S-X1',
        severity: 'error',
        subject: 'Deployment/orders container app',
      },
      { line: 20, code: 'R-SHUT-K8S-2', severity: 'hint' },
    ],
    notes: [],
    unreadable: [],
    files: 1,
    workloads: 1,
  });
});

test('--sarif is a log of SARIF 2.1.0', async () => {
  const file = await write('my manifests/a.yaml', BAD);
  const { code, out } = await replaysafe(['check', '--sarif', file]);
  expect(code).toBe(1);
  const log = JSON.parse(out) as {
    version: string;
    $schema: string;
    runs: { tool: { driver: { name: string; rules: { id: string }[] } }; results: Result[]; invocations: object[] }[];
  };
  interface Result {
    ruleId: string;
    ruleIndex: number;
    level: string;
    message: { text: string };
    locations: { physicalLocation: { artifactLocation: { uri: string }; region: object } }[];
  }
  expect(log.version).toBe('2.1.0');
  expect(log.$schema).toContain('sarif-2.1.0');
  const [first] = log.runs;
  expect(first!.invocations).toEqual([{ executionSuccessful: true, toolExecutionNotifications: [] }]);
  expect(first!.results.map(({ ruleId, level }) => [ruleId, level])).toEqual([
    ['R-SHUT-K8S-X1', 'error'],
    ['R-SHUT-K8S-2', 'note'],
  ]);
  for (const { ruleId, ruleIndex, message, locations } of first!.results) {
    expect(first!.tool.driver.rules[ruleIndex]!.id).toBe(ruleId);
    expect(message.text).toContain('Deployment/orders');
    expect(locations[0]!.physicalLocation.artifactLocation.uri).toMatch(/^file:\/\/.*\/my%20manifests\/a\.yaml$/);
  }
  expect(first!.results[0]!.locations[0]!.physicalLocation.region).toEqual({ startLine: 15, startColumn: 11 });
});

test('--sarif: every finding has a fingerprint of its own, which does not move with the lines', async () => {
  const fingerprints = async (text: string): Promise<string[]> =>
    [...(await replaysafe(['check', '--sarif', '-'], text)).out.matchAll(/"replaysafe\/v1":"([^"]*)"/g)].map(
      ([, id]) => id!,
    );
  const bare = good([PROBES, '']);
  const found = await fingerprints(bare);
  expect(found).toHaveLength(2);
  expect(new Set(found).size).toBe(2);
  expect(await fingerprints(`# moved\n${bare}`)).toEqual(found);
});

test('--sarif names files below the folder by their relative path, as reviews do', async () => {
  const { out } = await replaysafe(['check', '--sarif', './package.json']);
  const uris = [...out.matchAll(/"uri":"([^"]*)"/g)].map(([, uri]) => uri);
  expect(uris).toEqual(['package.json']);
});

test.each([
  [
    'a Helm template',
    'kind: Deployment\nspec:\n  {{- if .Values.x }}\n  replicas: 1\n  {{- end }}\n',
    ':3:3: this is a template ({{- if .Values.x }})',
  ],
  [
    'a template that YAML can read',
    'kind: Deployment\nspec:\n  replicas: {{ .Values.replicas }}\n',
    ':3:13: this is a template',
  ],
  ['a quoted template', 'kind: Deployment\nmetadata:\n  name: "{{ .Release.Name }}"\n', ':3:9: this is a template'],
  [
    'a variable where a number is needed',
    'kind: Deployment\nspec:\n  replicas: ${REPLICAS}\n',
    ':3:13: this is a template',
  ],
  ['a template of ytt', 'kind: Deployment\nspec:\n  replicas: #@ data.values.replicas\n', 'this is a template'],
  ['a template of ERB', 'kind: Deployment\nspec:\n  replicas: <%= replicas %>\n', 'this is a template'],
])('%s has to be rendered first: exit code 2', async (_what, text, complaint) => {
  const { code, out, err } = await replaysafe(['check', '-'], text);
  expect(code).toBe(2);
  expect(err).toContain(complaint);
  expect(err).toContain('render it first');
  expect(out).toBe('0 errors, 0 hints in 0 workloads of 1 file');
});

test('what a template leaves in texts of its own is no template', async () => {
  const alert =
    'kind: PrometheusRule\nspec:\n  groups: [{ rules: [{ annotations: { summary: "{{ $labels.pod }} is down" } }] }]\n';
  const config = 'kind: ConfigMap\ndata:\n  a.tmpl: |\n    {{ range . }}\n    #@ x\n  port: ${PORT}\n';
  const image = good(
    ['example/orders:1', '${IMAGE}'],
    ['metadata:\n', 'metadata:\n  annotations: { inject: "{{ with secret }}" }\n'],
  );
  expect(await replaysafe(['check', '-'], [alert, config, image].join('---\n'))).toMatchObject({ code: 0, err: '' });
});

test.each([
  ['no YAML', 'a: [1\n', 'not YAML'],
  ['tabs', 'kind: Deployment\nspec:\n\treplicas: 1\n', 'not YAML'],
  [
    'a key twice',
    'kind: Deployment\nspec: { replicas: 1, replicas: 2 }\n',
    '<stdin>:2:22: not YAML: Map keys must be unique',
  ],
  ['a sentence', 'Error: no such chart\nplease try again', 'not YAML'],
  ['a word', 'nothing', 'no YAML of objects'],
  ['nothing', '', 'there is no Kubernetes object in it'],
  ['comments alone', '# nothing\n---\n# here\n', 'there is no Kubernetes object in it'],
  ['an unknown anchor', 'kind: *a\n', 'not YAML'],
])('%s cannot be judged: exit code 2', async (_what, text, complaint) => {
  const { code, err } = await replaysafe(['check', '-'], text);
  expect(code).toBe(2);
  expect(err).toContain(complaint);
});

test('a file that is not there does not hide what others break', async () => {
  const file = await write('a.yaml', BAD);
  const { code, out, err } = await replaysafe(['check', '--json', join(folder, 'b.yaml'), file]);
  expect(code).toBe(2);
  expect(err).toContain('b.yaml:1:1: cannot be read: ENOENT');
  expect(JSON.parse(out)).toMatchObject({ findings: [{}, {}], unreadable: [{ line: 1 }] });
});

test('objects of no interest alone are fine', async () => {
  expect((await replaysafe(['check', '-'], 'kind: Service\napiVersion: v1\n')).code).toBe(0);
});

test.each([
  [['check'], 'check needs files'],
  [['check', '--sarif', '--json', '-'], 'exclude each other'],
  [['check', '--schema', 'x', '-'], 'check has no option --schema'],
  [['check', '--budget', 'nowhere.json', '-'], 'nowhere.json cannot be read'],
  [['migrate', '--budget', 'x'], 'migrate has no option --budget'],
])('wrong usage %j exits 2', async (args, complaint) => {
  const { code, err } = await replaysafe(args);
  expect(code).toBe(2);
  expect(err).toContain(complaint);
});

test('--budget: one service, or several by name', async () => {
  const one = await write('one.json', '{ "preStopMs": 10000 }');
  expect((await replaysafe(['check', '--budget', one, '-'], GOOD)).code).toBe(0);
  const several = await write('several.json', '{ "orders": { "preStopMs": 4000 }, "refunds": {} }');
  const { code, out } = await replaysafe(['check', '--budget', several, '-'], GOOD);
  expect(code).toBe(1);
  expect(out).toContain('error R-SHUT-OBS-1');
  expect(out).toContain('no workload has its name');
});

test.each([
  ['{ "preStopMS": 1 }', 'did you mean'],
  ['{ "preStopMs": "10s" }', 'preStopMs must be a whole number'],
  ['{ "preStopMs": -1 }', 'preStopMs must be a whole number'],
  ['{ preStopMs: 1 }', 'is no JSON'],
  ['[]', 'must be one JSON object'],
])('--budget: %s is refused', async (content, complaint) => {
  const { code, err } = await replaysafe(['check', '--budget', await write('b.json', content), '-'], GOOD);
  expect(code).toBe(2);
  expect(err).toContain(complaint);
});
