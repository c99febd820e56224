import { isAlias, isMap, isPair, isScalar, isSeq, type Document, type LineCounter, type Node, type Pair } from 'yaml';
import type { Place } from './finding.js';

/** A circle of merges or aliases is no manifest; whoever writes one gets an absent field. */
const DEEPEST = 20;

export interface Origin {
  readonly file: string;
  readonly document: Document;
  readonly lines: LineCounter;
}

/** One value in a YAML text, with its place. Aliases and merge keys are followed. */
export class Field {
  readonly place: Place;
  readonly #node: unknown;
  readonly #origin: Origin;

  constructor(origin: Origin, node: unknown, offset?: number) {
    this.#origin = origin;
    this.#node = resolved(node, origin.document);
    const { line, col } = origin.lines.linePos(offset ?? (node as Node | null)?.range?.[0] ?? 0);
    this.place = { file: origin.file, line, column: col };
  }

  /** The value under a key, in a map. Its place is that of the key. `null` counts as absent, as it does in Kubernetes. */
  get(key: string): Field | undefined {
    const pair = findPair(this.#node, key, this.#origin.document, 0);
    if (pair === undefined) return undefined;
    const field = new Field(this.#origin, pair.value, (pair.key as Node).range?.[0]);
    return field.isNull ? undefined : field;
  }

  at(...path: readonly string[]): Field | undefined {
    let field: Field | undefined;
    for (const key of path) {
      field = (field ?? this).get(key);
      if (field === undefined) return undefined;
    }
    return field ?? this;
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  /** The items of a list; nothing where it is none. */
  get items(): Field[] {
    return isSeq(this.#node) ? this.#node.items.map((item) => new Field(this.#origin, item)) : [];
  }

  /** The texts of a list's items. */
  get texts(): string[] {
    return this.items.map(({ text }) => text ?? '');
  }

  get keys(): string[] {
    if (!isMap(this.#node)) return [];
    return this.#node.items.map(({ key }) => (isScalar(key) ? scalarText(key) : ''));
  }

  get isMap(): boolean {
    return isMap(this.#node);
  }

  get isList(): boolean {
    return isSeq(this.#node);
  }

  get isNull(): boolean {
    return this.#node === null || this.#node === undefined || (isScalar(this.#node) && this.#node.value === null);
  }

  /** A map that is the key of a map: what is left of `{{ … }}` when YAML reads it. */
  get isBraces(): boolean {
    if (!isMap(this.#node) || this.#node.flow !== true) return false;
    return this.#node.items.some(({ key }) => isMap(key));
  }

  /** A scalar as it is written, e.g. a name that looks like a number. */
  get text(): string | undefined {
    return isScalar(this.#node) && this.#node.value !== null ? scalarText(this.#node) : undefined;
  }

  /** A whole number that is written as one: `"60"` is a string and refused by Kubernetes. */
  get whole(): number | undefined {
    return isScalar(this.#node) && Number.isInteger(this.#node.value) ? Number(this.#node.value) : undefined;
  }
}

function resolved(node: unknown, document: Document): unknown {
  let target = node;
  for (let depth = 0; isAlias(target) && depth < DEEPEST; depth += 1) target = target.resolve(document);
  return isAlias(target) ? null : target;
}

function scalarText(scalar: { readonly value: unknown; readonly source?: string }): string {
  return typeof scalar.value === 'string' ? scalar.value : (scalar.source ?? String(scalar.value));
}

function findPair(node: unknown, key: string, document: Document, depth: number): Pair | undefined {
  if (!isMap(node) || depth > DEEPEST) return undefined;
  const own = node.items.find((pair) => isPair(pair) && isScalar(pair.key) && scalarText(pair.key) === key);
  if (own !== undefined) return own;
  for (const pair of node.items) {
    if (!isScalar(pair.key) || scalarText(pair.key) !== '<<') continue;
    const merged = resolved(pair.value, document);
    for (const source of isSeq(merged) ? merged.items : [merged]) {
      const found = findPair(resolved(source, document), key, document, depth + 1);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}
