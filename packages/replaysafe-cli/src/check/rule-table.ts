/** Every rule that a manifest can break, by its code in the standard. Documented in docs/guides/kubernetes.md. */
export const RULES = {
  'R-SHUT-1': 'SIGTERM reaches the service',
  'R-SHUT-2': '60 s in all; what does not fit is cut into smaller work, the budget is not raised',
  'R-SHUT-CFG-3': 'readiness can turn 503 while the process still runs',
  'R-SHUT-CFG-4': '/health/live and /health/ready are separate',
  'R-SHUT-HTTP-2': 'the preStop hook waits 10 s, until no balancer sends new connections',
  'R-SHUT-K8S-1': 'terminationGracePeriodSeconds: 60 is explicit',
  'R-SHUT-K8S-2': 'a liveness and a readiness probe, on /health/live and /health/ready',
  'R-SHUT-K8S-3': 'maxSurge: 1, maxUnavailable: 0',
  'R-SHUT-K8S-X1': 'no serving container without a preStop hook',
  'R-SHUT-K8S-X2': 'no grace period that is over before the requests are',
  'R-SHUT-OBS-1': 'preStop, HTTP, work, consumers and pools fit the grace period together',
} as const satisfies Readonly<Record<string, string>>;

export type RuleCode = keyof typeof RULES;
export const RULE_CODES = Object.keys(RULES) as readonly RuleCode[];
