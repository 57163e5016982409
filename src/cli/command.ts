import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';
import { nearest } from '../lib/nearest.ts';
import type { Printer } from './terminal.ts';

/** Exit codes. `--help` and the README show those that a command names, as described in `EXIT_SAYS`. */
export const EXIT = {
  ok: 0,
  failed: 1,
  finding: 1,
  claim: 1,
  unanswered: 1,
  degraded: 1,
  broken: 2,
  unfinished: 1,
  timeout: 75,
  usage: 78,
} as const;

export type ExitName = keyof typeof EXIT;

export const EXIT_SAYS: Readonly<Record<ExitName, string>> = {
  ok: 'success, or stopped on request',
  failed: 'failed; stderr or the last log line says why',
  finding: 'at least one check is FAIL',
  claim:
    'what p_right claims does not hold for the sample: prices are less often right, or more often (the claim is outside the interval)',
  unanswered: 'the daemon does not answer, or is not live',
  degraded:
    'filling, degraded or paused: prices miss their freshness targets or soon will; sync is working, or somebody has paused it',
  broken: 'broken: sync has stopped and needs an operator',
  unfinished: '--once was stopped on request before everything was done',
  timeout: '--timeout expired; stderr lists the work that is still pending',
  usage:
    'invalid option, argument or setting (each one is named), or no mirror there that the command may read; nothing was changed',
};

/** One command of the program. `run` returns the exit code and writes human-readable output to `print`. */
export interface Command {
  readonly summary: string;
  /** Lines below "Usage:", without the program's name. */
  readonly usage: string;
  /** Lines for a shell, each with its purpose. */
  readonly examples: readonly (readonly [line: string, purpose: string])[];
  readonly exits: readonly ExitName[];
  readonly options: ParseArgsOptionsConfig;
  readonly optionHelp: Readonly<Record<string, string>>;
  /** Values that an option may have, if they are known in advance. */
  readonly choices?: Readonly<Record<string, readonly string[]>>;
  /** Boolean options that may nevertheless have a value: `--watch`, `--watch 5`, `--watch=5`. */
  readonly optionalValues?: readonly string[];
  readonly moreHelp?: readonly string[];
  readonly positionals: boolean;
  /** All positional words that are allowed, if they are known in advance. */
  readonly words?: readonly string[];
  /**
   * Returns what is wrong with values and other arguments, to be printed together with unknown and incomplete options.
   * Changes nothing; `run` finds the same.
   */
  readonly problemsOf?: (args: Arguments) => readonly string[];
  /**
   * Returns whether the command only prints, for as long as somebody reads: it ends with its reader, by exit code 0.
   */
  readonly endsUnread?: (args: Arguments) => boolean;
  run(args: CommandArgs): Promise<number>;
}

/** Everything after a command's name. */
export interface Arguments {
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  /** Options that may be given more than once (`multiple`), each with its values in order. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
  readonly positionals: readonly string[];
  /**
   * Options that are present. They may be misspelt or lack their value, and are then not in `values`. A command that
   * requires one does not report it as missing.
   */
  readonly given: ReadonlySet<string>;
}

export interface CommandArgs extends Arguments, Printer {}

/** Wrong options and arguments: all of them at once, one per line. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly kind = 'usage';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** Makes `problemsOf` from the function that reads a command's arguments and throws UsageError if they are wrong. */
export const problemsIn =
  (read: (args: Arguments) => unknown) =>
  (args: Arguments): readonly string[] => {
    try {
      read(args);
      return [];
    } catch (error) {
      if (error instanceof UsageError) return error.problems;
      throw error;
    }
  };

// A swap of two letters counts as two edits.
const meantBy = (word: string, words: readonly string[]) =>
  nearest(word, words, ({ length }) => (length > 2 ? 2 : 0));

/** Returns `; did you mean …?` if one of the words is similar enough, else nothing. */
export function didYouMean(word: string, words: readonly string[]): string {
  const meant = meantBy(word, words);
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}

/**
 * Reads the arguments of a command, which checks their values itself when it runs.
 *
 * @throws UsageError naming every unknown or incomplete option, and then what else is wrong
 */
