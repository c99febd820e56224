/** Writes docs/errors.md and docs/events.md from the tables in the code: `npm run docs`. */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ERRORS } from '../packages/replaysafe/src/errors.js';
import { EVENTS } from '../packages/replaysafe/src/events.js';

const docs = join(resolve(import.meta.dirname, '..'), 'docs');
const yesOrNo = (value: boolean): string => (value ? 'yes' : 'no');

writeFileSync(
  join(docs, 'errors.md'),
  `# Errors

Every error of the library is a \`ReplaysafeError\` with a \`code\` from this table. Match by \`code\` (\`hasCode(error, 'RS_…')\`),
never by message or by \`instanceof\`. A code is never reused for another meaning. *Retryable* says that doing the same again
later, with the same key, is safe and can succeed. *Status* is what an HTTP adapter answers with.

This page is written from \`packages/replaysafe/src/errors.ts\` by \`npm run docs\`.

| code | message | status | retryable |
| --- | --- | --- | --- |
${Object.entries(ERRORS)
  .map(([code, { message, status, retryable }]) => `| \`${code}\` | ${message} | ${status} | ${yesOrNo(retryable)} |`)
  .join('\n')}
`,
);

writeFileSync(
  join(docs, 'events.md'),
  `# Events

The library publishes each event on a channel of \`node:diagnostics_channel\`. Metrics and traces subscribe to them, tests wait
for them instead of sleeping, and the crash kit kills a process inside them. Subscribers run synchronously, before the next
statement of the publisher; a channel without subscribers costs nanoseconds. \`onEvent('outbox.marked', (event) => …)\` is the
typed way to subscribe. Events carry ids and counts, never keys, payloads or header values.

*Durable* events stand directly behind a step that survives the process: each has a crash test that kills the process there.

This page is written from \`packages/replaysafe/src/events.ts\` by \`npm run docs\`; the fields of each event are typed there.

| channel | durable | published when |
| --- | --- | --- |
${Object.entries(EVENTS)
  .map(([name, { durable, when }]) => `| \`replaysafe:${name}\` | ${yesOrNo(durable)} | ${when} |`)
  .join('\n')}
`,
);
