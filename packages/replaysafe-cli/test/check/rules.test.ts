import { expect, test } from 'vitest';
import { good, GOOD, messages, PORTS, PRE_STOP, PROBES, STRATEGY, verdicts, WORKER } from './manifests.js';

const GRACE = '      terminationGracePeriodSeconds: 60\n';
const exec = (command: string): [string, string] => [
  'sleep:\n                seconds: 10',
  `exec: { command: ${command} }`,
];

test('a manifest that follows every rule is passed without a word', () => {
  expect(verdicts(GOOD)).toEqual([]);
  expect(messages(GOOD)).toBe('');
});

test('a worker needs no preStop and no probes, but a grace period', () => {
  expect(verdicts(WORKER)).toEqual([]);
  expect(verdicts(WORKER.replace(GRACE, ''))).toEqual(['error R-SHUT-K8S-1 :7']);
});

test('R-SHUT-K8S-1: an absent grace period is one of 30 s', () => {
  expect(verdicts(good([GRACE, '']))).toContain('error R-SHUT-K8S-1 :12');
  expect(messages(good([GRACE, '']))).toContain('Kubernetes gives 30 s');
});

test('R-SHUT-K8S-1: a grace period in the wrong place has no effect, and its line is named', () => {
  const misplaced = good([GRACE, ''], ['  replicas: 2\n', '  replicas: 2\n  terminationGracePeriodSeconds: 60\n']);
  expect(verdicts(misplaced)).toContain('error R-SHUT-K8S-1 :7');
  expect(messages(misplaced)).toContain('the one in line 7 is in the wrong place');
});

test.each([['45'], ['10'], ['0'], ['"60"'], ['-1'], ['060']])('R-SHUT-K8S-1: %s is not 60', (written) => {
  expect(verdicts(good(['Seconds: 60', `Seconds: ${written}`]))).toContain('error R-SHUT-K8S-1 :13');
});

test('R-SHUT-2, R-SHUT-OBS-1: a raised grace period is a raised budget', () => {
  const codes = ['error R-SHUT-K8S-1 :13', 'error R-SHUT-2 :13', 'error R-SHUT-OBS-1 :13'];
  expect(verdicts(good(['Seconds: 60', 'Seconds: 180']))).toEqual(codes);
});

test('R-SHUT-K8S-1: what a raised grace period is for makes its letter a hint; the budget stays broken', () => {
  const flag = good(
    ['Seconds: 60', 'Seconds: 120'],
    ['          ports:', '          args: [--grace-period=110s]\n          ports:'],
  );
  expect(verdicts(flag)).toEqual(['hint R-SHUT-K8S-1 :13', 'error R-SHUT-2 :13', 'error R-SHUT-OBS-1 :13']);
});

test('R-SHUT-OBS-1: preStop inside the grace period leaves time for the stop', () => {
  expect(verdicts(good(['Seconds: 60', 'Seconds: 30'], ['seconds: 10', 'seconds: 25']))).toContain(
    'error R-SHUT-OBS-1 :31',
  );
  expect(verdicts(good(['seconds: 10', 'seconds: 45']))).toContain('error R-SHUT-OBS-1 :31');
  expect(verdicts(good(['seconds: 10', 'seconds: 30']))).toEqual(['hint R-SHUT-OBS-1 :31']);
});

test('R-SHUT-K8S-X2: requests may not need longer than what is left', () => {
  expect(verdicts(good(['Seconds: 60', 'Seconds: 30']))).toContain('error R-SHUT-K8S-X2 :13');
  expect(verdicts(good(['Seconds: 60', 'Seconds: 10'], ['seconds: 10', 'seconds: 5']))).toContain(
    'error R-SHUT-K8S-X2 :13',
  );
  expect(verdicts(good([GRACE, '']))).toContain('error R-SHUT-K8S-X2 :12');
  expect(verdicts(good([GRACE, ''], [PRE_STOP, '']))).not.toContain('error R-SHUT-K8S-X2 :12');
});

test('R-SHUT-K8S-X1: a container with a port needs a preStop hook', () => {
  expect(verdicts(good([PRE_STOP, '']))).toEqual(['error R-SHUT-K8S-X1 :15']);
});