export function readArguments(
  command: Pick<Command, 'options' | 'positionals' | 'optionalValues' | 'problemsOf'>,
  argv: readonly string[],
): Arguments {
  const { problems, ...read } = takenApart(command, argv);
  if (problems.length > 0) throw new UsageError([...problems, ...(command.problemsOf?.(read) ?? [])]);
  return read;
}

/** Options of every command, which are removed before it reads its own. Those that are left here are malformed. */
const OF_ALL = ['env-file', 'help', 'version'];

function takenApart(
  command: Pick<Command, 'options' | 'positionals' | 'optionalValues'>,
  argv: readonly string[],
): Arguments & { readonly problems: readonly string[] } {
  const { tokens, incomplete } = tokensOf(command.options, argv);
  const flags = [...Object.keys(command.options), ...OF_ALL].map((option) => `--${option}`);
  const problems = incomplete.map(
    (name) => `--${name}: expects a value; one that begins with -- is written --${name}=--…`,
  );
  const values: Record<string, string | boolean | undefined> = {};
  const lists: Record<string, string[]> = {};
  const positionals: string[] = [];
  const given = new Set(incomplete);
  /** Takes the word after an option, if there is one. */
  let take: ((word: string) => void) | null = null;
  for (const token of tokens) {
    const takes = take;
    take = null;
    if (token.kind === 'positional' && takes !== null) takes(token.value);
    else if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    const known = Object.hasOwn(command.options, name) ? command.options[name] : undefined;
    const meant = known === undefined ? (meantBy(rawName, flags)?.slice(2) ?? name) : name;
    given.add(meant);
    if (known === undefined && value !== undefined && OF_ALL.includes(name))
      problems.push(`${rawName}: takes no value`);
    else if (known === undefined) {
      problems.push(`${rawName}: no such option${didYouMean(rawName, flags)}`);
      const takesNone = command.positionals || command.options[meant]?.type === 'boolean';
      // The next word is then its value.
      if (value === undefined && !takesNone) take = () => {};
    } else if (known.type === 'string' && value === undefined) problems.push(`${rawName}: expects a value`);
    else if (command.optionalValues?.includes(name) === true) {
      values[name] = value ?? true;
      if (value === undefined)
        take = (word) => {
          values[name] = word;
        };
    } else if (known.type === 'boolean' && value !== undefined) problems.push(`${rawName}: takes no value`);
    else {
      const before = values[name];
      values[name] = value ?? true;
      if (known.multiple === true) (lists[name] ??= []).push(value ?? '');
      else if (before !== undefined && before !== values[name])
        problems.push(
          `${rawName}: given twice, as ${String(before)} and ${String(value)}; it is one of the two`,
        );
    }
  }
  if (!command.positionals) problems.push(...positionals.map((word) => `${word}: not expected here`));
  return { values, lists, positionals, given, problems };
}

/**
 * Returns the tokens of all words, except for options whose value would be the next option: what a shell leaves of
 * `--out $folder --replace` if that variable is empty. `incomplete` contains their names. A single dash also begins an
 * option, whose letters `parseArgs` would read as one option each. Pure.
 */
function tokensOf(options: ParseArgsOptionsConfig, argv: readonly string[]) {
  const args = [...argv];
  const incomplete: string[] = [];
  for (;;) {
    const { tokens } = parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true });
    const letter = tokens.find((token) => token.kind === 'option' && !token.rawName.startsWith('--'));
    const taker = tokens.find(
      (token) => token.kind === 'option' && token.inlineValue === false && token.value.startsWith('--'),
    );
    if (letter !== undefined) args[letter.index] = `${ONE_DASH}${args[letter.index] ?? ''}`;
    else if (taker?.kind === 'option') {
      incomplete.push(taker.name);
      args.splice(taker.index, 1);
    } else return { tokens: tokens.map((token) => asWord(token, args)), incomplete };
  }
}

/** Put before a word with one dash. No argument can contain a NUL. */
const ONE_DASH = '--\0';

type Token = NonNullable<ReturnType<typeof parseArgs>['tokens']>[number];

/** Turns SQL that begins with a comment into a word, because no option has a blank after its dashes. Pure. */
function asWord(token: Token, args: readonly string[]): Token {
  const value = args[token.index] ?? '';
  if (token.kind !== 'option') return token;
  if (/^--\s/.test(value)) return { kind: 'positional', index: token.index, value };
  return { ...token, rawName: token.rawName.replace(ONE_DASH, '') };
}

