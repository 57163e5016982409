import { faultsOf, type Mutant } from './mutant.ts';

const SAID = ['test/cli/impaired.pg.test.ts'];
const CLOSED = ['test/cli/closed.pg.test.ts'];

/** Faults in what commands say about an impaired database, and about what its role may not do. */
export const IMPAIRED: readonly Mutant[] = [
  ...faultsOf(
    'src/store/setup/privileges.ts',
    SAID,
    [
      'impaired: nobody misses a function that was given away',
      "n.nspname || '.' || p.proname = any (${[...OWN_FUNCTIONS]}::text[])",
      'false',
    ],
    ['impaired: nobody misses a view', "or c.relkind = 'v' and p.name = 'SELECT'", ''],
    ['impaired: nobody misses CREATE on a schema', "schema: ['USAGE', 'CREATE']", "schema: ['USAGE']"],
    [
      'impaired: what a superuser calls, its owner may call, too',
      "case when pg_has_role(owner, 'USAGE') then owner else r.oid end",
      'r.oid',
    ],
    [
      'impaired: the first table tells whose all are',
      'mode() within group (order by relowner)',
      "(array_agg(relowner) filter (where c.relname = 'skus'))[1]",
    ],
    ['impaired: what was given away is still the mirror’s', 'return [...owned, ...(', 'return [...('],
    ['impaired: tables of a shop are a mirror', 'const NAMED_BY_CHANCE = 5;', 'const NAMED_BY_CHANCE = 0;'],
  ),
  ...faultsOf(
    'src/store/setup/row-security.ts',
    SAID,
    ['impaired: policies hide nothing', 'where row_security_active(c.oid)', 'where false'],
    [
      'impaired: a policy for others shows rows',
      'and exists (select from unnest(polroles)',
      'and true or exists (select from unnest(polroles)',
    ],
  ),
  ...faultsOf(
    'src/cli/explained.ts',
    SAID,
    [
      'impaired: rights on the queues are not asked for',
      '[...rights.lacking, ...(await readQueueLacking(sql))]',
      'rights.lacking',
    ],
    [
      'impaired: who has no table may say whom its policies are for',
      'misowned.filter(({ name }) => tables.includes(name))',
      'misowned.filter(() => false)',
    ],
    ['impaired: hidden rows are lost rows', 'if (error instanceof Impaired) return error;', ''],
    [
      'impaired: readers are told to be the daemon',
      'const isReaders = forReaders &&',
      'const isReaders = false &&',
    ],
    ['impaired: what is gone is not told', 'return ofUser ? null : partsGone(cause);', 'return null;'],
    [
      'impaired: a misspelt name is a table that is gone',
      'return ofUser ? null : partsGone(cause);',
      'return partsGone(cause);',
    ],
    ['impaired: a shop is an earlier version', 'if (occupied !== null) return occupied;', ''],
    [
      'impaired: a reader knows whose schemas are',
      'if (isReader) return ofUser ? null : new Unclear(cause);',
      '',
    ],
    [
      'impaired: migrate says nothing of the database’s own rights',
      'if (missing.length === 0)',
      'if (missing.length >= 0)',
    ],
  ),
  ...faultsOf('src/cli/migrate.ts', SAID, [
    'impaired: migrate leaves it to Postgres to say what is gone',
    'throw await explainedStart(error, database.url());',
    'throw error;',
  ]),
  ...faultsOf('src/cli/doctor/postgres.ts', SAID, [
    'impaired: read-only by the role is ended for the database',
    "case 'user':",
    "case 'other':",
  ]),
  ...faultsOf(
    'src/store/connection/sql-errors.ts',
    ['test/store/refusals.test.ts'],
    ['impaired: who is not let in is not named', 'TO ${escapeIdentifier(role)}`', 'TO …`'],
  ),
  ...faultsOf(
    'src/store/setup/occupied.ts',
    ['test/store/occupied.test.ts', ...SAID],
    [
      'impaired: a mirror without catalog_internal is somebody else’s',
      'if (shown) return [WITHOUT_INTERNAL];',
      '',
    ],
    [
      'impaired: a schema that was given away is another’s',
      'const isGivenAway = isKnown && found.objectsBelong;',
      'const isGivenAway = false;',
    ],
    [
      'impaired: a table that was given away makes a schema another’s',
      '2 * count(*) filter',
      'count(*) filter',
    ],
    [
      'impaired: one row tells whose the ledger is',
      '= any (${known.map(String)}::text[])',
      '= ${String(known[0])}',
    ],
  ),
  ...faultsOf(
    'src/store/setup/closed.ts',
    CLOSED,
    ['impaired: what nobody was ever granted counts as closed', ' and i.objoid is null\n', '\n'],
    [
      'impaired: what was closed is blamed for all that is refused',
      'return closed.some(({ bare }) => words.has(bare));',
      'return closed.length > 0;',
    ],
    ['impaired: closed views are not seen', "~ '[{,]=r'", "~ '=r{'"],
  ),
  ...faultsOf('src/cli/explained.ts', CLOSED, [
    'impaired: what is closed is said of no start',
    '?? (await closedOf(url, error)) ?? error;',
    '?? error;',
  ]),
];
