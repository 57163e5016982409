import type { Command } from '../../src/cli/command.ts';
import { loadCommands } from '../../src/cli/commands.ts';

/** Options that take any text; of all others the empty one is wrong. */
const ANY_TEXT: Readonly<Record<string, readonly string[]>> = {
  sandbox: ['host', 'api-key', 'secret', 'bulk-key'],
};

/** Arguments of a command that it has to refuse, and how the refusal begins. */
export interface WrongValue {
  readonly name: string;
  readonly arg: string;
  readonly said: RegExp;
}

function wrongValuesOf([name, command]: readonly [string, Command]): WrongValue[] {
  const checked = Object.entries(command.options)
    .filter(([option, { type }]) => type === 'string' || command.optionalValues?.includes(option) === true)
    .map(([option]) => option)
    .filter((option) => ANY_TEXT[name]?.includes(option) !== true);
  return [
    ...checked.map((option) => ({ name, arg: `--${option}=`, said: new RegExp(`^--${option}: `) })),
    ...(command.positionals ? [{ name, arg: '', said: /^expected one |: not a SKU$/ }] : []),
  ];
}

/** By the table of commands: one that is new is among them. */
export const WRONG_VALUES: readonly WrongValue[] = [...(await loadCommands())].flatMap(wrongValuesOf);
