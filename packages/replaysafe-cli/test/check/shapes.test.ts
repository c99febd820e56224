import { expect, test } from 'vitest';
import {
  changed,
  good,
  GOOD,
  messages,
  PORTS,
  PRE_STOP,
  PROBES,
  report,
  STRATEGY,
  verdicts,
  WORKER,
} from './manifests.js';

const GRACE = '      terminationGracePeriodSeconds: 60\n';

test('init containers and sidecars without ports are asked for nothing', () => {
  const text = changed(GOOD, [
    '      containers:\n',
    `      initContainers:\n        - { name: migrate, image: a:1 }\n        - { name: proxy, image: a:1, restartPolicy: Always, ports: [{ containerPort: 15001 }] }\n      containers:\n        - { name: logs, image: a:1 }\n`,
  ]);
  expect(verdicts(text)).toEqual([]);
});

test('every serving container is judged by itself', () => {
  const text = good([
    '      containers:\n',
    '      containers:\n        - { name: proxy, image: a:1, ports: [{ containerPort: 80 }] }\n',
  ]);
  expect(report(text).findings.map(({ code, subject }) => [code, subject])).toEqual([
    ['R-SHUT-K8S-X1', 'Deployment/orders container proxy'],
    ['R-SHUT-K8S-2', 'Deployment/orders container proxy'],
    ['R-SHUT-K8S-2', 'Deployment/orders container proxy'],
  ]);
});

test('probes on a management port are fine, and ports for them make no service', () => {
  expect(
    verdicts(good(['path: /health/live\n              port: http', 'path: /health/live\n              port: 9090'])),
  ).toEqual([]);
  const metrics = changed(WORKER, [
    'image: example/mailer:1\n',
    'image: example/mailer:1\n          ports: [{ name: metrics, containerPort: 9090 }]\n',
  ]);
  expect(verdicts(metrics)).toEqual([]);
  expect(messages(metrics)).toContain('whether it takes traffic');
});

test('an HTTP liveness makes no service of a worker', () => {
  const text = changed(WORKER, [
    'image: example/mailer:1\n',
    'image: example/mailer:1\n          livenessProbe: { httpGet: { path: /up, port: 3005 } }\n',
  ]);
  expect(verdicts(text)).toEqual([]);
});

test('a Service that selects pods without any declared port makes a service of them', () => {
  const pods = changed(WORKER, [
    '  template:\n',
    '  template:\n    metadata: { labels: { app: mailer, tier: back } }\n',
  ]);
  const service = (label: string): string =>
    `---\napiVersion: v1\nkind: Service\nspec: { selector: { app: ${label} }, ports: [{ port: 80 }] }\n`;
  expect(verdicts(pods + service('mailer'))).toContain('error R-SHUT-K8S-X1 :11');
  expect(verdicts(pods + service('other'))).toEqual([]);
});

test('a disruption budget has a maxUnavailable of its own', () => {
  expect(verdicts(`${GOOD}---\nkind: PodDisruptionBudget\nspec: { maxUnavailable: 1 }\n`)).toEqual([]);
});

test('a StatefulSet has no maxSurge; a DaemonSet that serves takes a pod away unless told', () => {
  expect(verdicts(good([STRATEGY, ''], ['kind: Deployment', 'kind: StatefulSet']))).toEqual([]);
  expect(verdicts(good([STRATEGY, ''], ['kind: Deployment', 'kind: DaemonSet']))).toEqual(['hint R-SHUT-K8S-3 :2']);
  expect(verdicts(good(['  strategy:', '  updateStrategy:'], ['kind: Deployment', 'kind: DaemonSet']))).toEqual([]);
  expect(
    verdicts(good([STRATEGY, ''], ['kind: Deployment', 'kind: DaemonSet'], ['containerPort: 3001', 'hostPort: 3001'])),
  ).toEqual([]);
});

test('a Rollout of Argo is judged like a Deployment; of any other kind with pods it is said that it is not judged', () => {
  const rollout = good(
    [STRATEGY, '  strategy: { canary: { maxUnavailable: 1 } }\n'],
    ['apps/v1', 'argoproj.io/v1alpha1'],
    ['kind: Deployment', 'kind: Rollout'],
  );
  expect(verdicts(rollout)).toEqual(['error R-SHUT-K8S-3 :7']);
  const foreign = good([GRACE, ''], ['apps/v1', 'example.com/v1'], ['kind: Deployment', 'kind: Machine']);
  expect(verdicts(foreign)).toEqual([]);
  expect(messages(foreign)).toContain('it is not judged');
});

