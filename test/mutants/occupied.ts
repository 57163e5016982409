import { faultsOf, type Mutant } from './mutant.ts';

const JUDGED = ['test/store/occupied.test.ts'];
const READ = ['test/migrations/occupied.pg.test.ts', 'test/migrations/occupied-roles.pg.test.ts'];

/** Faults in distinguishing another application's objects from the mirror's. */
export const OCCUPIED: readonly Mutant[] = [
  ...faultsOf(
    'src/store/setup/occupied.ts',
    JUDGED,
    ['occupied: what is in a schema does not matter', 'isKnown ? false : found.count > 0', 'false'],
    ['occupied: a mirror is in its own way', 'isKnown ? false : found.count > 0', 'found.count > 0'],
    ['occupied: a superuser takes what is another’s', 'isKnown ? found.belongs : found.own', 'found.belongs'],
    ['occupied: a superuser may not run a mirror', 'isKnown ? found.belongs : found.own', 'found.own'],
    ['occupied: queues are not asked after', 'isQueue ? queueTables :', 'isQueue ||'],
    ['occupied: another application’s migrations are ours', "if (ledger === 'foreign')", 'if (false)'],
    ['occupied: a mirror without tables goes on', "ledger === 'ours' && !skus", 'false'],
    ['occupied: others are told to rename a mirror', 'if (!own && !belongs)', 'if (false)'],
    ['occupied: a reader may be anything', 'powers.length > 0)', 'powers.length > 9)'],
  ),
  ...faultsOf(
    'src/store/setup/occupied.ts',
    READ,
    ['occupied: what comes with an extension is counted', "and m.deptype = 'e'", "and m.deptype = 'x'"],
    [
      'occupied: the mirror’s own ledger has a sequence of one name only',
      "and o.deptype = 'a'",
      "and o.deptype = 'x'",
    ],
    ['occupied: default privileges are objects', "and d.deptype = 'n'", 'and true'],
    [
      'occupied: an empty ledger of the mirror is an object',
      'and i.identity <> ${LEDGER}',
      'and ${LEDGER.length} > 0',
    ],
    [
      'occupied: an empty table of another shape is ours',
      "return shaped ? 'none' : 'foreign';",
      "return 'none';",
    ],
    ['occupied: any rows are ours', "ours && shaped ? 'ours' : 'foreign'", "'ours'"],
    ['occupied: a hidden ledger is read', "if (!readable) return 'hidden';", ''],
    [
      'occupied: a member of the mirror’s role is a reader',
      "pg_has_role(oid, current_user, 'MEMBER')",
      'false',
    ],
  ),
  ...faultsOf(
    'src/store/setup/occupied.ts',
    ['test/migrations/roles.pg.test.ts'],
    [
      'occupied: the name of the mirror’s role is read as SQL',
      '(select oid from pg_roles where rolname = current_user)',
      'current_user::regrole',
    ],
    [
      'occupied: the mirror’s role is a member whom others have made',
      'and member <> (select oid from pg_roles where rolname = current_user)',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/setup/migrations.ts',
    READ,
    ['occupied: roles stop a mirror that has run', "found.ledger === 'none' ?", 'true ?'],
    [
      'occupied: a schema made for the mirror is made again',
      '!MAKES_CATALOG.test(statement)',
      'statement !== null',
    ],
  ),
  ...faultsOf('src/store/setup/migration-error.ts', READ, [
    'occupied: a taken name is to be tried again',
    "new Set(['42P06', '42P07', '42723', '42710'])",
    "new Set([''])",
  ]),
  ...faultsOf(
    'src/store/setup/migration-error.ts',
    ['test/migrations/sellers.pg.test.ts'],
    [
      'occupied: what sellers have built is to be tried again',
      "new Set(['2BP01', '0A000'])",
      "new Set([''])",
    ],
    ['occupied: what is built on a row type is to be tried again', "'2BP01', '0A000'", "'2BP01'"],
    [
      'occupied: what an event trigger raises is told as what sellers have built',
      "carried(error, 'routine') === 'exec_stmt_raise'",
      "carried(error, 'routine') === ''",
    ],
    [
      'occupied: what a migration has found by itself is told as an event trigger',
      "sqlState(error) === '0A000' && carried",
      'carried',
    ],
    ['occupied: it is not said which view is in the way', "detail === '' ? '' : `", "true ? '' : `"],
  ),
];
