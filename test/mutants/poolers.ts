import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in the way to Postgres: its address, who it lets in, and noticing that sessions are not kept on it. */
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
];
