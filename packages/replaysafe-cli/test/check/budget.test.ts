import { expect, test } from 'vitest';
import { changed, good, messages, PRE_STOP, verdicts, WORKER } from './manifests.js';

const env = (...pairs: readonly (readonly [string, string])[]): readonly [string, string] => [
  '          ports:',
  `          env:\n${pairs.map(([name, value]) => `            - { name: ${name}, value: "${value}" }\n`).join('')}          ports:`,
];

test('R-SHUT-2, R-SHUT-OBS-1: a budget that the manifest gives room for is passed', () => {
  expect(verdicts(good(), { preStopMs: 10_000 })).toEqual([]);
  expect(verdicts(WORKER, {})).toEqual([]);
});

test('R-SHUT-2: the service must not plan more than Kubernetes gives', () => {
  expect(verdicts(good(['Seconds: 60', 'Seconds: 45']), { preStopMs: 10_000 })).toContain('error R-SHUT-2 :13');
  expect(verdicts(changed(WORKER, ['      terminationGracePeriodSeconds: 60\n', '']), {})).toEqual([
    'error R-SHUT-K8S-1 :7',
    'error R-SHUT-2 :7',
  ]);
});

test('R-SHUT-2: the service must not plan more than 60 s', () => {
  expect(messages(good(), { preStopMs: 10_000, graceMs: 90_000 })).toContain('the service plans 90000 ms');
});

test('R-SHUT-K8S-1: less than 60 s is a hint where the service plans no more', () => {
  const short = { graceMs: 45_000, preStopMs: 10_000, httpDrainMs: 18_000 };
  expect(verdicts(good(['Seconds: 60', 'Seconds: 45']), short)).toEqual(['hint R-SHUT-K8S-1 :13']);
});

test('R-SHUT-OBS-1: preStopMs is the time of the hook', () => {
  expect(verdicts(good(), {})).toEqual(['error R-SHUT-OBS-1 :31']);
  expect(verdicts(good(), { preStopMs: 5_000 })).toEqual(['error R-SHUT-OBS-1 :31']);
  expect(verdicts(good(), { preStopMs: 12_000 })).toEqual(['hint R-SHUT-OBS-1 :31']);
  expect(messages(good([PRE_STOP, '']), { preStopMs: 10_000 })).toContain('there is no preStop hook');
});

test('R-SHUT-OBS-1: a hook of unknown time is said to be so', () => {
  const script = good(['sleep:\n                seconds: 10', 'exec: { command: [/drain.sh] }']);
  expect(messages(script, { preStopMs: 10_000 })).toContain('whether the preStop hook takes the 10000 ms');
});

const ENDPOINT = ['sleep:\n                seconds: 10', 'httpGet: { path: /-/prestop, port: http }'] as const;

test('R-SHUT-OBS-1: with the pre-stop endpoint the stop begins at the hook', () => {
  const delay = { propagationDelayMs: 10_000 };
  expect(verdicts(good(ENDPOINT), delay)).toEqual([]);
  expect(verdicts(good(ENDPOINT), { ...delay, preStopMs: 10_000 })).toEqual(['hint R-SHUT-OBS-1 :29']);
});

test('R-SHUT-HTTP-2: the pre-stop endpoint blocks for the longer of lameDuckMs and propagationDelayMs', () => {
  expect(verdicts(good(ENDPOINT), {})).toEqual(['error R-SHUT-HTTP-2 :29']);
  expect(messages(good(ENDPOINT), {})).toContain('the hook blocks for 2000 ms');
  expect(messages(good(ENDPOINT), { propagationDelayMs: 5_000 })).toContain('the hook blocks for 5000 ms');
  expect(verdicts(good(ENDPOINT), { lameDuckMs: 10_000 })).toEqual([]);
  expect(verdicts(good(ENDPOINT, env(['PROPAGATION_DELAY_MS', '3000'])))).toEqual(['error R-SHUT-HTTP-2 :31']);
  expect(verdicts(good(ENDPOINT, env(['PROPAGATION_DELAY_MS', '10000'])))).toEqual([]);
  expect(verdicts(good(ENDPOINT, env(['LOG_LEVEL', 'info'])))).toEqual([]);
});

test('R-SHUT-OBS-1: the delay of balancers is the lame duck where it is longer, and has to fit', () => {
  const budget = { preStopMs: 10_000, propagationDelayMs: 11_000 };
  expect(verdicts(good(), budget)).toEqual([]);
  expect(verdicts(good(), { ...budget, lameDuckMs: 11_000 })).toEqual([]);
  expect(verdicts(good(), { ...budget, propagationDelayMs: 11_001 })).toEqual(['error R-SHUT-OBS-1 :1']);
  const known = messages(good(env(['PRE_STOP_MS', '10000'], ['PROPAGATION_DELAY_MS', '30000'])));
  expect(known).toContain('propagationDelayMs 30000 (longer than the lame duck 2000) + HTTP 25000 = 55000');
});

test('R-SHUT-K8S-X2: what HTTP needs begins with the delay of balancers', () => {
  const short = good(['Seconds: 60', 'Seconds: 50']);
  const budget = { graceMs: 60_000, preStopMs: 10_000, producersMs: 0 };
  expect(verdicts(short, budget)).not.toContain('error R-SHUT-K8S-X2 :13');
  expect(verdicts(short, { ...budget, propagationDelayMs: 16_000 })).toContain('error R-SHUT-K8S-X2 :13');
});

test('R-SHUT-OBS-1: phases that do not fit are shown with the arithmetic', () => {
  expect(messages(good(), { preStopMs: 10_000, httpDrainMs: 45_000 })).toContain(
    '= 71000 ms, 11000 ms more than graceMs 60000',
  );
});

test('plain environment variables say the budget, too, and go before the file', () => {
  expect(verdicts(good(env(['GRACE_MS', '60000'], ['PRE_STOP_MS', '10000'], ['LAME_DUCK_MS', '2000'])))).toEqual([]);
  expect(verdicts(good(env(['TERMINATION_GRACE_SECONDS', '90'])))).toEqual([
    'error R-SHUT-2 :13',
    'error R-SHUT-2 :18',
  ]);
  expect(verdicts(good(env(['PRE_STOP_MS', '5000'])))).toEqual(['error R-SHUT-OBS-1 :33']);
  expect(verdicts(good(env(['LAME_DUCK_MS', '30000'])))).toEqual(['error R-SHUT-OBS-1 :18']);
  expect(verdicts(good(env(['PRE_STOP_MS', '10000'])), { preStopMs: 1 })).toEqual([]);
});

test('a variable from elsewhere, or of no time, is said not to be known', () => {
  const variables = (list: string): string => good(['          ports:', `          env: [${list}]\n          ports:`]);
  const elsewhere = variables('{ name: GRACE_MS, valueFrom: { fieldRef: {} } }');
  expect(verdicts(elsewhere)).toEqual([]);
  expect(messages(elsewhere)).toContain('what GRACE_MS is');
  for (const written of ['a minute', '', ' ', '-1', '1.5', '1e12', '0']) {
    const text = variables(`{ name: WORK_MS, value: "${written}" }`);
    expect(verdicts(text)).toEqual([]);
    expect(messages(text)).toContain(`what WORK_MS means: createLifecycle takes no "${written}"`);
  }
  expect(messages(variables('{ name: PRE_STOP_MS }'))).toContain('takes no ""');
});
