import { faultsOf, type Mutant } from './mutant.ts';

const FILE = ['test/config-env-file.test.ts'];
const SHOWN = ['test/config-effective.test.ts'];

/**
 * Faults that read settings from the wrong place or show a secret, or that misinterpret a signal, the log or the
 * queues.
 */
export const ENVIRONMENT: readonly Mutant[] = [
  ...faultsOf(
    'src/config/environment.ts',
    FILE,
    [
      'env-file: an empty variable of the environment is none',
      'if (isThere(env, name) || isElsewhere)',
      'if (env[name] || isElsewhere)',
    ],
    [
      'env-file: a secret in a file of the environment is not seen',
      ' || isElsewhere) continue;',
      ') continue;',
    ],
    [
      'env-file: a secret that is set to nothing may be in a file',
      '? isThere(env, other) : given(env, other) !== undefined',
      '? given(env, other) !== undefined : given(env, other) !== undefined',
    ],
    ['env-file: two ways of a secret stay', 'added.delete(other);', 'void other;'],
    [
      'env-file: an empty line takes a secret away',
      "value !== '' && other !== undefined",
      'other !== undefined',
    ],
    ['env-file: a backslash of the shell is told, too', 'if (file === null) return [];', ''],
    ['env-file: a backslash is read alike everywhere', "value?.includes('\\\\') === true", 'value === null'],
    ['env-file: a quote may stay open', 'value.length > 1 && value.endsWith(quote)', 'value.length > 0'],
  ),
  ...faultsOf(
    'src/config/config.ts',
    ['test/config-traces.test.ts'],
    [
      'traces: what is wrong of them ends a start that sends none',
      'ofTraces.length === 0 || sendsTraces(env)',
      'ofTraces.length === 0 || env !== null',
    ],
    [
      'traces: what is wrong of them is ignored where some are sent',
      'ofTraces.length === 0 || sendsTraces(env)',
      'ofTraces.length === 0',
    ],
    ['traces: those that are switched off are sent', 'return !isOff && (has(', 'return (has('],
    [
      'traces: a secret that is ignored is read from its file',
      "!names.has(name.replace(/_FILE$/, ''))",
      '!names.has(name)',
    ],
  ),
  ...faultsOf(
    'src/config/config.ts',
    ['test/config-urls.test.ts'],
    ['config: what every route begins with is part of the base URL', "test(url?.pathname ?? '')", "test('')"],
  ),
  ...faultsOf(
    'src/cli/demo-environment.ts',
    ['test/cli/demo-environment.test.ts'],
    [
      'demo: an empty variable switches its interval off',
      "(env[name] ?? '').trim() === ''",
      'env[name] === undefined',
    ],
  ),
  ...faultsOf('src/config/effective.ts', SHOWN, [
    'config: a default that is lowered is shown as it was',
    "if (name !== 'BULK_LIVE_BUDGET') return usual;",
    'if (name !== null) return usual;',
  ]),
  ...faultsOf(
    'src/config/secrets.ts',
    ['test/config-rotations.test.ts'],
    [
      'rotations: every value is remembered',
      'seen.size > MOST_SEEN && oldest !== undefined',
      'seen.size < 0 && oldest !== undefined',
    ],
    ['rotations: the first value is forgotten', '(old) => old !== first', '() => true'],
    ['rotations: a value that comes back is an old one', 'seen.delete(next);', ''],
  ),
  ...faultsOf(
    'src/cli/config.ts',
    ['test/cli/config.e2e.test.ts'],
    [
      'env-file: config is silent on backslashes',
      '      ...backslashWarnings(env, envFileOf).map(({ text }) => text),\n',
      '',
    ],
  ),
  ...faultsOf(
    'src/cli/doctor/configuration.ts',
    ['test/doctor/checks.test.ts'],
    ['env-file: any variable may be given as a file', 'secret && name === variable', 'name === variable'],
  ),
  ...faultsOf(
    'src/config/authorities.ts',
    ['test/doctor/authorities.e2e.test.ts'],
    ['env-file: authorities of a file are not trusted', ', ...system, ...extra]', ', ...system]'],
  ),
  ...faultsOf(
    'src/config/environment.ts',
    ['test/doctor/checks.test.ts'],
    [
      'env-file: what came in time is told to be late',
      'given(env, variable) && fileOf(variable)',
      "'mirror.env'",
    ],
  ),
  ...faultsOf('src/cli/env-file.ts', FILE, [
    'env-file: words behind -- are options',
    'end < 0 || at < end',
    'true',
  ]),
  ...faultsOf(
    'src/config/effective.ts',
    SHOWN,
    ['config: parameters of a connection are shown', 'PLAIN_PARAMETERS.test(name) ? pair', 'true ? pair'],
    [
      'config: a password with an @ is cut at the first',
      "authority.lastIndexOf('@')",
      "authority.indexOf('@')",
    ],
    [
      'config: a login that was not encoded is shown',
      "if (`${path}${query ?? ''}`.includes('@')) return MASK;",
      '',
    ],
    [
      'config: a secret is shown',
      'maskConnection(read.read()) : MASK',
      'maskConnection(read.read()) : read.read()',
    ],
    [
      'config: what is wrong is shown, whatever it is',
      '!rule.safeParse(value).success && /[@?]/.test(value)',
      'false',
    ],
    ['config: a token in a URL is a user', ': MASK,\n    )', ': login,\n    )'],
  ),
  ...faultsOf(
    'src/config/rules.ts',
    ['test/config-urls.test.ts'],
    ['urls: a password need not be decodable', '&& isDecodable(url.password)', ''],
    ['urls: several hosts are taken', "!name.includes(',')", 'true'],
  ),
  ...faultsOf(
    'src/cli/demo-environment.ts',
    ['test/cli/demo-environment.test.ts'],
    ['demo: its workers join those of production', "'queues', ", ''],
    ['demo: it has the scope of production', ", 'catalog.scope'", ''],
    ['demo: secrets in files are those of production', '`${name}_FILE`, ', ''],
  ),
  ...faultsOf(
    'src/cli/process.ts',
    ['test/cli/stop-signal.test.ts'],
    ['signals: one Ctrl-C under npm is two', 'firstAt >= SAME_SIGNAL_MS', 'firstAt > 0'],
    ['signals: a second one is never heard', 'firstAt ??= now;', 'firstAt = now;'],
  ),
  ...faultsOf(
    'src/telemetry/log/destination.ts',
    ['test/telemetry/destination.test.ts'],
    [
      'log: a line that is begun is not ended',
      'rest.length < bytes.length) return true',
      'false) return true',
    ],
    ['log: a loss that could not be said is forgotten', 'if (lost > 0) lost = before;', ''],
    [
      'log: a reader that is away is waited for with each line',
      'lost === 0 ? READER_WITHIN_MS : 0',
      'READER_WITHIN_MS',
    ],
  ),
  ...faultsOf(
    'src/daemon/health.ts',
    ['test/daemon/livez.test.ts'],
    ['livez: nobody notes whether the queues answer', 'queuesAnswer = failure === null;', ''],
  ),
  ...faultsOf(
    'src/daemon/health.ts',
    ['test/daemon/scrape.pg.test.ts'],
    ['readyz: tables that are gone have no remedy', 'isTableMissing(error)', 'false'],
  ),
  ...faultsOf(
    'src/store/status/counts-reader.ts',
    ['test/daemon/scrape.pg.test.ts'],
    ['counts: one that fails is told to nobody', 'told.failed(error);', ''],
  ),
  ...faultsOf(
    'src/sandbox/control/orders.ts',
    ['test/sandbox/control.test.ts'],
    ['sandbox: an order moved by hand counts as confirmed', 'confirmed: false }', 'confirmed: true }'],
  ),
  ...faultsOf(
    'src/daemon/watches.ts',
    ['test/daemon/livez.test.ts'],
    ['livez: the queues are asked only where somebody asks', 'parts.health.askQueues()', 'Promise.resolve()'],
  ),
  ...faultsOf(
    'src/daemon/app.ts',
    ['test/daemon/stored-settings.e2e.test.ts'],
    [
      'settings: a start stores them that has no port yet',
      'const http = await openHttp(parts, health);',
      'await storeOwnSettings({ config, sql, log, number });\n  const http = await openHttp(parts, health);',
    ],
  ),
  ...faultsOf(
    'src/daemon/watches.ts',
    ['test/daemon/stored-settings.e2e.test.ts'],
    [
      'settings: nobody looks for those of a daemon that is gone',
      'every(COMPARE_SETTINGS_EVERY_MS, parts, onStop, parts.settings);',
      '',
    ],
  ),
  ...faultsOf(
    'src/daemon/stored-settings.ts',
    ['test/daemon/stored-settings.pg.test.ts'],
    ['settings: what is so once counts', 'if (!isSame) return;', ''],
    ['settings: the older daemon puts its own back', 'if (isLast) {', 'if (true) {'],
    ['settings: that they differ is told every time', 'told = settings;', ''],
    ['settings: that they differ again is not told', "if (names.length === 0) told = '';", ''],
    ['settings: a daemon that is alone tells of others', '.daemons > 1', '.daemons > 0'],
  ),
  ...faultsOf(
    'src/store/setup/instance.ts',
    ['test/daemon/stored-settings.pg.test.ts'],
    [
      'settings: a dead daemon was started last',
      'i.number > ${number}::bigint',
      'i.number >= ${number}::bigint',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/due.ts',
    ['test/sync/maintenance.pg.test.ts'],
    [
      'intervals: SKUs that fail are brought forward',
      'and d.outside_due_at is null and d.deferrals = 0 and d.failures = 0\n        and d.due_at > now() +',
      'and d.outside_due_at is null and d.deferrals = 0\n        and d.due_at > now() +',
    ],
    [
      'intervals: every turn begins anew',
      'set due_at = greatest(now(), late.asked_at + ${interval})',
      'set due_at = now() + ${interval}',
    ],
  ),
  ...faultsOf(
    'src/sync/maintenance.ts',
    ['test/sync/maintenance.pg.test.ts'],
    [
      'intervals: live SKUs that are planned by their worth are brought forward',
      'const inRotation = incident === null && refreshThreshold === null;',
      'const inRotation = incident === null;',
    ],
  ),
];
