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

/** One line about whatever was thrown, fit to be stored. Never throws, whatever the value does when it is looked at. */
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
  return `${error.name}: ${state === undefined ? '' : `[${state}] `}${error.message.slice(0, 2 * LONGEST)}`;
}
