const LONGEST = 2_000;

/** Text that PostgreSQL can store: no NUL, no half surrogate pairs, and not a megabyte of it. */
export function storableText(text: string): string {
  return text
    .slice(0, LONGEST)
    .replaceAll('\0', '\uFFFD')
    .replaceAll(/\p{Surrogate}/gu, '\uFFFD');
}
