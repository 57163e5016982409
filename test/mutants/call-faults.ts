import { faultsOf, type Mutant } from './mutant.ts';

const COUNTED = ['test/sync/call-faults.pg.test.ts'];
const JUDGED = ['test/status/calls-failing.test.ts'];

/** Faults that leave bulk calls unreported whose statements Postgres rejects, or report them for too long. */
export const CALL_FAULTS: readonly Mutant[] = [
  ...faultsOf('src/sync/reprice/slice.ts', COUNTED, [
    'call faults: none is counted',
    'if (kind !== null) await',
    'if (kind === DEFECT) await',
  ]),
  ...faultsOf(
    'src/sync/reprice/slice.ts',
    ['test/sync/call-fault-kinds.test.ts'],
    ['call faults: locks count', ' || isLockNotAvailable(error)', ''],
    ['call faults: a Postgres that is away counts', 'isConnectionLost(error) || ', ''],
  ),
  ...faultsOf(
    'src/store/call/call-lesson.ts',
    COUNTED,
    [
      'call faults: an answer that is stored forgets none',
      "progress = case when task <> 'reprice' then progress end",
      'progress = progress',
    ],
    ['call faults: they are forgotten seconds later', 'or progress is not null ', ''],
  ),
  ...faultsOf(
    'src/status/failing.ts',
    JUDGED,
    ['call faults: one is told of', 'const FAULTS_TOLD = 2;', 'const FAULTS_TOLD = 1;'],
    ['call faults: privileges are named for whatever fails', 'isPrivilegeLacking(kind) && ', ''],
    [
      'call faults: privileges are named for whatever is rejected',
      'lacksPrivilege === true ? lackingText',
      'true ? lackingText',
    ],
  ),
  ...faultsOf('src/sync/reprice/failed-call.ts', COUNTED, [
    'privileges: one that is lacking is a trigger',
    'lacksPrivilege ? NO_PRIVILEGE : because',
    'because',
  ]),
  ...faultsOf('src/store/connection/sql-errors.ts', COUNTED, [
    'privileges: what rejects the rows is a limit',
    "isPrivilegeLacking(state) ? 'a privilege that is lacking' : 'a trigger or a limit'",
    "'a trigger or a limit'",
  ]),
  ...faultsOf(
    'src/store/setup/privileges.ts',
    ['test/store/privileges.pg.test.ts'],
    ['privileges: nobody misses DELETE', "'UPDATE', 'DELETE'],", "'UPDATE'],"],
    ['privileges: one table is not asked for', "  'catalog_internal.tasks',\n", ''],
  ),
  ...faultsOf(
    'src/store/setup/privileges.ts',
    ['test/doctor/lacking.pg.test.ts'],
    ['privileges: nobody misses EXECUTE', "where f.prokind = 'f' and", 'where false and'],
    ['privileges: nobody misses a sequence', "where c.relkind = 'S' and", 'where false and'],
    ['privileges: functions of others are missed', ' join whose on owner = f.proowner', ''],
    ["privileges: of BullMQ's tables none is missed", 'c.relowner = owner)', 'false)'],
    [
      'privileges: all of a kind are given back in other schemas',
      "IN SCHEMA ${schemas.join(', ')}",
      'IN SCHEMA catalog',
    ],
    ['privileges: a function is given back as a table', "kind === 'table' ? '' : `${what} `", "''"],
  ),
  ...faultsOf(
    'src/cli/doctor/postgres-facts.ts',
    ['test/doctor/lacking.pg.test.ts'],
    ['privileges: doctor looks into schemas that are closed to it', 'closed ? NOT_LOOKED_INTO : ', ''],
    [
      'privileges: doctor takes a mirror for somebody else’s whose migrations it may not read',
      "(name === 'catalog_internal.migrations' && privileges.includes('SELECT'))",
      'false',
    ],
    [
      'privileges: doctor ends where it may not count daemons',
      'ifAllowed(countDaemons(sql), null)',
      'countDaemons(sql)',
    ],
    ['privileges: doctor calls what it may not', 'migrated && owned && mayCall', 'migrated && owned'],
  ),
  ...faultsOf(
    'src/cli/doctor/postgres-facts.ts',
    ['test/cli/closed.pg.test.ts'],
    [
      'privileges: doctor ends where Postgres’s locks are closed to it',
      "ifAllowed(readLockHolders(sql, 'all'), [])",
      "readLockHolders(sql, 'all')",
    ],
  ),
  ...faultsOf(
    'src/cli/doctor.ts',
    ['test/doctor/lacking.pg.test.ts'],
    ['privileges: requests are counted by functions that may not be called', ' || isShut', ''],
    [
      'doctor: a table that is locked or gone ends all checks of Postgres',
      'return uncounted([...findings, unreachable(await namingHolder(sql, error))], config, most);',
      'throw error;',
    ],
    [
      'privileges: a partner is asked that may be another one',
      'if (isReady && account.length === 0) return NO_RIGHTS;',
      '',
    ],
    [
      'privileges: doctor ends where it may not read who is mirrored',
      'ifAllowed(readMirroredAccount(sql), null)',
      'readMirroredAccount(sql)',
    ],
  ),
  ...faultsOf(
    'src/cli/explained.ts',
    ['test/doctor/lacking.pg.test.ts'],
    [
      'privileges: commands leave it to Postgres to say what is lacking',
      'if (text === null) return await asking(',
      'if (text !== null) return await asking(',
    ],
  ),
  ...faultsOf(
    'src/store/setup/occupied.ts',
    ['test/doctor/lacking.pg.test.ts'],
    [
      'privileges: a mirror whose migrations its role may not read is somebody else’s',
      'return [unreadable(role)];',
      'void unreadable(role);',
    ],
  ),
  ...faultsOf(
    'src/cli/doctor/rights.ts',
    ['test/doctor/checks.test.ts'],
    [
      "privileges: doctor says of another role's tables what is lacking of each",
      'owns ? rightsText(rights) : null',
      'rightsText(rights)',
    ],
  ),
];
