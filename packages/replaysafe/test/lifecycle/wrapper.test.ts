import { expect, it } from 'vitest';
import { parentOf, wrapperWarning } from '../../src/lifecycle/wrapper.js';

it.each(['sh', 'bash', 'dash', 'npm', 'npm start', 'npm run start', 'pnpm', 'yarn'])(
  'warns of %s as the first process',
  (name) => {
    expect(wrapperWarning(name)).toContain(`PID 1 is ${name}`);
  },
);

it.each(['systemd', 'tini', 'docker-init', 'dumb-init', 'node', 'npmd', 'shim'])('has nothing against %s', (name) => {
  expect(wrapperWarning(name)).toBeUndefined();
});

it('reads the parent behind any name', () => {
  expect(parentOf('42 (node) S 17 42 42 0')).toBe(17);
  expect(parentOf('42 (a) S 9 (b) S 1 42')).toBe(1);
});
