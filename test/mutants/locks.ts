import { faultsOf, type Mutant } from './mutant.ts';

const RACES = ['test/store/watchlist-races.pg.test.ts'];

/** Faults that break the common lock order in one place, so that some test must get a deadlock. */
export const LOCKS: readonly Mutant[] = [
  {
    breaks: 'locks: a call that is given back locks rows as they lie',
    file: 'src/store/ledger/due.ts',
    from: 'and ${heldBy(sql, claim)} order by sku for update`;',
    to: 'and ${heldBy(sql, claim)}`;',
    tests: RACES,
  },
  {
    breaks: 'locks: refresh --all locks rows as they lie',
    file: 'src/store/sellers/refresh.ts',
    from: 'order by sku limit ${PIECE} for update',
    to: 'order by sku limit ${PIECE}',
    tests: RACES,
  },
  {
    breaks: 'locks: a delta locks the ledger in the order of its marks',
    file: 'src/store/catalog/delta.ts',
    from: 'where d.sku = named.sku for update) locked`,',
    to: 'where d.sku = named.sku) locked`,',
    tests: RACES,
  },
  {
    breaks: 'locks: a baseline locks the ledger in the order of its marks',
    file: 'src/store/catalog/baseline-merge.ts',
    from: '  await run(statements.LOCK_LEDGER);\n',
    to: '',
    tests: RACES,
  },
  {
    breaks: 'locks: a failed call locks its task before the ledger',
    file: 'src/store/call/call-lesson.ts',
    from: 'and (select count(*) from released) >= 0\n      returning task',
    to: 'returning task',
    tests: RACES,
  },
  {
    breaks: 'locks: a victim of a deadlock is not run again',
    file: 'src/store/connection/db.ts',
    from: 'if (attempt >= TRANSACTION_TRIES || !isConflict(error)) throw error;',
    to: 'throw error;',
    tests: ['test/store/deadlock-victim.pg.test.ts'],
  },
  ...faultsOf(
    'src/store/status/counts-reader.ts',
    ['test/status/locked.pg.test.ts'],
    [
      'locks: a mirror that cannot be counted cannot be judged by a command',
      'if (isLockNotAvailable(error)) return last.counts;',
      '',
    ],
  ),
  ...faultsOf(
    'src/cli/status.ts',
    ['test/status/locked.pg.test.ts'],
    [
      'locks: a mirror without figures cannot be judged by a command',
      'if (isLockNotAvailable(error)) return null;',
      '',
    ],
  ),
];
