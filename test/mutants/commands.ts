import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in what commands say of the mirror, and of which one. */
export const COMMANDS: readonly Mutant[] = [
  ...faultsOf(
    'src/cli/mirror.ts',
    ['test/cli/mirror.e2e.test.ts'],
    [
      'commands: a stopped mirror goes before a running one',
      "inState('running') ?? inState('stopped')",
      "inState('stopped') ?? inState('running')",
    ],
  ),
  ...faultsOf(
    'src/embedded/find.ts',
    ['test/cli/mirror.e2e.test.ts'],
    [
      'commands: what a crash has left behind is a server',
      '!(await clusterProcesses(home)).includes(server.pid)',
      'false',
    ],
  ),
  ...faultsOf(
    'src/cli/sql.ts',
    ['test/cli/sql.e2e.test.ts'],
    ['sql: writes', "connection.begin('read only', work)", 'connection.begin(work)'],
  ),
  ...faultsOf(
    'src/store/counts-reader.ts',
    ['test/store/catalog-counts.pg.test.ts'],
    [
      'status: shows the counts of a moment ago as those of now',
      "counting === 'now' && countedInMs <= SHORT_MS",
      'false',
    ],
    [
      'status: a screen that is drawn over and over counts each time',
      "counting === 'now' && countedInMs <= SHORT_MS",
      'countedInMs <= SHORT_MS',
    ],
  ),
  ...faultsOf(
    'src/config/environment.ts',
    ['test/config-texts.test.ts'],
    ['config: small letters are no slip', 'nearest(name.toUpperCase(),', 'nearest(name,'],
  ),
  ...faultsOf(
    'src/config/config.ts',
    ['test/config-texts.test.ts'],
    ['config: a secret that is not set is only expected', 'expected, unset: true }]', 'expected }]'],
    [
      'config: the names that were meant are not told',
      'ConfigError(problems, warnings)',
      'ConfigError(problems)',
    ],
  ),
  ...faultsOf(
    'src/telemetry/log/logger.ts',
    ['test/telemetry/log-text.test.ts'],
    ['log: text in a file', "(format === 'auto' && stdout.isTerminal)", "format === 'auto'"],
  ),
  ...faultsOf(
    'src/store/sql-errors.ts',
    ['test/store/refusals.test.ts'],
    [
      'postgres: a database that does not exist may come',
      'sqlState(error) === NO_DATABASE',
      "sqlState(error) === ''",
    ],
  ),
  ...faultsOf(
    'src/cli/terminal.ts',
    ['test/cli/demo-panel.test.ts'],
    ['panel: a narrower terminal breaks no line', 'sum + rowsOf(line)', 'sum + Math.min(1, rowsOf(line))'],
  ),
  ...faultsOf(
    'src/cli/demo/panel.ts',
    ['test/cli/demo-panel.test.ts'],
    ['panel: falls back to the load', '  const first = isFilled\n', '  const first = !isLoading(view)\n'],
    ['panel: as wide as it likes', 'whole.length <= width ? whole', 'width > 0 ? whole'],
  ),
];
