import { ConfigError, envFileOf, loadConfig, processSources } from '../config/config.ts';
import { type ShownSetting, shownSettings } from '../config/effective.ts';
import { backslashWarnings, lateWarnings } from '../config/environment.ts';
import { shownJson } from '../lib/json.ts';
import { harmless } from '../status/style.ts';
import { type Command, EXIT } from './command.ts';
import { tableOf } from './terminal.ts';

export const config: Command = {
  summary: 'show every setting with its value and where it comes from',
  usage: 'config [--json]',
  examples: [
    ['catalog-mirror config', 'settings as this shell would give them to the daemon'],
    [
      'catalog-mirror config --env-file mirror.env',
      'the same with a file; the environment takes precedence over it',
    ],
    ['catalog-mirror config --json', 'for programs'],
  ],
  exits: ['ok', 'usage'],
  options: { json: { type: 'boolean' } },
  optionHelp: { json: 'print one JSON object' },
  moreHelp: [
    'Secrets are masked, also in URLs. Settings that are wrong are named on stderr, as they are at a start, and the exit code is 78.',
    '`doctor` checks whether right ones work.',
  ],
  positionals: false,
  run({ values, print }) {
    const { env, readFile } = processSources;
    const settings = shownSettings(env, readFile, envFileOf);
    const { problems, warnings: looksWrong } = checked();
    const warnings = [
      ...looksWrong,
      ...lateWarnings(env, envFileOf).map(({ text, remedy }) => `${text}; ${remedy}`),
      ...backslashWarnings(env, envFileOf).map(({ text }) => text),
    ];
    if (values['json'] === true) print(shownJson({ settings, warnings, problems }));
    else {
      for (const line of tableOf(
        settings.map((setting) => rowOf(setting, wrongIn(problems))),
        null,
      ))
        print(line);
      for (const warning of warnings) print(`\n${harmless(warning)}`);
    }
    // The warnings have already been printed.
    if (problems.length > 0) throw new ConfigError(problems);
    return Promise.resolve(EXIT.ok);
  },
};

/** Returns what is wrong with the settings as a whole, and what looks like a mistake in them. */
function checked(): Pick<ConfigError, 'problems' | 'warnings'> {
  try {
    const { warnings } = loadConfig(processSources.env, processSources.readFile);
    return { problems: [], warnings };
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

const wrongIn = (problems: ConfigError['problems']): ReadonlySet<string> =>
  new Set(problems.map(({ variable }) => variable.replace(/_FILE$/, '').toUpperCase()));

const noneOf = (unset: string) => (unset === 'none' ? unset : `none: ${unset}`);

function rowOf({ name, value, source, file, unset }: ShownSetting, wrong: ReadonlySet<string>) {
  const shown = value ?? (unset === null ? (source === 'default' ? 'not set' : 'not shown') : noneOf(unset));
  return {
    setting: name,
    value: `${shown}${wrong.has(name) ? ' (invalid)' : ''}`,
    source: file === null ? source : `${source} ${file}`,
  };
}
