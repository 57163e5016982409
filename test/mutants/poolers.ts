import { faultsOf, type Mutant } from './mutant.ts';

/**
 * Faults in the connection to Postgres: its address, whom it lets in, and noticing a pooler that does not keep
 * sessions.
 */
export const POOLERS: readonly Mutant[] = [
  ...faultsOf(
    'src/lib/tls.ts',
    ['test/store/session.test.ts'],
    ['addresses: the pool reads an IPv6 address up to its first colon', '[value] as unknown as T', 'value'],
  ),
  ...faultsOf(
    'src/lib/connection-url.ts',
    ['test/store/session.test.ts'],
    [
      'addresses: an IPv6 address without a port has that of PGPORT for one driver alone',
      "port === '' && isAddress ? `:${USUAL_PORT}` : port",
      'port',
    ],
    ['addresses: a host among the parameters is none', "named === '' ? written", "named !== '/' ? written"],
  ),
  ...faultsOf(
    'src/store/connection/sql-errors.ts',
    ['test/store/refusals.test.ts'],
    [
      'login: who comes without TLS is told of the password',
      "carried(error, 'routine') === 'ClientAuthentication'",
      'error === null',
    ],
    [
      'login: a setting that a role may not have lacks CONNECT',
      "if ((carried(error, 'routine') ?? CHECKS_CONNECT) !== CHECKS_CONNECT) return null;",
      '',
    ],
  ),
  ...faultsOf(
    'src/lib/connection-url.ts',
    ['test/config-urls.test.ts'],
    ['addresses: a parameter opens another database on one driver alone', "  'database',\n", ''],
    ['addresses: options of the driver pass for settings', "  'prepare',\n", ''],
    ['addresses: any target_session_attrs will do', '!TARGETS.includes(value)', 'false'],
  ),
  ...faultsOf(
    'src/store/connection/pooler.ts',
    ['test/store/startup-refused.pg.test.ts'],
    [
      'pooler: a value that Postgres refuses is for a pooler',
      "if (carried(cause, 'routine') !== null) return new RefusedSettingError(cause);",
      '',
    ],
  ),
  ...faultsOf(
    'src/store/connection/session.ts',
    ['test/store/startup-refused.pg.test.ts'],
    ['addresses: target_session_attrs calls a database away', ' &&\n      !choosesNothing(pair)', ''],
  ),
  ...faultsOf(
    'src/cli/status.ts',
    ['test/status/read-only.pg.test.ts'],
    [
      'status: a database that takes no writes is healthy',
      "(await takesNoWrites(sql)) ? 'read-only' : null",
      'null',
    ],
    [
      'status: its own URL makes a mirror broken',
      "setting = 'on' and source not in ('client', 'session', 'user', 'database', 'database user')",
      "setting = 'on'",
    ],
    [
      'status: a setting of a database counts once a session has begun with it',
      'order by s.setrole = 0, s.setdatabase = 0 limit 1',
      'limit 0',
    ],
  ),
  ...faultsOf(
    'src/cli/doctor/postgres.ts',
    ['test/doctor/checks.test.ts'],
    [
      'doctor: a limit for which a start is refused is a warning',
      'connectionLimit < poolMax',
      'connectionLimit < 1',
    ],
  ),
  ...faultsOf(
    'src/cli/doctor/postgres-facts.ts',
    ['test/doctor/damage.pg.test.ts'],
    [
      'doctor: connections of other roles are not counted',
      "coalesce(backend_type, 'client backend')",
      'backend_type',
    ],
    ['doctor: whoever is connected counts against the limit of the role', ' where usesysid = r.oid', ''],
  ),
  ...faultsOf(
    'src/cli/doctor/damage.ts',
    ['test/doctor/damage.pg.test.ts'],
    ['doctor: triggers that are disabled are not found', "own and tgenabled in ('D', 'R')", 'false'],
    [
      'doctor: a policy for readers is a fault',
      'and not exists (select from pg_policy where polrelid = tables.oid)',
      '',
    ],
    ['doctor: a trigger that runs afterwards leaves rows out', 'is_before_row and ', ''],
    ['doctor: a trigger that is off leaves rows out', " and tgenabled <> 'D'", ''],
    ['doctor: whoever returns NULL at times returns nothing else', "what?.toLowerCase() === 'null'", 'true'],
  ),
  ...faultsOf(
    'src/store/connection/pooler.ts',
    ['test/store/pooler.test.ts'],
    ['pooler: one process for both is a session', '(await processOf(busy)) === own || ', ''],
    ['pooler: a process in turn is a session', "if (await isMoved()) return 'transaction';", ''],
    [
      'pooler: what it rejects is an error',
      "if (sqlState(error) === REJECTED_BY_POOLER) return 'statement';",
      '',
    ],
    ['pooler: every error is a pooler’s', 'if (!isConnectionLost(error)) throw error;', ''],
    ['pooler: sessions that are not kept are well', "if (kept !== 'session')", 'if (false)'],
    ['pooler: a role is not quoted', 'ALTER ROLE ${escapeIdentifier(role)} IN', 'ALTER ROLE ${role} IN'],
  ),
  ...faultsOf(
    'src/store/connection/pooler.ts',
    ['test/e2e/pooler.e2e.test.ts'],
    ['pooler: dropped settings are not asked for', "kept === 'session' ? await readDropped(busy) : []", '[]'],
  ),
  ...faultsOf(
    'src/store/connection/startup.ts',
    ['test/store/startup-refused.pg.test.ts'],
    ['pooler: what passes by itself is for the settings', 'settingsRefused === SURE_AFTER', 'ofSettings'],
    [
      'pooler: a server that starts or is full refuses settings',
      'error instanceof postgres.PostgresError && !/^(?:53|57P)/.test(error.code)',
      'error instanceof postgres.PostgresError',
    ],
    [
      'pooler: settings of the URL are asked for all the same',
      'postgres(withoutParameters ?? bare,',
      'postgres(bare,',
    ],
  ),
  ...faultsOf(
    'src/store/setup/migrations.ts',
    ['test/e2e/pooler.e2e.test.ts'],
    [
      'pooler: nobody asks before migrating',
      '    await refusePooling(\n      (statement) => sql.unsafe(statement),\n      (statement) => lockSession.unsafe(statement),\n    );\n',
      '',
    ],
  ),
  ...faultsOf(
    'src/queues/postgres-queues.ts',
    ['test/e2e/pooler.e2e.test.ts'],
    ['pooler: queues look for their tables elsewhere', 'set search_path = ${QUEUE_SCHEMA}`', 'select 1`'],
  ),
  ...faultsOf(
    'src/store/connection/db.ts',
    ['test/store/connection.pg.test.ts'],
    [
      'later settings: those of later connections are the database’s',
      "if (!settings.includes(pin)) connection['options'] = settings + pin;",
      'void settings;',
    ],
  ),
];
