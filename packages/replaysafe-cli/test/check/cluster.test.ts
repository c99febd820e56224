import { expect, test } from 'vitest';
import { changed, good, GOOD, messages, PRE_STOP, report, STRATEGY, verdicts, WORKER } from './manifests.js';

/** What stands together in a cluster, and what `kubectl get -o yaml` prints of it. */
const scaler = (kind: string, most: string, namespace = ''): string =>
  `---\nkind: ${kind}\nmetadata: { name: orders${namespace} }\nspec: { scaleTargetRef: { kind: Deployment, name: orders }, ${most} }\n`;

test('R-SHUT-K8S-3: 30 replicas by percent', () => {
  const of30 = (strategy: string): string =>
    good(['replicas: 2', 'replicas: 30'], [STRATEGY, `  strategy: { rollingUpdate: ${strategy} }\n`]);
  expect(messages(of30('{ maxSurge: 10%, maxUnavailable: 0 }'))).toContain('adds up to 3 pods at once');
  expect(messages(of30('{ maxSurge: 25%, maxUnavailable: 0% }'))).toContain('adds up to 8 pods at once');
  expect(messages(of30('{ maxSurge: 1, maxUnavailable: 25% }'))).toContain('takes 7 pods away');
  expect(verdicts(of30('{ maxSurge: 1, maxUnavailable: 3% }'))).toEqual(['hint R-SHUT-K8S-3 :7']);
});

test('R-SHUT-K8S-3: the autoscaler of KEDA says how many there may be, 100 unless told', () => {
  const bare = good([STRATEGY, '']);
  expect(messages(bare + scaler('ScaledObject', 'minReplicaCount: 0'))).toContain('takes 25 pods away');
  expect(verdicts(bare + scaler('ScaledObject', 'maxReplicaCount: 3'))).toEqual(['hint R-SHUT-K8S-3 :2']);
  const untyped = scaler('ScaledObject', 'maxReplicaCount: 8').replace('kind: Deployment, ', '');
  expect(messages(bare + untyped)).toContain('1 to 8 replicas');
});

test('R-SHUT-K8S-3: an autoscaler of another namespace says nothing', () => {
  const bare = good([STRATEGY, ''], ['  name: orders\n', '  name: orders\n  namespace: prod\n']);
  const most = 'maxReplicas: 10';
  expect(verdicts(bare + scaler('HorizontalPodAutoscaler', most, ', namespace: test'))).toEqual([
    'hint R-SHUT-K8S-3 :2',
  ]);
  expect(verdicts(bare + scaler('HorizontalPodAutoscaler', most, ', namespace: prod'))).toEqual([
    'error R-SHUT-K8S-3 :2',
  ]);
});

const service = (target: string): string =>
  `---\nkind: Service\napiVersion: v1\nspec: { selector: { app: orders }, ports: [{ port: 80, targetPort: ${target} }] }\n`;

test('a sidecar with a port serves nobody where a Service means the other container', () => {
  const pods = good(
    ['  template:\n', '  template:\n    metadata: { labels: { app: orders } }\n'],
    [
      '      containers:\n',
      '      containers:\n        - { name: sql, image: a:1, ports: [{ name: sql, containerPort: 5432 }] }\n',
    ],
  );
  expect(verdicts(pods + service('http'))).toEqual([]);
  expect(verdicts(pods + service('3001'))).toEqual([]);
  expect(verdicts(pods + service('sql'))).toContain('error R-SHUT-K8S-X1 :16');
  expect(verdicts(pods)).toContain('error R-SHUT-K8S-X1 :16');
  // A Service for scrapers does not say that the rest serves nobody.
  expect(
    verdicts(pods.replace('name: sql, containerPort', 'name: metrics, containerPort') + service('metrics')),
  ).toEqual([]);
});

test('a ReplicaSet and its pods are judged by the Deployment that made them, if it is there', () => {
  const made = (kind: string, name: string, owner: string): string =>
    changed(
      GOOD,
      ['kind: Deployment', `kind: ${kind}`],
      ['  name: orders\n', `  name: ${name}\n  ownerReferences: [${owner}]\n`],
      ['seconds: 10', 'seconds: 3'],
    );
  const old = made('ReplicaSet', 'orders-1', '{ kind: Deployment, name: orders }');
  expect(report(`${GOOD}---\n${old}`)).toMatchObject({ findings: [], workloads: 1 });
  expect(verdicts(old)).toEqual(['error R-SHUT-HTTP-2 :32']);
  expect(verdicts(`${GOOD}---\n${old.replace('name: orders }', 'name: other }')}`)).toHaveLength(1);
});

test('what a cluster adds to an object is no matter', () => {
  const live = good(
    [
      '  name: orders\n',
      '  name: orders\n  annotations: { x: \'{"a":"{{ b }}"}\' }\n  managedFields: [{ fieldsV1: { "f:spec": {} } }]\n',
    ],
    ['  template:\n', '  template:\n    metadata: { creationTimestamp: null }\n'],
  );
  expect(report(`${live}status: { replicas: 2, conditions: [{ status: "True" }] }\n`)).toMatchObject({
    findings: [],
    notes: [],
  });
});

