import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in noticing that sessions of Postgres are not kept on the way. */
export const POOLERS: readonly Mutant[] = [
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
    ['pooler: a role is not quoted', 'ALTER ROLE ${identifier(role)} IN', 'ALTER ROLE ${role} IN'],
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
