import { check, type Report } from '../../src/check/check.js';
import { plan, type BudgetFile } from '../../src/check/service-budget.js';

/** A manifest that follows every rule; tests change what they are about. Lines count from 1. */
export const GOOD = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders
spec:
  replicas: 2
  strategy:
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    spec:
      terminationGracePeriodSeconds: 60
      containers:
        - name: app
          image: example/orders:1
          ports:
            - name: http
              containerPort: 3001
          livenessProbe:
            httpGet:
              path: /health/live
              port: http
          readinessProbe:
            httpGet:
              path: /health/ready
              port: http
          lifecycle:
            preStop:
              sleep:
                seconds: 10
`;

/** No port and no Service: nothing sends it traffic. */
export const WORKER = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: mailer
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 60
      containers:
        - name: app
          image: example/mailer:1
`;

/** GOOD with some of its text replaced; each text must be there once. */
export function good(...changes: readonly (readonly [from: string, to: string])[]): string {
  return changed(GOOD, ...changes);
}

export function changed(text: string, ...changes: readonly (readonly [from: string, to: string])[]): string {
  return changes.reduce((before, [from, to]) => {
    if (before.split(from).length !== 2) throw new Error(`"${from}" must stand there once`);
    return before.replace(from, () => to);
  }, text);
}

export const PROBES = GOOD.slice(GOOD.indexOf('          livenessProbe:'), GOOD.indexOf('          lifecycle:'));
export const PRE_STOP = GOOD.slice(GOOD.indexOf('          lifecycle:'));
export const STRATEGY = GOOD.slice(GOOD.indexOf('  strategy:'), GOOD.indexOf('  template:'));
export const PORTS = GOOD.slice(GOOD.indexOf('          ports:'), GOOD.indexOf('          livenessProbe:'));

export function report(text: string, options?: object): Report {
  return check([{ file: 'a.yaml', text }], options && budget(options));
}

export function budget(options: object): BudgetFile {
  plan(options);
  return { file: 'budget.json', names: [], optionsOf: () => options };
}

/** What was found, short: `error R-SHUT-K8S-1 :13`. */
export function verdicts(text: string, options?: object): string[] {
  return report(text, options).findings.map(({ severity, code, place }) => `${severity} ${code} :${place.line}`);
}

export function messages(text: string, options?: object): string {
  const { findings, notes } = report(text, options);
  return [...findings, ...notes].map(({ message }) => message).join('\n');
}