test.each([
  ['sleep: {}', 'no whole number of seconds'],
  ['tcpSocket: { port: 1 }', 'tcpSocket'],
  ['exec: { command: [] }', 'no command'],
  ['{}', 'names no sleep'],
])('R-SHUT-K8S-X1: a hook of %s does nothing', (written, why) => {
  const text = good(['\n              sleep:\n                seconds: 10', ` {${written}}`.replace('{{}}', '{}')]);
  expect(verdicts(text)).toEqual([`error R-SHUT-K8S-X1 :29`]);
  expect(messages(text)).toContain(why);
});

test.each([
  ['["sleep", "10"]'],
  ['["/bin/sleep", "10s"]'],
  ['["/bin/sh", "-c", "sleep 10"]'],
  ['["sh", "-ec", "sleep 5; sleep 5 && nginx -s quit"]'],
  ['["/usr/bin/env", "sh", "-c", "exec sleep 12"]'],
  ['["busybox", "sleep", "0.25m"]'],
  ['["/drain.sh"]'],
])('R-SHUT-HTTP-2: %s is not said to wait too little', (command) => {
  expect(verdicts(good(exec(command)))).toEqual([]);
});

test.each([['["sleep", "5"]'], ['["sh", "-c", "sleep 3; sleep 4"]'], ['["sh", "-c", "nginx -s quit"]'], ['["true"]']])(
  'R-SHUT-HTTP-2: %s waits too little',
  (command) => {
    expect(verdicts(good(exec(command)))).toEqual(['error R-SHUT-HTTP-2 :29']);
  },
);

test('R-SHUT-HTTP-2: the native sleep is judged by its own line', () => {
  expect(verdicts(good(['seconds: 10', 'seconds: 5']))).toEqual(['error R-SHUT-HTTP-2 :31']);
});

test('R-SHUT-HTTP-2: a wait in a variable is read where the variable is plain, else it is said that it cannot be told', () => {
  const script = exec('["sh", "-c", "sleep $WAIT"]');
  expect(messages(good(script))).toContain('how long the command of preStop takes');
  const plain = good(script, [PORTS, `          env: [{ name: WAIT, value: "4" }]\n${PORTS}`]);
  expect(verdicts(plain)).toEqual(['error R-SHUT-HTTP-2 :30']);
});

test('an httpGet hook is a drain hook; how long it blocks is known of ours only', () => {
  const hook = (path: string): string =>
    good(['sleep:\n                seconds: 10', `httpGet: { path: ${path}, port: http }`]);
  expect(messages(hook('/-/prestop'))).toBe('');
  expect(verdicts(hook('/quit'))).toEqual([]);
  expect(messages(hook('/quit'))).toContain('how long the httpGet hook');
});

test('R-SHUT-K8S-2: a serving container needs both probes; a start-up probe is neither', () => {
  expect(verdicts(good([PROBES, '']))).toEqual(['error R-SHUT-K8S-2 :15', 'error R-SHUT-K8S-2 :15']);
  const startup = good([PROBES, '          startupProbe: { httpGet: { path: /health/live, port: http } }\n']);
  expect(verdicts(startup)).toEqual(['error R-SHUT-K8S-2 :15', 'error R-SHUT-K8S-2 :15']);
  const readinessOnly = good([PROBES, '          readinessProbe: { httpGet: { path: /health/ready, port: http } }\n']);
  expect(verdicts(readinessOnly)).toEqual(['error R-SHUT-K8S-2 :15']);
});

test('R-SHUT-K8S-2: other paths are a hint', () => {
  expect(verdicts(good(['/health/live', '/livez'], ['/health/ready', '/readyz']))).toEqual([
    'hint R-SHUT-K8S-2 :20',
    'hint R-SHUT-K8S-2 :24',
  ]);
});

test.each([
  ['the same path', good(['/health/ready', '/health/live'])],
  [
    'the same path on the port that the name means',
    good(['/health/ready\n              port: http', '/health/live/\n              port: 3001']),
  ],
  ['a liveness path', good(['/health/ready', '/livez'])],
])('R-SHUT-CFG-4: readiness that is the liveness, by %s', (_what, text) => {
  expect(verdicts(text)).toContain('error R-SHUT-CFG-4 :24');
});

test('R-SHUT-CFG-4: liveness on the readiness path restarts pods that drain', () => {
  expect(verdicts(good(['/health/live', '/ready']))).toContain('error R-SHUT-CFG-4 :20');
});

