import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';

const isNumber = (text: unknown): boolean => typeof text === 'string' && /^\d+(?:\.\d+)?$/.test(text);

/** What is wrong with the values; null: nothing. One whose default is a number has to be one. */
function wrongNumber(
  options: ParseArgsOptionsConfig,
  values: Readonly<Record<string, unknown>>,
): string | null {
  const wrong = Object.entries(options).find(
    ([name, { default: usual }]) => isNumber(usual) && !isNumber(values[name]),
  );
  return wrong === undefined ? null : `--${wrong[0]}: expected a number`;
}

/** Ends the process with 2, and says which options there are, if `read` fails. */
function orUsage<T>(options: ParseArgsOptionsConfig, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const given = Object.entries(options).map(([name, { type, default: usual }]) =>
      type === 'boolean' ? `--${name}` : `--${name} ${String(usual ?? '…')}`,
    );
    process.stderr.write(`${(error as Error).message}\noptions and defaults: ${given.join(' ')}\n`);
    process.exit(2);
  }
}

/**
 * The options of a benchmark. Ends the process with 2, and says which there are, where others are given, a number is
 * none, or `wrong` names a problem.
 */
export function optionsOf<const T extends ParseArgsOptionsConfig>(
  options: T,
  wrong: (values: ReturnType<typeof parseArgs<{ options: T }>>['values']) => string | null = () => null,
) {
  return orUsage(options, () => {
    const { values } = parseArgs({ options });
    const problem = wrongNumber(options, values) ?? wrong(values);
    if (problem !== null) throw new Error(problem);
    return values;
  });
}

/** The options that nearly every benchmark takes: how large, how often, and where the JSON goes. */
export function sizes<Name extends string>(defaults: Readonly<Record<'skus' | 'rounds' | Name, number>>) {
  const names = Object.keys(defaults) as (keyof typeof defaults)[];
  const options: ParseArgsOptionsConfig = {
    ...Object.fromEntries(
      names.map((name) => [name, { type: 'string', default: String(defaults[name]) }] as const),
    ),
    json: { type: 'string' },
  };
  const { json, ...given } = optionsOf(options, ({ skus, rounds }) =>
    Number(skus) >= 1 && Number(rounds) >= 1 ? null : '--skus and --rounds are numbers of one or more',
  );
  const numbers = Object.fromEntries(names.map((name) => [name, Number(given[name])]));
  return {
    ...(numbers as Record<keyof typeof defaults, number>),
    ...(typeof json === 'string' && { json }),
  };
}
