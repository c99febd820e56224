#!/usr/bin/env node
import { text } from 'node:stream/consumers';
import { run } from './run.js';

process.exitCode = await run(process.argv.slice(2), process.env, {
  out: (line) => {
    console.log(line);
  },
  err: (line) => {
    console.error(line);
  },
  input: () => text(process.stdin),
});
