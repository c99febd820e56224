import tseslint from 'typescript-eslint';

const library = 'packages/replaysafe/src';

/** Rooms that must not import one another; what they share lies below them, in `ports`, `retry`, `errors`, `events`, `options`. */
const rooms = ['lifecycle', 'idempotency', 'outbox', 'inbox', 'client', 'tasks', 'migrate'];
const above = ['adapters', 'testing'];

const forbidFolders = (folders, message) => ({
  group: folders.flatMap((folder) => [`**/${folder}/*`, `**/${folder}/**`]),
  message,
});

const thirdParty = {
  regex: '^(?!\\.|node:)',
  message: 'Third-party names belong in adapters/ (and undici in client/).',
};

const walls = (files, patterns, ignores = []) => ({
  files,
  ignores,
  rules: { 'no-restricted-imports': ['error', { patterns }] },
});

const noWallClock = {
  selector:
    "CallExpression[callee.name=/^(setTimeout|setInterval)$/], MemberExpression[object.name='Date'][property.name='now'], NewExpression[callee.name='Date'][arguments.length=0], MemberExpression[object.name='performance'], MemberExpression[object.name='AbortSignal'][property.name='timeout']",
  message: 'Wall clock and timers only through ports/clock.ts.',
};
const noProcess = {
  selector: "Identifier[name='process']:not(Property > Identifier.key)",
  message: 'process only in lifecycle/signals.ts, lifecycle/watchdog.ts and the CLI.',
};
// A statement begins with a verb, or with the comment that names it in the server's log.
const sqlText = String.raw`/^\s*(\u002f\*|(select|insert into|update|delete from|with \w+ as|create|alter|begin|commit)\s)/i`;
const noSql = {
  selector: `Literal[value=${sqlText}], TemplateElement[value.raw=${sqlText}]`,
  message: 'SQL only in sql.ts files.',
};

export default tseslint.config(
  { ignores: ['**/dist/', '**/node_modules/', 'coverage/'] },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        project: ['tsconfig.tests.json', 'packages/*/tsconfig.json', 'examples/*/tsconfig.json'],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/only-throw-error': 'error',
      // A module of Nest is an empty class with a decorator.
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      'no-console': 'error',
      eqeqeq: 'error',
    },
  },

  // Imports go down only: adapters, testing -> rooms -> retry -> ports -> errors, events, options.
  walls(
    [`${library}/{errors,events,options}.ts`],
    [forbidFolders(['ports', 'retry', ...rooms, ...above], 'Imports go down only.'), thirdParty],
  ),
  walls([`${library}/ports/**`], [forbidFolders(['retry', ...rooms, ...above], 'Imports go down only.'), thirdParty]),
  walls([`${library}/retry/**`], [forbidFolders([...rooms, ...above], 'Imports go down only.'), thirdParty]),
  ...rooms.map((room) =>
    walls(
      [`${library}/${room}/**`],
      [
        forbidFolders(
          [...rooms.filter((other) => other !== room), ...above],
          'A room never imports a sibling, nor what is above it.',
        ),
        room === 'client' ? { ...thirdParty, regex: '^(?!\\.|node:|undici$)' } : thirdParty,
      ],
    ),
  ),
  walls([`${library}/testing/**`], [thirdParty]),

  {
    files: [`${library}/**`],
    ignores: [`${library}/ports/clock.ts`],
    rules: { 'no-restricted-syntax': ['error', noWallClock, noProcess, noSql] },
  },
  {
    files: [`${library}/**/sql.ts`, `${library}/adapters/sql/**`, `${library}/testing/**`],
    rules: { 'no-restricted-syntax': ['error', noWallClock, noProcess] },
  },
  {
    files: [`${library}/lifecycle/signals.ts`, `${library}/lifecycle/watchdog.ts`],
    rules: { 'no-restricted-syntax': ['error', noWallClock] },
  },
  { files: [`${library}/ports/clock.ts`], rules: { 'no-restricted-syntax': ['error', noProcess] } },

  // Programs talk to a terminal.
  {
    files: [
      'packages/replaysafe-cli/**',
      'examples/**',
      'bench/**',
      '**/test/programs/**',
      '**/test/drain/main.ts',
      'packages/test-services/**',
    ],
    rules: { 'no-console': 'off' },
  },
  // Tests reach into values whose shape they assert.
  {
    files: ['**/test/**', '**/*.test.ts', 'bench/**'],
    rules: { '@typescript-eslint/no-non-null-assertion': 'off', '@typescript-eslint/require-await': 'off' },
  },
  { files: ['**/*.js', '**/*.mjs'], extends: [tseslint.configs.disableTypeChecked] },
);