test('jobs get a hint about the grace period and nothing else; pods of a chart that test it nothing', () => {
  const job = changed(WORKER, ['kind: Deployment', 'kind: Job'], [GRACE, '']);
  expect(verdicts(job)).toEqual(['hint R-SHUT-K8S-1 :7']);
  const hook =
    'kind: Pod\nmetadata: { annotations: { helm.sh/hook: test } }\nspec: { containers: [{ name: t, image: a:1 }] }\n';
  expect(verdicts(hook)).toEqual([]);
});

test('a patch without containers is judged by what it says', () => {
  const patch =
    'kind: Deployment\nmetadata: { name: a }\nspec:\n  replicas: 2\n  strategy: { rollingUpdate: { maxUnavailable: 1 } }\n';
  expect(verdicts(patch)).toEqual(['error R-SHUT-K8S-3 :5']);
  expect(messages(patch)).toContain('it looks like a patch');
  expect(verdicts(patch.replace('maxUnavailable: 1', 'maxSurge: 1'))).toEqual([]);
  expect(verdicts(patch.replace('maxUnavailable: 1', 'maxUnavailable: 50%'))).toEqual(['error R-SHUT-K8S-3 :5']);
  const unknown = patch.replace('maxUnavailable: 1', 'maxUnavailable: 50%').replace('  replicas: 2\n', '');
  expect(verdicts(unknown)).toEqual([]);
  expect(messages(unknown)).toContain('how many pods 50 % are');
});

test('a patch of a container has no image, and is judged by what it says', () => {
  const patch = (seconds: number): string =>
    `kind: Deployment\nspec: { template: { spec: { containers: [{ name: a, lifecycle: { preStop: { sleep: { seconds: ${seconds} } } } }] } } }\n`;
  expect(verdicts(patch(10))).toEqual([]);
  expect(verdicts(patch(5))).toEqual(['error R-SHUT-HTTP-2 :2']);
});

test('a list is opened, and lists in it', () => {
  const indented = WORKER.replace(GRACE, '').replaceAll('\n', '\n        ').trimEnd();
  const text = `# a licence\nkind: List\nitems:\n  - kind: Namespace\n  - kind: DeploymentList\n    items:\n      - ${indented}\n`;
  expect(verdicts(text)).toEqual(['error R-SHUT-K8S-1 :13']);
});

test('anchors, aliases and merge keys are followed, and the place is where they are used', () => {
  const anchored = good(
    ['livenessProbe:\n            httpGet:', 'livenessProbe: &probe\n            httpGet:'],
    [
      'readinessProbe:\n            httpGet:\n              path: /health/ready\n              port: http',
      'readinessProbe: *probe',
    ],
  );
  expect(verdicts(anchored)).toEqual(['error R-SHUT-CFG-4 :24', 'hint R-SHUT-K8S-2 :24']);
  const merged = good([
    '    spec:\n      terminationGracePeriodSeconds: 60\n',
    '    spec:\n      <<: { terminationGracePeriodSeconds: 60 }\n',
  ]);
  expect(verdicts(merged)).toEqual([]);
  expect(verdicts('kind: Deployment\nspec: &a { <<: *a }\n')).toEqual([]);
});

test('several documents, kind before apiVersion, Windows line ends, a byte order mark, a name that is a number', () => {
  const text = `\ufeff---\n${GOOD}---\nkind: Service\napiVersion: v1\n---\n${WORKER.replace(GRACE, '').replace('name: mailer', 'name: 007')}`;
  expect(verdicts(text)).toEqual(['error R-SHUT-K8S-1 :43']);
  expect(verdicts(text.replaceAll('\n', '\r\n'))).toEqual(['error R-SHUT-K8S-1 :43']);
  expect(report(text).findings[0]?.subject).toBe('Deployment/007');
});

test('a `sleep` in args is no hook', () => {
  const text = good([PRE_STOP, ''], [PORTS, `          args: [sleep, "10"]\n${PORTS}`]);
  expect(verdicts(text)).toEqual(['error R-SHUT-K8S-X1 :15']);
});

test('a manifest that says nothing of the standard breaks what there is to break', () => {
  const bare = good([GRACE, ''], [PROBES, ''], [PRE_STOP, ''], [STRATEGY, '  strategy: { type: Recreate }\n']);
  expect(new Set(report(bare).findings.map(({ code }) => code))).toEqual(
    new Set(['R-SHUT-K8S-1', 'R-SHUT-K8S-2', 'R-SHUT-K8S-3', 'R-SHUT-K8S-X1']),
  );
});

test('ten thousand lines are read in a moment, each finding once', () => {
  const bad = WORKER.replace(GRACE, '');
  const text = Array.from({ length: 1_000 }, () => bad).join('---\n');
  expect(text.split('\n').length).toBeGreaterThan(10_000);
  expect(verdicts(text)).toHaveLength(1_000);
});
