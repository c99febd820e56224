import { sqlState } from '../ports/sql.js';

/** Most characters of an error text that is stored or sent. A message may be a megabyte long. */
const LONGEST = 1_000;

/**
 * What is unfit for a text column or a header: NUL (which PostgreSQL refuses), other control characters, and halves of
 * surrogate pairs, which cannot be written as UTF-8.
 */

const UNFIT = /[\u0000-\u0008\u000B-\u001F\u007F\uFFFE\uFFFF]|\p{Surrogate}/gu;

/** Text that any column and any header takes, at most `longest` characters of it. */
export function storableText(text: string, longest: number = LONGEST): string {
  // Cut first: the cut may split a pair, and a megabyte need not be searched.
  const cut = text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
  return cut.replaceAll(UNFIT, '\uFFFD');
}

/** The longest beginning of a text that is at most so many bytes of UTF-8. */
export function firstBytes(text: string, longest: number): string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= longest) return text;
  let end = longest;
  // Back to the first byte of the character that the cut would split.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** One line about whatever was thrown and what caused it, fit to be stored. Never throws, whatever the value does when it is looked at. */
export function errorText(error: unknown): string {
  let text: string;
  try {
    text = describe(error);
  } catch {
    text = 'an error that cannot be read';
  }
  return storableText(text);
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : `thrown: ${String(error)}`;
  const state = sqlState(error);
  let text = `${error.name}: ${state === undefined ? '' : `[${state}] `}${messageOf(error)}`;
  let { cause } = error;
  for (let depth = 0; cause instanceof Error && depth < 3; depth++) {
    // A parser's complaint quotes what it read, which may be a payload.
    if (cause instanceof SyntaxError) break;
    const message = messageOf(cause);
    if (!text.includes(message)) text += `: ${message}`;
    cause = cause.cause;
  }
  return text;
}

/** Node tells a host with several addresses that all refuse by an error without a message: then those of its parts. */
function messageOf(error: Error): string {
  const parts = error.message === '' && error instanceof AggregateError ? (error.errors as readonly unknown[]) : [];
  const texts = parts.slice(0, 3).flatMap((part) => (part instanceof Error ? [part.message] : []));
  return (texts.length > 0 ? texts.join(', ') : error.message).slice(0, 2 * LONGEST);
}
