import { LineCounter, parseAllDocuments, visit, type Document } from 'yaml';
import { templateLeft } from './template-left.js';
import { Field } from './field.js';
import type { Place, Unreadable } from './finding.js';

export interface Documents {
  /** The objects: documents, and the items of those that are lists. */
  readonly objects: readonly Field[];
  readonly unreadable: readonly Unreadable[];
}

/** What no YAML has outside of a text, and templates have: Helm and Go, Jinja, ERB, ytt. */
const TEMPLATE = /\{\{|\{%|<%|(?:^|[\s:])#@[ \t/]/;

/** Reads one text of any number of YAML documents. */
export function readDocuments(file: string, text: string): Documents {
  const lines = new LineCounter();
  // YAML 1.1, as Kubernetes reads it: merge keys, and `060` is 48.
  const parsed = parseAllDocuments(text, {
    version: '1.1',
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'silent',
  });
  const objects: Field[] = [];
  for (const document of parsed) {
    const [error] = document.errors;
    if (error !== undefined) {
      const { line, col } = lines.linePos(error.pos[0]);
      const place = { file, line, column: col };
      return { objects: [], unreadable: [templateIn(file, text) ?? { place, message: `not YAML: ${error.message}` }] };
    }
    const dangling = danglingAlias(document);
    if (dangling !== undefined) {
      const { line, col } = lines.linePos(dangling);
      return {
        objects: [],
        unreadable: [{ place: { file, line, column: col }, message: 'not YAML: an alias of no anchor' }],
      };
    }
    const left = templateLeft(document);
    if (left !== undefined) {
      const { line, col } = lines.linePos(left.offset);
      return { objects: [], unreadable: [unrendered({ file, line, column: col }, text.slice(left.offset, left.end))] };
    }
    const field = new Field({ file, document, lines }, document.contents);
    if (field.text !== undefined)
      return { objects: [], unreadable: [{ place: field.place, message: 'no YAML of objects' }] };
    if (!field.isNull) objects.push(...itemsOf(field));
  }
  const ytt = /^[^'"#\n]*: #@[ \t/]/m.exec(text);
  if (ytt !== null) return { objects: [], unreadable: [unrendered(placeOf(file, text, ytt.index), '#@')] };
  return { objects, unreadable: [] };
}

function danglingAlias(document: Document): number | undefined {
  let found: number | undefined;
  visit(document, {
    Alias: (_key, alias) => {
      if (alias.resolve(document) !== undefined) return undefined;
      found = alias.range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return found;
}

function unrendered(place: Place, shown: string): Unreadable {
  return {
    place,
    message: `this is a template (${shown.trim().slice(0, 60)}): render it first, e.g. \`helm template … | replaysafe check -\``,
  };
}

function templateIn(file: string, text: string): Unreadable | undefined {
  const found = TEMPLATE.exec(text);
  if (found === null) return undefined;
  const line = text.slice(found.index).split('\n', 2).join('\n').trim().split('\n', 1)[0] ?? '';
  return unrendered(placeOf(file, text, found.index), line);
}

function placeOf(file: string, text: string, index: number): Place {
  const before = text.slice(0, index).split('\n');
  return { file, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** `kind: List` and its like hold objects in `items`, and may be nested. */
function itemsOf(object: Field): Field[] {
  const isList = object.get('kind')?.text?.endsWith('List') === true && object.get('items')?.isList === true;
  return isList ? (object.get('items')?.items ?? []).flatMap(itemsOf) : [object];
}
