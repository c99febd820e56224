import { isMap, isPair, isScalar, visit, type Document, type Node, type Pair } from 'yaml';

/** Where a template still stands in a text that YAML could read. */
export interface TemplateLeft {
  readonly offset: number;
  readonly end: number;
}

/** Keys whose values are judged: a placeholder there makes the manifest unreadable, elsewhere it may be the application's own. */
const JUDGED = new Set([
  'kind',
  'replicas',
  'minReplicas',
  'maxReplicas',
  'terminationGracePeriodSeconds',
  'maxSurge',
  'maxUnavailable',
  'seconds',
  'port',
  'containerPort',
]);
const PLACEHOLDER = /\{\{|<%|\$\{|^\$\(|^\$[A-Za-z_]\w*$|^__\w+__$|^@\w+@$/;
const BRACES = /\{\{|<%/;

/**
 * Finds `{{ … }}` that YAML reads as a map inside a map, and placeholders in values that are judged. Braces inside other texts are
 * left alone: alerts, dashboards and injected configuration have them after rendering, too.
 */
export function templateLeft(document: Document): TemplateLeft | undefined {
  let found: Node | undefined;
  visit(document, {
    Map: (_key, map) => {
      if (map.flow !== true || !map.items.some(({ key }) => isMap(key))) return undefined;
      found = map;
      return visit.BREAK;
    },
    Scalar: (_key, scalar, path) => {
      if (typeof scalar.value !== 'string' || !isPlaceholder(scalar.value, path)) return undefined;
      found = scalar;
      return visit.BREAK;
    },
  });
  const range = found?.range;
  return range ? { offset: range[0], end: range[1] } : undefined;
}

function isPlaceholder(text: string, path: readonly unknown[]): boolean {
  if (!text.includes('{{') && !PLACEHOLDER.test(text)) return false;
  const keys = path.filter(isPair).map(keyOf);
  const key = keys.at(-1) ?? '';
  const parent = keys.at(-2) ?? '';
  if (keys.some((name) => name === 'annotations' || name === 'data')) return false;
  if (JUDGED.has(key) || (key === 'path' && parent === 'httpGet')) return PLACEHOLDER.test(text);
  return key === 'name' && parent === 'metadata' && BRACES.test(text);
}

function keyOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : '';
}