/** Reads a number option, or returns its default. Adds what is wrong with it to `problems`. */
export function numberOption(
  values: CommandArgs['values'],
  name: string,
  fallback: number,
  range: { readonly min: number; readonly max: number; readonly whole?: boolean },
  problems: string[],
): number {
  const given = values[name];
  if (given === undefined) return fallback;
  const number = Number(given);
  const fits =
    Number.isFinite(number) && number >= range.min && number <= range.max && /\S/.test(String(given));
  if (!fits || (range.whole !== false && !Number.isInteger(number))) {
    problems.push(
      `--${name}: expected a ${range.whole === false ? '' : 'whole '}number from ${range.min} to ${range.max}`,
    );
    return fallback;
  }
  return number;
}

/**
 * Returns exit codes in order, for `--help` and the README. `only` is the one command of `commands` that uses the code,
 * or null if several do.
 */
export function exitRows(
  commands: ReadonlyMap<string, Pick<Command, 'exits'>>,
): { readonly code: number; readonly only: string | null; readonly says: string }[] {
  const names = Object.keys(EXIT) as ExitName[];
  return names.flatMap((name) => {
    const users = [...commands].filter(([, { exits }]) => exits.includes(name)).map(([user]) => user);
    const only = users.length === 1 ? (users[0] ?? null) : null;
    return users.length === 0 ? [] : [{ code: EXIT[name], only, says: EXIT_SAYS[name] }];
  });
}

/** Returns an option as it is written: `--port <value>`, `--seller-shipping yes|no`, `--watch [value]`, `--json`. */
export function optionForm(
  option: string,
  command: Pick<Command, 'options' | 'optionalValues' | 'choices'>,
): string {
  const choices = command.choices?.[option];
  if (choices !== undefined) return `--${option} ${choices.join('|')}`;
  if (command.optionalValues?.includes(option) === true) return `--${option} [value]`;
  return command.options[option]?.type === 'string' ? `--${option} <value>` : `--${option}`;
}

const LONGEST = 46;
/** Formats two columns. What is too long for the first has a line of its own. */
function inColumns(rows: readonly (readonly [string, string])[]): string[] {
  const widths = rows.map(([{ length }]) => length + 2).filter((width) => width <= LONGEST);
  const width = Math.max(0, ...widths);
  return rows.map(([left, right]) =>
    left.length < width ? `  ${left.padEnd(width)}${right}` : `  ${left}\n${' '.repeat(width + 2)}${right}`,
  );
}

/** Returns what `--help` prints: every command with its summary, and every exit code. */
export function helpOfAll(commands: ReadonlyMap<string, Command>): string {
  return [
    "catalog-mirror: continuously syncs a marketplace's catalog and lowest prices into your own Postgres",
    '',
    'Usage: catalog-mirror <command> [options]',
    '',
    ...inColumns([...commands].map(([name, { summary }]) => [name, summary])),
    '',
    'Exit codes:',
    ...inColumns(
      exitRows(commands).map(({ code, only, says }) => [
        String(code),
        only === null ? says : `${only}: ${says}`,
      ]),
    ),
    '',
    'Run `catalog-mirror <command> --help` for its options. Settings come from the environment, and from\n' +
      '`--env-file <file>`; `catalog-mirror config` shows them.',
  ].join('\n');
}

/** Returns what `<command> --help` prints: usage, options, examples and exit codes of one command. */
export function helpOf(name: string, command: Command): string {
  const { summary, usage, examples, optionHelp } = command;
  const options = Object.entries(optionHelp).map(
    ([option, text]) => [optionForm(option, command), text] as const,
  );
  return [
    `catalog-mirror ${name}: ${summary}`,
    '',
    'Usage:',
    ...usage.split('\n').map((line) => `  catalog-mirror ${line}`),
    '',
    'Options:',
    ...inColumns([
      ...options,
      ['--env-file <file>', 'read settings from this file, too; the environment takes precedence over it'],
      ['--help', 'show this help'],
    ]),
    ...(command.moreHelp ?? []),
    '',
    'Examples:',
    ...inColumns(examples),
    '',
    'Exit codes:',
    ...inColumns(exitRows(new Map([[name, command]])).map(({ code, says }) => [String(code), says])),
  ].join('\n');
}
