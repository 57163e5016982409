import { exitRows, optionForm } from '../../src/cli/command.ts';
import { loadCommands } from '../../src/cli/commands.ts';
import { VARIABLES } from '../../src/config/config.ts';
import type { LogEvent } from '../../src/declared/log-event.ts';
import { LOG_EVENTS } from '../../src/declared/log-events.ts';
import type { Metric } from '../../src/telemetry/metrics/declaration.ts';
import { METRICS } from '../../src/telemetry/metrics/metrics.ts';
import type { Blocks } from './marked.ts';
import { ruleBlocks } from './partner-rules.ts';
import { table } from './table.ts';

const COMMANDS = await loadCommands();

/** The documents with marked blocks, from the root of the repository. */
export const DOCUMENTS = [
  'README.md',
  'docs/commands.md',
  'docs/configuration.md',
  'docs/metrics.md',
  'docs/partner-rules.md',
  'ops/logs.md',
];

const code = (text: string) => `\`${text}\``;

const commands = () =>
  table(
    ['command', 'does'],
    [...COMMANDS.values()].map(({ usage, summary }) => [usage.split('\n').map(code).join('<br>'), summary]),
  );

const exitCodes = () =>
  table(
    ['exit code', 'of', 'says'],
    exitRows(COMMANDS).map((row) => [String(row.code), row.only === null ? '' : code(row.only), row.says]),
  );

const configuration = () =>
  table(
    ['variable', 'default', 'meaning'],
    VARIABLES.map(({ name, default: fallback, meaning, secret }) => [
      `${code(name)}${secret ? ' †' : ''}`,
      fallback === null ? '' : code(fallback),
      meaning,
    ]),
  );

/** Every command with its options and examples. */
const options = () =>
  [...COMMANDS]
    .map(([name, command]) => {
      const { summary, optionHelp, examples } = command;
      const rows = Object.entries(optionHelp).map(([option, says]) => [
        code(optionForm(option, command)),
        says,
      ]);
      const width = Math.max(...examples.map(([{ length }]) => length));
      const lines = examples.map(([line, purpose]) => `${line.padEnd(width)}    # ${purpose}`);
      return [
        `### \`${name}\``,
        summary.replace(/^./, (first) => first.toUpperCase()) + '.',
        ...(rows.length === 0 ? [] : [table(['option', 'does'], rows)]),
        ['```sh', ...lines, '```'].join('\n'),
      ].join('\n\n');
    })
    .join('\n\n');

const list = (names: readonly string[]) => names.map(code).join(', ');

/** A row for each event of the log; those that are declared together share one. */
function logEvents(): string {
  const events: readonly (readonly [string, LogEvent])[] = Object.entries(LOG_EVENTS);
  const rows = [...Map.groupBy(events, ([, event]) => event)].map(
    ([{ levels, says, fields, next }, same]) => [
      list(same.map(([name]) => name)),
      levels.join(', '),
      says,
      list(fields),
      next ?? '',
    ],
  );
  return table(['event', 'level', 'what happened', 'members', 'next'], rows);
}

/** How the series of several daemons become one: what events increment is each daemon's own. */
const overDaemons = (metric: Metric) => ('on' in metric ? 'sum' : 'max');

/** A row for each metric, in the order of their names. */
const metrics = () =>
  table(
    ['metric', 'type', 'labels', 'over daemons', 'says'],
    Object.entries<Metric>(METRICS)
      .map(([name, metric]) => {
        const { type, labels, help } = metric;
        return [code(name), type, list(labels.names), code(overDaemons(metric)), help];
      })
      .toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1)),
  );

/** Everything that the documents have from the code. */
export function codeBlocks(): Blocks {
  return {
    commands: commands(),
    'commands and options': options(),
    'exit codes': exitCodes(),
    configuration: configuration(),
    metrics: metrics(),
    'log events': logEvents(),
    ...ruleBlocks(),
  };
}
