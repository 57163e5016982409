import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in reporting metadata columns that go back and forth, and in what else an answer has told. */
export const COLUMNS: readonly Mutant[] = [
  ...faultsOf(
    'src/store/answer/members.ts',
    ['test/store/unsteady-columns.pg.test.ts', 'test/store/members-drawn.test.ts'],
    ['columns: what is no column is told of as one', "where part = 'column' and", 'where'],
    [
      'columns: one is told of for ever',
      "part = 'column' and ${sql.unsafe(HOLDS)} order",
      "part = 'column' order",
    ],
    [
      'columns: servers that disagree are not told of',
      'again >= Math.max(MUTED_FROM, rest)',
      'again >= 2 * rest + MUTED_FROM',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/tell.ts',
    ['test/sync/tell.test.ts'],
    [
      'columns: are told of as if their history were muted',
      "part === 'column' ? { event: 'column.unsteady', path }",
      "part === 'entry' ? { event: 'column.unsteady', path }",
    ],
    [
      'columns: nobody says that they are steady',
      "part === 'column' ? { event: 'column.steady', path }",
      "part === 'entry' ? { event: 'column.steady', path }",
    ],
    [
      'prices: that they are lost is told as that they are implausible',
      "emit({ event: 'prices.lost', ...named(lost) });",
      "emit({ event: 'prices.implausible', ...named(lost) });",
    ],
    ['mass moves: nobody says that they end', "massMoved?.event === 'ended'", "massMoved?.event === 'began'"],
    ['mass moves: nobody says that they were not looked for', "massMoved?.event === 'failed'", 'false'],
  ),
  ...faultsOf(
    'src/store/answer/effects.ts',
    ['test/store/unsteady-columns.pg.test.ts'],
    [
      'columns: none is watched',
      "keyOf({ part: 'column', path: JSON.stringify([field]) })",
      "keyOf({ part: 'column', path: sku })",
    ],
  ),
  ...faultsOf(
    'src/store/history/retention.ts',
    ['test/store/unsteady-columns.pg.test.ts'],
    [
      'columns: those that go back and forth keep their history for ever',
      'or field = any (${unsteady as string[]}::text[])',
      'or false',
    ],
    ['columns: what size keys meant is dropped', " and field not in ('size_type', 'size_map_size_type')", ''],
  ),
  ...faultsOf(
    'src/status/format.ts',
    ['test/status/screen.test.ts'],
    [
      'status: SKUs in errors beyond the first are not counted',
      'const others = all - failing.length;',
      'const others = 0;',
    ],
    [
      'status: columns that go back and forth are not shown',
      'if (columns.length === 0) return null;',
      'if (columns.length > 0) return null;',
    ],
  ),
  ...faultsOf(
    'src/store/answer/effects.ts',
    ['test/store/volatile-members.pg.test.ts'],
    ['members: muted ones are history', "!muted.has(keyOf({ part: 'product', path }))", 'path.length > 0'],
    [
      'members: entries are written each time',
      "return members.every(({ path }) => muted.has(keyOf({ part: 'entry', path })));",
      'return false;',
    ],
    ['members: a followed SKU is not stored', 'watch.follows(sku)', 'false'],
  ),
];
