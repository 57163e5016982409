import { describe, expect, test } from 'vitest';
import { readArguments, UsageError } from '../../src/cli/command.ts';
import { loadCommands } from '../../src/cli/commands.ts';
import { follow } from '../../src/cli/follow.ts';
import { refresh } from '../../src/cli/refresh.ts';
import { WRONG_VALUES } from './wrong-values.ts';

const COMMANDS = await loadCommands();

/** Returns the problems that a command finds in its arguments before it runs, one by one. */
function problemsOf(name: string, argv: readonly string[]): readonly string[] {
  const command = COMMANDS.get(name);
  if (command === undefined) throw new Error(`no command ${name}`);
  try {
    readArguments(command, argv);
    return [];
  } catch (error) {
    if (error instanceof UsageError) return error.problems;
    throw error;
  }
}

test.each(WRONG_VALUES)(
  '$name $arg is reported next to an unknown option, each once',
  ({ name, arg, said }) => {
    const problems = problemsOf(name, [arg, '--zzz']);
    expect(problems).toContain('--zzz: no such option');
    expect(problems.filter((problem) => said.test(problem)).length).toBeGreaterThan(0);
    expect(new Set(problems).size).toBe(problems.length);
  },
);

test('each command reports all its wrong values at once', () => {
  for (const name of COMMANDS.keys()) {
    const wrong = WRONG_VALUES.filter((each) => each.name === name);
    const problems = problemsOf(name, [...wrong.map(({ arg }) => arg), '--zzz']);
    for (const { said } of wrong) expect(problems.some((problem) => said.test(problem))).toBe(true);
  }
});

describe('a misspelt or incomplete option: problems that only follow from it are not reported', () => {
  test.each<[string, string[], string]>([
    ['run', ['--timeout', '5m', '--onec'], '--onec: no such option; did you mean --once?'],
    ['run', ['--timeout=5m', '--once=yes'], '--once: takes no value'],
    ['export', ['--ot', 'folder'], '--ot: no such option; did you mean --out?'],
    ['export', ['--out'], '--out: expects a value'],
    ['refresh', ['--manifset'], '--manifset: no such option; did you mean --manifest?'],
    ['refresh', ['--accept-shrink', '--manifset'], '--manifset: no such option; did you mean --manifest?'],
    ['plan', ['--skuss', '300', '--json'], '--skuss: no such option; did you mean --skus?'],
    ['sandbox', ['--catlog', 'x', '--skus', '0'], '--catlog: no such option; did you mean --catalog?'],
    [
      'sandbox',
      ['--nwo', '2026-01-01T00:00:00Z', '--market-interval', '30d'],
      '--nwo: no such option; did you mean --now?',
    ],
    ['follow', ['--nmae', 'a', '--discard'], '--nmae: no such option; did you mean --name?'],
    [
      'follow',
      ['--nmae', 'a', '--webhook', 'https://shop.example/changes', '--batch', '5'],
      '--nmae: no such option; did you mean --name?',
    ],
    ['follow', ['--name', 'a', '--batch', '5', '--webhook'], '--webhook: expects a value'],
    ['follow', ['--lsit', '--json'], '--lsit: no such option; did you mean --list?'],
  ])('%s %j', (name, argv, said) => {
    expect(problemsOf(name, argv)).toEqual([said]);
  });
});

describe('an option behind one whose shell variable was empty is not taken for its value', () => {
  const missing = (option: string) =>
    `${option}: expects a value; one that begins with -- is written ${option}=--…`;

  test.each<[string, string[], string[]]>([
    ['export', ['--out', '--replace'], [missing('--out')]],
    ['export', ['--out', '--what', 'prices'], [missing('--out')]],
    ['export', ['--what', '--out', '--replace'], [missing('--what'), missing('--out')]],
    ['sandbox', ['--secret', '--log'], [missing('--secret')]],
    ['sandbox', ['--api-key', '--log', '--secret', 'x'], [missing('--api-key')]],
    ['follow', ['--name', '--list', '--json'], [missing('--name')]],
    ['follow', ['--name', 'a', '--filter', '--once'], [missing('--filter')]],
    ['run', ['--timeout', '--once'], [missing('--timeout')]],
    ['export', ['--out', '--'], [missing('--out')]],
  ])('%s %j', (name, argv, said) => {
    expect(problemsOf(name, argv)).toEqual(said);
  });

  test('but is its value if both are written as one word', () => {
    const command = COMMANDS.get('sandbox');
    expect(command && readArguments(command, ['--secret=--log']).values).toEqual({
      secret: '--log',
    });
  });
});

test('an option with two different values is rejected, and one with the same value twice is accepted', () => {
  expect(problemsOf('export', ['--out', 'f', '--what', 'prices', '--what', 'history'])).toEqual([
    '--what: given twice, as prices and history; it is one of the two',
  ]);
  expect(problemsOf('export', ['--out', 'f', '--what', 'prices', '--what=prices'])).toEqual([]);
  expect(problemsOf('follow', ['--filter', 'sku=A', '--filter', 'sku=B'])).toEqual([]);
});

