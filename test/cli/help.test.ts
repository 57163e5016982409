import { expect, test } from 'vitest';
import {
  didYouMean,
  EXIT,
  EXIT_SAYS,
  exitRows,
  helpOf,
  helpOfAll,
  readArguments,
} from '../../src/cli/command.ts';
import { loadCommands } from '../../src/cli/commands.ts';
import { takeEnvFiles } from '../../src/cli/env-file.ts';

const COMMANDS = await loadCommands();

const commands = [...COMMANDS];

test.each(commands)(
  'the help of %s contains every option, its examples and its exit codes',
  (name, command) => {
    const help = helpOf(name, command);
    expect(Object.keys(command.optionHelp)).toEqual(Object.keys(command.options));
    for (const option of Object.keys(command.options)) expect(help).toContain(`  --${option}`);
    expect(command.examples.length).toBeGreaterThan(0);
    for (const [line, purpose] of command.examples) {
      expect(help).toContain(`  ${line}`);
      expect(help).toContain(purpose);
    }
    for (const exit of command.exits) expect(help).toMatch(new RegExp(`^  ${EXIT[exit]} +`, 'm'));
    expect(command.exits).toEqual(expect.arrayContaining(['ok', 'usage']));
  },
);

const examples = commands.flatMap(([name, { examples }]) => examples.map(([line]) => [name, line] as const));

test.each(examples)('%s accepts its own example `%s`', (name, line) => {
  const [, words = ''] = /catalog-mirror ([^|)]*)/.exec(line) ?? [];
  const [first, ...args] = words.trim().split(' ');
  expect(first).toBe(name);
  const command = COMMANDS.get(name);
  expect(
    command && readArguments(command, takeEnvFiles(args).rest).positionals.every((word) => word !== ''),
  ).toBe(true);
});

test('the general help names every command, and every exit code with its commands', () => {
  const help = helpOfAll(COMMANDS);
  for (const [name, { summary }] of commands) expect(help).toContain(`  ${name.padEnd(13)}${summary}`);
  expect(exitRows(COMMANDS).map(({ says }) => says)).toEqual(Object.values(EXIT_SAYS));
  expect(help).toContain(`  2   status: ${EXIT_SAYS.broken}`);
  expect(help).toContain(`  78  ${EXIT_SAYS.usage}`);
});

test.each([
  ['rnu', '; did you mean run?'],
  ['stauts', '; did you mean status?'],
  ['sandboxes', '; did you mean sandbox?'],
  ['everything', ''],
  ['', ''],
])('the suggestion for %j is %j', (word, said) => {
  expect(didYouMean(word, [...COMMANDS.keys()])).toBe(said);
});

test('an unknown option comes with the nearest one', () => {
  const run = COMMANDS.get('run');
  expect(() => run && readArguments(run, ['--onse', '--zzzzzz'])).toThrow(
    '--onse: no such option; did you mean --once?\n--zzzzzz: no such option',
  );
});
