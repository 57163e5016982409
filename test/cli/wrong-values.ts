import type { Command } from '../../src/cli/command.ts';
import { loadCommands } from '../../src/cli/commands.ts';

/** Options that accept any text; all other options reject the empty one. */
const ANY_TEXT: Readonly<Record<string, readonly string[]>> = {
  sandbox: ['host', 'api-key', 'secret', 'bulk-key'],
};

/** An argument that a command has to reject, and how the message begins. */
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

/** Derived from the table of commands, so that new commands are included. */
export const WRONG_VALUES: readonly WrongValue[] = [...(await loadCommands())].flatMap(wrongValuesOf);
