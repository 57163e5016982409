import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in what commands say about the mirror, and about which one. */
export const COMMANDS: readonly Mutant[] = [
  ...faultsOf(
    'src/cli/status.ts',
    ['test/store/standby-read.pg.test.ts'],
    ['status: a standby has no daemon', 'if (facts.daemons === 0) await expectPrimary(sql);', ''],
    ['status: a standby is broken', '  OnStandby,\n', ''],
  ),
  ...faultsOf(
    'src/cli/verify.ts',
    ['test/store/standby-read.pg.test.ts'],
    ['verify: a standby has no daemon', 'await expectPrimary(sql);', ''],
  ),
  ...faultsOf(
    'src/cli/status.ts',
    ['test/cli/earlier-version.e2e.test.ts'],
    [
      'status: whoever watches a mirror that is being started is sent away',
      'wasRead || isYetToCome(error) || !isUnread(error)',
      'wasRead || !isUnread(error)',
    ],
  ),
  ...faultsOf(
    'src/cli/run.ts',
    ['test/process/command-line.e2e.test.ts'],
    ['run: cron never drops history', "await requestTask(sql, 'maintenance');", ''],
  ),
  ...faultsOf(
    'src/cli/run.ts',
    ['test/process/stop.e2e.test.ts'],
    [
      'run: whoever stops its maintenance is told of a failure',
      'untilMaintained(app, clock, withinMs), signal.promise, stalled',
      'untilMaintained(app, clock, withinMs), signal.promise.then(() => (code = EXIT.failed)), stalled',
    ],
  ),
  ...faultsOf(
    'src/cli/migrate-progress.ts',
    ['test/cli/migrate-progress.test.ts'],
    ['migrate: says nothing of what takes long', 'tellAt = begunAt + TELL_AFTER_MS;', 'tellAt = Infinity;'],
    ['migrate: is told of itself', 'if (step === null && other !== null)', 'if (other !== null)'],
  ),
  ...faultsOf(
    'src/store/status/holders.ts',
    ['test/store/lock-holders.pg.test.ts'],
    [
      'locks: a daemon that migrates is to be ended',
      'or starts_with(a.application_name, ${MIGRATING_NAME})',
      'or false',
    ],
  ),
  ...faultsOf(
    'src/cli/sandbox.ts',
    ['test/sandbox/program.e2e.test.ts'],
    [
      'sandbox: a port that is taken is an error of the system',
      "errorCode(error) === 'EADDRINUSE' ?",
      'errorCode(error) === null ?',
    ],
  ),
  ...faultsOf(
    'src/daemon/app.ts',
    ['test/cli/mirror.e2e.test.ts'],
    ['run: a start that cannot listen migrates', '  await tryListening(config.http);\n', ''],
  ),
  ...faultsOf(
    'src/config/rules.ts',
    ['test/config-urls.test.ts'],
    [
      'config: a port is part of the host',
      '.refine((text) => isIP(text) !== 0 || hostName(text) !== null)',
      '.refine((text) => text !== null)',
    ],
    ['config: an address of URLs is none', 'isIPv6(bareHost(text)) ? bareHost(text)', 'isIPv6(text) ? text'],
  ),
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
    'src/cli/status.ts',
    ['test/cli/reader.e2e.test.ts'],
    ['status: a mirror that this role may not read is broken', '  NotAllowed,\n', ''],
  ),
  ...faultsOf(
    'src/cli/explained.ts',
    ['test/cli/earlier-version.e2e.test.ts'],
    [
      'commands: a database of a later version is broken',
      'if (unknown > 0) return',
      'if (unknown < 0) return',
    ],
    [
      'follow: a database without tables is of an earlier version',
      'if (isTableMissing(cause) && !(await asking(url, hasTables, true))) return new NoTables(cause);',
      '',
    ],
  ),
  ...faultsOf(
    'src/cli/status.ts',
    ['test/cli/earlier-version.e2e.test.ts'],
    ['status: a mirror of an earlier version is broken', '  EarlierVersion,\n', ''],
  ),
  ...faultsOf(
    'src/cli/plan.ts',
    ['test/cli/plan.e2e.test.ts'],
    [
      'plan: by the settings of whoever asks',
      'intervals: { ...config.intervals, ...intervals }',
      'intervals: config.intervals',
    ],
  ),
  ...faultsOf(
    'src/cli/plan-screen.ts',
    ['test/cli/plan-screen.test.ts'],
    ['plan: long answers are a small budget', ' && needed <= input.requestsPerMinute', ' && needed < 0'],
  ),
  ...faultsOf(
    'src/main.ts',
    ['test/cli/unread.e2e.test.ts'],
    ['commands: end with the line that nobody reads', 'if (endsUnread) process', 'process'],
  ),
  ...faultsOf(
    'src/embedded/postgres.ts',
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
    ['sql: writes', "connection.begin('read only', cancellable)", 'connection.begin(cancellable)'],
    ['sql: reads all rows while nobody takes them', 'await orStopped(printed(), signal);', ''],
    [
      'sql: waits for a reader that is stopped with it',
      'await orStopped(printed(), signal);',
      'await printed();',
    ],
  ),
  ...faultsOf(
    'src/cli/process.ts',
    ['test/cli/sql.e2e.test.ts'],
    ['sql: Ctrl-C leaves the query running', "signal.addEventListener('abort', cancel);", ''],
  ),
  ...faultsOf(
    'src/main.ts',
    ['test/cli/sql.e2e.test.ts'],
    ['commands: what a slow reader has not taken yet is lost', '  await printed();\n} catch', '} catch'],
  ),
  ...faultsOf(
    'src/cli/refresh.ts',
    ['test/cli/arguments.test.ts', 'test/cli/one-shot.e2e.test.ts'],
    ['refresh: a list from Windows has names of its own', 'if (/\\p{Cc}/u.test(sku))', 'if (sku === "\\r")'],
    [
      'refresh: what nobody asks for is due, and that is all',
      'if (why !== null) print(`nothing',
      'if (false) print(`nothing',
    ],
  ),
  ...faultsOf(
    'src/store/status/counts-reader.ts',
    ['test/store/catalog-counts.pg.test.ts'],
    [
      'status: a count that fails is made again by each reader',
      'failed !== null && began < failed.until',
      'false',
    ],
    [
      'status: a count that has failed is not made again',
      'failed !== null && began < failed.until',
      'failed !== null',
    ],
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
    'src/cli/command.ts',
    ['test/cli/arguments.test.ts'],
    [
      'options: values are judged only once all options are known',
      '[...problems, ...(command.problemsOf?.(read) ?? [])]',
      'problems',
    ],
    [
      'options: the next option is the value of one whose own is missing',
      "token.value.startsWith('--')",
      "token.value.startsWith('---')",
    ],
    ['options: what is misspelt is missing, too', 'given.add(meant);', 'given.add(name);'],
    [
      'options: the value of an option that does not exist is a word too many',
      'if (value === undefined && !takesNone) take = () => {};',
      '',
    ],
  ),
  ...faultsOf(
    'src/cli/follow.ts',
    ['test/cli/arguments.test.ts'],
    [
      'follow: a URL is judged last',
      '[...problemsIn(wantedBy)(args), ...webhookProblems(args)]',
      'problemsIn(wantedBy)(args)',
    ],
  ),
  ...faultsOf(
    'src/cli/verify.ts',
    ['test/cli/asking.test.ts'],
    ['verify: waits anew for each hundred SKUs once the daemon is gone', ' && !isSilent; from', '; from'],
    [
      'verify: an answer does not prolong the patience',
      '[known, since] = [answered.length, clock.monotonic()];\n    const',
      'known = answered.length;\n    const',
    ],
  ),
  ...faultsOf(
    'src/sync/live/gains.ts',
    ['test/sync/gains.test.ts'],
    ['plan: a watchlist of more SKUs than there are', 'Math.min(whatIf.watched, skus)', 'whatIf.watched'],
  ),
  ...faultsOf(
    'src/sandbox/options.ts',
    ['test/sandbox/server.test.ts'],
    ['sandbox: a length that overflows a timer', 'ms <= LONGEST_TIMER_MS', 'ms <= LONGEST_MS'],
    ['sandbox: a clock that stands has timers', 'startAt === null && {', 'startAt !== undefined && {'],
  ),
  ...faultsOf(
    'src/sandbox/snapshots.ts',
    ['test/sandbox/determinism.test.ts'],
    [
      'sandbox: a start of later has the snapshots of the one before',
      'this.#origin = `${this.#bornAt}/${catalogHash(this.#market.items)}`',
      'this.#origin = catalogHash(this.#market.items)',
    ],
    [
      'sandbox: two catalogs of one moment have one snapshot',
      'this.#origin = `${this.#bornAt}/${catalogHash(this.#market.items)}`',
      'this.#origin = String(this.#bornAt)',
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
    'src/store/connection/sql-errors.ts',
    ['test/store/refusals.test.ts'],
    [
      'postgres: a database that does not exist may come',
      'sqlState(error) === NO_DATABASE',
      "sqlState(error) === ''",
    ],
    ['postgres: a limit of the server is a fault of the rows', ' || storeFailure(error) !== null', ''],
  ),
  ...faultsOf(
    'src/cli/terminal.ts',
    ['test/cli/demo-panel.test.ts'],
    ['panel: a narrower terminal breaks no line', 'sum + rowsOf(line)', 'sum + Math.min(1, rowsOf(line))'],
  ),
  ...faultsOf(
    'src/cli/terminal.ts',
    ['test/status/terminal.test.ts'],
    [
      'panel: goes back by as many rows as a terminal of no width makes of a line',
      'length / (output.columns || COLUMNS)',
      'length / (output.columns ?? COLUMNS)',
    ],
  ),
  ...faultsOf(
    'src/cli/demo-panel.ts',
    ['test/cli/demo-panel.test.ts'],
    ['panel: falls back to the load', '  const first = isFilled\n', '  const first = !isLoading(view)\n'],
    ['panel: as wide as it likes', 'whole.length <= width ? whole', 'width > 0 ? whole'],
  ),
];