test('a word behind an option without a value is one too many', () => {
  expect(problemsOf('run', ['--onec', 'extra'])).toEqual([
    '--onec: no such option; did you mean --once?',
    'extra: not expected here',
  ]);
  expect(problemsOf('refresh', ['--zzz', 'A'])).toEqual(['--zzz: no such option']);
});

describe('refresh rejects words that are hardly SKUs, because it would mirror them under that name', () => {
  const control = 'not a SKU: it has a control character, such as the line end of a file from Windows';
  const blank = 'not a SKU: it begins or ends with a blank';

  test.each<[string, string]>([
    ['DD1391-100\r', `"DD1391-100\\r": ${control}`],
    ['DD1391-100\nFV5029-141', `"DD1391-100\\nFV5029-141": ${control}`],
    ['a\u009b', `"a\\u009b": ${control}`],
    [' DD1391-100', `" DD1391-100": ${blank}`],
    ['DD1391-100\u00a0', `"DD1391-100\u00a0": ${blank}`],
  ])('%j', (word, said) => {
    expect(problemsOf('refresh', ['FV5029-141', word])).toEqual([]);
    const args = readArguments(refresh, ['FV5029-141', word]);
    expect(refresh.problemsOf?.(args)).toEqual([said]);
  });

  test('rejects SKUs together with an option for the whole catalog', () => {
    for (const option of ['--all', '--metadata']) {
      const args = readArguments(refresh, ['DD1391-100', option]);
      expect(refresh.problemsOf?.(args)).toEqual([`${option}: expected no SKUs with it, as it is of all`]);
      expect(refresh.problemsOf?.(readArguments(refresh, [option]))).toEqual([]);
    }
    expect(refresh.problemsOf?.(readArguments(refresh, ['DD1391-100', '--manifest']))).toEqual([]);
  });

  test('accepts a SKU that contains a blank', () => {
    expect(refresh.problemsOf?.(readArguments(refresh, ['AIR 1 2']))).toEqual([]);
  });
});

test('follow reports an unusable URL together with values that do not fit', async () => {
  const args = readArguments(follow, ['--name', 'a', '--webhook', 'ftp://x', '--batch', '0']);
  await expect(follow.run({ ...args, print: () => {}, printed: async () => {} })).rejects.toMatchObject({
    kind: 'usage',
    problems: [expect.stringMatching(/^--batch: /), '--webhook: expected an https:// URL'],
  });
});

test.each(['-- of one SKU\nSELECT 1', '--\tof one SKU\nSELECT 1', '--\nSELECT 1'])(
  'a query that begins with a comment, as in the documents, is not taken for an option: %j',
  (query) => {
    const command = COMMANDS.get('sql');
    if (command === undefined) throw new Error('no command sql');
    for (const argv of [[query], ['--json', query], [query, '--json'], ['--', query]])
      expect(readArguments(command, argv).positionals).toEqual([query]);
    expect(problemsOf('sql', ['SELECT 1', query])).toEqual([]);
  },
);

test('--help and --version with a value are rejected by every command as taking none', () => {
  for (const name of COMMANDS.keys())
    expect(problemsOf(name, ['--help=zsh', '--version=1']).slice(0, 2)).toEqual([
      '--help: takes no value',
      '--version: takes no value',
    ]);
});

describe('a word with a single dash is one option, not one for each of its letters', () => {
  test.each<[string, string[], string[]]>([
    ['verify', ['-json'], ['-json: no such option; did you mean --json?']],
    ['plan', ['-skus=300'], ['-skus: no such option; did you mean --skus?']],
    ['plan', ['-skus', '300', '--json'], ['-skus: no such option; did you mean --skus?']],
    [
      'status',
      ['-env-file', '-x'],
      ['-env-file: no such option; did you mean --env-file?', '-x: no such option'],
    ],
    ['show', ['-5', 'A1'], ['-5: no such option']],
    ['show', ['-10%', 'A1'], ['-10%: no such option']],
  ])('%s %j', (name, argv, problems) => {
    expect(problemsOf(name, argv)).toEqual(problems);
  });

  test('but is an argument behind --', () => {
    expect(problemsOf('show', ['--', '-json'])).toEqual([]);
  });
});

test.each([' ', '\t', '\n', '\u00A0'])('%j alone is not a number', (blank) => {
  expect(problemsOf('plan', [`--skus=${blank}`, '--zzz'])).toContainEqual(
    expect.stringMatching(/^--skus: expected/),
  );
  expect(problemsOf('doctor', [`--requests=${blank}`, '--zzz'])).toContainEqual(
    expect.stringMatching(/^--requests: expected/),
  );
});
