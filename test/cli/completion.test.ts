import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { EXIT, UsageError } from '../../src/cli/command.ts';
import { loadCommands } from '../../src/cli/commands.ts';

const COMMANDS = await loadCommands();

const NAMES = [...COMMANDS.keys()];
const flagsOf = (name: string) => [
  ...Object.keys(COMMANDS.get(name)?.optionHelp ?? {}).map((option) => `--${option}`),
  '--env-file',
  '--help',
  '--version',
];

/** Returns what `completion` prints for a shell. */
async function script(shell: string): Promise<string> {
  const printed: string[] = [];
  const run = COMMANDS.get('completion')?.run({
    values: {},
    lists: {},
    positionals: [shell],
    given: new Set(),
    print: (line) => printed.push(line),
    printed: async () => {},
  });
  expect(await run).toBe(EXIT.ok);
  return printed.join('\n');
}

/** A command line as typed when Tab is pressed, and what may follow. */
const CASES: readonly (readonly [typed: string, offered: readonly string[]])[] = [
  ['', [...NAMES, 'help']],
  ['re', ['refresh', 'resume']],
  ['xyz', []],
  ['--on', ['--once']],
  ['--once --t', ['--timeout']],
  ['completion ', ['bash', 'zsh']],
  ['completion b', ['bash']],
  ['help s', ['sandbox', 'show', 'sql', 'status']],
  ['refresh --me', ['--metadata']],
  ['status --json --w', ['--watch']],
  ['plan --live-', ['--live-share', '--live-ceiling', '--live-moves-every']],
  ['sandbox --seller-shipping ', ['yes', 'no']],
  ['sandbox --seller-shipping=n', ['no']],
  // A value that nobody can know beforehand.
  ['sandbox --port ', []],
  ['sandbox --port=', []],
  ['run --timeout 5', []],
  ['status --env-file tsc', ['tsconfig.json']],
  ['sandbox --port 0 --see', ['--seed']],
];

/** Asks bash as readline does, with the words of the line; `=` is a word of its own. */
async function askBash(lines: readonly string[]): Promise<string[][]> {
  const asked = lines.map((typed) => {
    const words = `catalog-mirror ${typed}`.replaceAll('=', ' = ').split(/ +/);
    return `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
      "$handler" catalog-mirror; echo "\${COMPREPLY[*]}"`;
  });
  const input = `set -u\n${await script('bash')}
    handler=$(complete -p catalog-mirror); handler=\${handler#* -F }; handler=\${handler% *}
    ${asked.join('\n')}`;
  const { stdout, stderr, status } = spawnSync('bash', ['--norc'], { input, encoding: 'utf8' });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' ').filter((word) => word !== ''));
}

test('bash offers what the command table contains', async () => {
  const offered = await askBash(CASES.map(([typed]) => typed));
  const told = CASES.map(([typed], at) => [typed, offered[at]?.toSorted()]);
  expect(told).toEqual(CASES.map(([typed, wanted]) => [typed, wanted.toSorted()]));
});

test('bash offers every option of every command', async () => {
  const offered = await askBash(NAMES.map((name) => `${name} --`));
  expect(offered).toEqual(NAMES.map((name) => flagsOf(name)));
});

const hasZsh = spawnSync('zsh', ['-fc', 'zmodload zsh/zpty']).status === 0;

test.skipIf(!hasZsh)('zsh offers the same as the command table', async () => {
  const driver = fileURLToPath(new URL('ask.zsh', import.meta.url));
  const lines = CASES.map(([typed]) => typed);
  const { stdout, stderr } = spawnSync('zsh', ['-f', driver, ...lines], {
    env: { ...process.env, SCRIPT: await script('zsh') },
    encoding: 'utf8',
    timeout: 30_000,
  });
  expect(stderr).toBe('');
  const offered = stdout.split('=\n').map((block) => block.split('\n').filter((line) => line !== ''));
  const told = CASES.map(([typed], at) => [typed, offered[at]?.toSorted()]);
  expect(told).toEqual(CASES.map(([typed, wanted]) => [typed, wanted.toSorted()]));
});

test.each([[[]], [['fish']], [['bash', 'zsh']], [['__proto__']]])(
  '%j is rejected with the names of the supported shells',
  async (positionals) => {
    const asked = COMMANDS.get('completion')?.run({
      values: {},
      lists: {},
      positionals,
      given: new Set(),
      print: () => {},
      printed: async () => {},
    });
    await expect(asked).rejects.toThrow(UsageError);
    await expect(asked).rejects.toThrow('bash or zsh');
  },
);