test('R-SHUT-CFG-4: one path on two ports, or with another query, is two endpoints', () => {
  const on = (live: string, ready: string): string => good(['/health/live', live], ['/health/ready', ready]);
  expect(verdicts(on('/health', '/health?ready=1')).filter((each) => each.startsWith('error'))).toEqual([]);
  expect(
    messages(good(['/health/ready\n              port: http', '/health/live\n              port: 9000'])),
  ).not.toContain('asks what');
});

test.each([
  ['grpc: { port: 5000 }', ['error R-SHUT-CFG-4']],
  ['exec: { command: [cat, /tmp/alive] }', ['error R-SHUT-CFG-4']],
  ['exec: { command: [cat, /proc/1/status] }', ['error R-SHUT-CFG-4', 'error R-SHUT-CFG-3']],
  ['tcpSocket: { port: http }', ['error R-SHUT-CFG-4', 'error R-SHUT-CFG-3']],
])('R-SHUT-CFG-3, R-SHUT-CFG-4: both probes by %s', (handler, codes) => {
  const text = good([PROBES, `          livenessProbe: { ${handler} }\n          readinessProbe: { ${handler} }\n`]);
  expect(verdicts(text)).toEqual(codes.map((code) => `${code} :21`));
});

test('R-SHUT-CFG-3: readiness over a socket cannot say 503, whatever liveness does', () => {
  const text = good([
    'httpGet:\n              path: /health/ready\n              port: http',
    'tcpSocket: { port: http }',
  ]);
  expect(verdicts(text)).toEqual(['error R-SHUT-CFG-3 :24']);
});

test.each([
  ['Recreate', '  strategy: { type: Recreate }\n', 'error R-SHUT-K8S-3 :7'],
  ['a pod taken away', '  strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } }\n', 'error R-SHUT-K8S-3 :7'],
  [
    '0 and a share that rounds to 0',
    '  strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 25% } }\n',
    'error R-SHUT-K8S-3 :7',
  ],
  ['half', '  strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 50% } }\n', 'error R-SHUT-K8S-3 :7'],
  ['no number', '  strategy: { rollingUpdate: { maxSurge: "1", maxUnavailable: 0 } }\n', 'error R-SHUT-K8S-3 :7'],
  ['a surge of two', '  strategy: { rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } }\n', 'hint R-SHUT-K8S-3 :7'],
  ['nothing, where 25 % of 2 is 0', '', 'hint R-SHUT-K8S-3 :2'],
  ['surge only', '  strategy: { rollingUpdate: { maxSurge: 10% } }\n', 'hint R-SHUT-K8S-3 :7'],
  ['unavailable only', '  strategy: { rollingUpdate: { maxUnavailable: 0 } }\n', 'hint R-SHUT-K8S-3 :7'],
])('R-SHUT-K8S-3: %s', (_what, strategy, verdict) => {
  expect(verdicts(good([STRATEGY, strategy]))).toEqual([verdict]);
});

test('R-SHUT-K8S-3: 25 % of four is one pod', () => {
  expect(verdicts(good([STRATEGY, ''], ['replicas: 2', 'replicas: 3']))).toEqual(['hint R-SHUT-K8S-3 :2']);
  expect(verdicts(good([STRATEGY, ''], ['replicas: 2', 'replicas: 4']))).toEqual(['error R-SHUT-K8S-3 :2']);
});

test('R-SHUT-K8S-3: an autoscaler beside it says how many there may be', () => {
  const scaler = (most: number): string => `---
kind: HorizontalPodAutoscaler
spec:
  scaleTargetRef: { kind: Deployment, name: orders }
  maxReplicas: ${most}
`;
  expect(verdicts(good([STRATEGY, '']) + scaler(3))).toEqual(['hint R-SHUT-K8S-3 :2']);
  expect(verdicts(good([STRATEGY, '']) + scaler(10))).toEqual(['error R-SHUT-K8S-3 :2']);
});

test.each([
  ['command: [sh, -c, "sleep 5; node main.js"]', 1],
  ['command: [/bin/sh]\n          args: [-c, "migrate && node main.js"]', 1],
  ['command: [npm, start]', 1],
  ['command: [sh, -c, "sleep 5; exec node main.js"]', 0],
  ['command: [sh, -c, "node main.js"]', 0],
  ['command: [node, main.js]', 0],
])('R-SHUT-1: %s may keep SIGTERM from the service: %i', (command, hints) => {
  const found = verdicts(good(['          ports:', `          ${command}\n          ports:`]));
  expect(found).toEqual(hints === 1 ? ['hint R-SHUT-1 :17'] : []);
});