test('a Rollout of Argo that takes the pods of a Deployment', () => {
  const rollout = (strategy: string): string =>
    `---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: { name: r }\nspec:\n  workloadRef: { kind: Deployment, name: orders }\n  strategy: ${strategy}\n`;
  const deployment = good([STRATEGY, '  strategy: { type: Recreate }\n']);
  expect(report(deployment + rollout('{ canary: { maxSurge: 1, maxUnavailable: 0 } }'))).toMatchObject({
    findings: [],
    notes: [],
  });
  expect(verdicts(deployment + rollout('{ canary: { maxUnavailable: 1 } }'))).toEqual(['error R-SHUT-K8S-3 :35']);
  expect(messages(rollout('{ blueGreen: {} }'))).toContain('they stand in Deployment/orders, which is in no file');
});

test('pods anywhere in a custom resource are said not to be judged; the definition of one has none', () => {
  const custom = (spec: string): string => messages(`kind: Machine\napiVersion: example.com/v1\nspec: ${spec}\n`);
  const pod = '{ spec: { containers: [{ image: a:1 }] } }';
  expect(custom(`{ podTemplate: ${pod} }`)).toContain('it is not judged');
  expect(custom(`{ a: { b: { template: ${pod} } } }`)).toContain('it is not judged');
  expect(custom('{ schema: { properties: { spec: { containers: { type: array } } } } }')).toBe('');
});

test('R-SHUT-K8S-3: a DaemonSet that takes no pod away says so in a number, as Kubernetes reads it', () => {
  const daemons = (unavailable: string): string[] =>
    verdicts(
      good(
        [STRATEGY, `  updateStrategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: ${unavailable} } }\n`],
        ['kind: Deployment', 'kind: DaemonSet'],
      ),
    );
  expect(daemons('0')).toEqual([]);
  expect(daemons('0%')).toEqual([]);
  expect(daemons('"0"')).toEqual(['hint R-SHUT-K8S-3 :7']);
});

test('names that every object of JavaScript has are names like others', () => {
  for (const word of ['constructor', 'toString', '__proto__']) {
    expect(verdicts(`kind: ${word}\nspec: { ${word}: 1 }\n`)).toEqual([]);
    expect(verdicts(good(['name: orders', `name: ${word}`], ['  replicas: 2', `  replicas: ${word}`]))).toEqual([]);
    expect(
      verdicts(good(['          ports:', `          env: [{ name: ${word}, value: x }]\n          ports:`])),
    ).toEqual([]);
  }
});

test('R-SHUT-K8S-3: an autoscaler makes more pods, and so a larger surge', () => {
  const pods = good([STRATEGY, '  strategy: { rollingUpdate: { maxSurge: 25%, maxUnavailable: 0 } }\n']);
  expect(messages(pods + scaler('HorizontalPodAutoscaler', 'minReplicas: 2, maxReplicas: 50'))).toContain(
    'adds up to 13 pods at once, not 1 (2 to 50 replicas of the autoscaler)',
  );
});

test('R-SHUT-K8S-3: a worker that is away for a moment is a hint', () => {
  const worker = (strategy: string): string =>
    changed(WORKER, ['spec:\n  template:', `spec:\n  ${strategy}\n  template:`]);
  expect(verdicts(worker('strategy: { rollingUpdate: { maxUnavailable: 1 } }'))).toEqual(['hint R-SHUT-K8S-3 :6']);
  expect(verdicts(worker('strategy: { type: Recreate }'))).toEqual(['hint R-SHUT-K8S-3 :6']);
});

test('R-SHUT-K8S-X2: a written grace period of 30 s is too short for HTTP even without a hook', () => {
  const short = good(['Seconds: 60', 'Seconds: 30'], [PRE_STOP, '']);
  expect(verdicts(short)).toContain('error R-SHUT-K8S-X2 :13');
  const budget = { graceMs: 30_000, httpDrainMs: 10_000, workMs: 12_000, consumersMs: 12_000 };
  expect(verdicts(short, budget)).not.toContain('error R-SHUT-K8S-X2 :13');
  expect(verdicts(good(['Seconds: 60', 'Seconds: 31'], [PRE_STOP, '']))).not.toContain('error R-SHUT-K8S-X2 :13');
});

test('a patch is not blamed for what stands in its base', () => {
  const patch = (spec: string): string => `kind: Deployment\nmetadata: { name: orders }\nspec: ${spec}\n`;
  const container = patch('{ template: { spec: { containers: [{ name: a, ports: [{ containerPort: 1 }] }] } } }');
  expect(verdicts(container)).toEqual([]);
  expect(verdicts(container, { preStopMs: 10_000 })).toEqual([]);
  expect(verdicts(patch('{ strategy: { type: Recreate } }'))).toEqual(['error R-SHUT-K8S-3 :3']);
});

test('init containers are over before anything stops', () => {
  const init =
    '{ name: m, image: a:1, command: [sh, -c, "a; b"], ports: [{ containerPort: 1 }], env: [{ name: GRACE_MS, value: "90000" }] }';
  expect(verdicts(good(['      containers:\n', `      initContainers: [${init}]\n      containers:\n`]))).toEqual([]);
});

test('what a job plans is not judged', () => {
  const env = '          env: [{ name: GRACE_MS, value: "90000" }]\n';
  expect(verdicts(`${changed(WORKER, ['kind: Deployment', 'kind: Job'])}${env}`)).toEqual([]);
  expect(verdicts(`${WORKER}${env}`)).toEqual(['error R-SHUT-2 :8', 'error R-SHUT-2 :12']);
});
