import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';

/** Exit codes, as documented in the README. */
export const EXIT = { ok: 0, failed: 1, degraded: 1, broken: 2, timeout: 75, usage: 78 } as const;

/** One command of the program. `run` returns the exit code; what it prints for people goes to `print`. */
export interface Command {
  readonly summary: string;
  /** Lines below "Usage:", without the program's name. */
  readonly usage: string;
  readonly options: ParseArgsOptionsConfig;
  readonly optionHelp: Readonly<Record<string, string>>;
  /** Options of type boolean that may have a value all the same: `--watch`, `--watch 5`, `--watch=5`. */
  readonly optionalValues?: readonly string[];
  /** Lines below the options, such as examples. */
  readonly moreHelp?: readonly string[];
  /** Whether words beside the options are allowed. */
  readonly positionals: boolean;
  run(args: CommandArgs): Promise<number>;
}

export interface CommandArgs {
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  readonly positionals: readonly string[];
  readonly print: (line: string) => void;
}

/** A wrong option or argument: all of them at once, each on its line. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly kind = 'usage';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** Reads the arguments of a command; throws UsageError naming every unknown or incomplete option. */
export function readArguments(
  command: Pick<Command, 'options' | 'positionals' | 'optionalValues'>,
  argv: readonly string[],
): { values: Record<string, string | boolean | undefined>; positionals: string[] } {
  const { tokens } = parseArgs({
    args: [...argv],
    options: command.options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const problems: string[] = [];
  const values: Record<string, string | boolean | undefined> = {};
  const positionals: string[] = [];
  let open: string | null = null;
  for (const token of tokens) {
    const takes = open;
    open = null;
    if (token.kind === 'positional' && takes !== null) values[takes] = token.value;
    else if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const known = Object.hasOwn(command.options, token.name) ? command.options[token.name] : undefined;
    if (known === undefined) problems.push(`${token.rawName}: no such option`);
    else if (known.type === 'string' && token.value === undefined)
      problems.push(`${token.rawName}: expects a value`);
    else if (command.optionalValues?.includes(token.name) === true) {
      values[token.name] = token.value ?? true;
      if (token.value === undefined) open = token.name;
    } else if (known.type === 'boolean' && token.value !== undefined)
      problems.push(`${token.rawName}: takes no value`);
    else values[token.name] = token.value ?? true;
  }
  if (!command.positionals) problems.push(...positionals.map((word) => `${word}: not expected here`));
  if (problems.length > 0) throw new UsageError(problems);
  return { values, positionals };
}

/** A whole number option, or its default. Adds to `problems` what does not fit. */
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
  const fits = Number.isFinite(number) && number >= range.min && number <= range.max && given !== '';
  if (!fits || (range.whole !== false && !Number.isInteger(number))) {
    problems.push(
      `--${name}: expected a ${range.whole === false ? '' : 'whole '}number from ${range.min} to ${range.max}`,
    );
    return fallback;
  }
  return number;
}

/** The help text of one command. */
export function helpOf(name: string, command: Command): string {
  const options = Object.entries(command.optionHelp).map(([option, text]) => {
    const { type } = command.options[option] ?? { type: 'boolean' };
    const value = command.optionalValues?.includes(option) === true ? ' [value]' : '';
    return `  --${option}${type === 'string' ? ' <value>' : value}`.padEnd(30) + text;
  });
  return [
    `catalog-mirror ${name}: ${command.summary}`,
    '',
    'Usage:',
    ...command.usage.split('\n').map((line) => `  catalog-mirror ${line}`),
    '',
    'Options:',
    ...options,
    `${'  --help'.padEnd(30)}this text`,
    ...(command.moreHelp ?? []),
  ].join('\n');
}
