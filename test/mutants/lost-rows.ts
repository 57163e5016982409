import { faultsOf, type Mutant } from './mutant.ts';

const TESTS = ['test/store/lost-rows.pg.test.ts'];

/** Faults that leave something lost that somebody deleted, or trust something that was lost. */
export const LOST_ROWS: readonly Mutant[] = [
  ...faultsOf(
    'src/store/ledger/lost-rows.ts',
    TESTS,
    ['lost rows: a table of one row is left out', "  'mass_move',\n", ''],
    ['lost rows: sets that lack some are whole', 'where t.${column} = m)', 'where true)'],
    ['lost rows: each part is the last', 'having count(*) = ${most})', 'having false)'],
    [
      'lost rows: what was lost is due by its turn alone',
      "'new' else 'changed' end, price_source",
      "'new' else 'sweep' end, price_source",
    ],
    ['lost rows: live SKUs become others', "end, price_source = 'live'\n", 'end, null\n'],
    [
      'lost rows: one price is none',
      'exists (select from catalog.prices)',
      'not exists (select from catalog.prices)',
    ],
    [
      'lost rows: the first part of what has no price is all of it',
      'return skus.length === most ?',
      'return skus.length > most ?',
    ],
  ),
  ...faultsOf(
    'src/sync/maintenance.ts',
    TESTS,
    ['lost rows: each run looks at the same part', "memory.lookedUpTo = upTo ?? '';", ''],
    ['lost rows: no price is news each minute', 'memory.hadPrices = hasSome;', ''],
    ['lost rows: the next part waits a minute', 'restored > 0 ? AT_ONCE : 0', '0'],
    ['lost rows: nobody is told', 'if (tables.length > 0 || skus > 0) emit', 'if (false) emit'],
  ),
  ...faultsOf(
    'src/status/facts.ts',
    ['test/daemon/scrape.pg.test.ts'],
    [
      'lost rows: the judge of health has no advice',
      "'makes them anew within a minute, `catalog-mirror migrate` at once'",
      "''",
    ],
  ),
  {
    breaks: 'lost rows: a schema without rows is taken for that of another application',
    file: 'src/store/setup/occupied.ts',
    from: 'if (bare) return [WITHOUT_ROWS];',
    to: '',
    tests: ['test/store/occupied.test.ts'],
  },
  {
    breaks: 'lost rows: a schema of somebody else counts as one without rows',
    file: 'src/store/setup/occupied.ts',
    from: "if (ledger === 'none' && schemas.every(({ belongs }) => belongs)) {",
    to: "if (ledger === 'none') {",
    tests: ['test/store/occupied.test.ts'],
  },
];
