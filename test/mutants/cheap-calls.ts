import { faultsOf, type Mutant } from './mutant.ts';

const ANSWERS = [
  'test/store/answer-corners.pg.test.ts',
  'test/store/answers.pg.test.ts',
  'test/store/answers-model.pg.test.ts',
];

/** Faults in what makes calls cheap: cached plans, and prices that are compared in the daemon. */
export const CHEAP_CALLS: readonly Mutant[] = [
  ...faultsOf(
    'src/store/call/bulk-call.ts',
    ['test/store/call-plan.pg.test.ts'],
    [
      'call inputs: a plan of the empty mirror is kept',
      'array[${constant(sql, ...from.magnitudes)}]::int[] as magnitudes',
      'array[]::int[] as magnitudes',
    ],
  ),
  ...faultsOf(
    'src/store/connection/db.ts',
    ['test/store/call-plan.pg.test.ts'],
    [
      'claims and lessons: each is planned anew',
      'sql`(select ${value as string}::${sql.unsafe(type)})`',
      'sql`${value as string}::${sql.unsafe(type)}`',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/claim.ts',
    ['test/store/call-plan.pg.test.ts'],
    [
      'claims: a plan of the empty mirror is kept',
      'array[${constant(sql, ...floors.magnitudes)}]::int[] as magnitudes',
      'array[]::int[] as magnitudes',
    ],
  ),
  ...faultsOf(
    'src/store/call/call-lesson.ts',
    ['test/store/call-plan.pg.test.ts'],
    [
      'lessons: a plan of the empty mirror is kept',
      'array[${constant(sql, ...magnitudes)}]::int[] as magnitudes',
      'array[]::int[] as magnitudes',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/learn-call.ts',
    ['test/sync/reprice-trips.pg.test.ts'],
    ['lessons: nobody knows how large the ledger is', '    magnitudes: ctx.floors.floors.magnitudes,\n', ''],
  ),
  ...faultsOf(
    'src/store/ledger/due-floors.ts',
    ['test/store/call-plan.pg.test.ts'],
    [
      'claims: after a reset that of the empty mirror is taken again',
      'return { ...this.#floors, magnitudes: this.#magnitudes };',
      'return this.#floors;',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/due.ts',
    ['test/store/call-plan.pg.test.ts'],
    [
      'call inputs: each is planned anew for its floors',
      'secs => ${constant(sql, LONGEST_LEAD_SECONDS)} + case',
      'secs => ${LONGEST_LEAD_SECONDS} + case',
    ],
  ),
  ...faultsOf(
    'src/store/answer/price-differences.ts',
    ['test/store/price-differences.test.ts', ...ANSWERS],
    [
      'differences: a price that is null again is a move',
      "oldPrice !== price ? 'moved'",
      "oldPrice !== price || price === null ? 'moved'",
    ],
    [
      'differences: what is gone is not seen',
      'for (const [size, oldPrice] of before)',
      'for (const [size, oldPrice] of [...before].slice(1))',
    ],
  ),
  ...faultsOf(
    'src/store/answer/price-differences.ts',
    ['test/store/answer-corners.pg.test.ts', ...ANSWERS],
    [
      'differences: an entry that changes is not seen',
      'filter (where p.entry is distinct from n.entries -> p.size)',
      'filter (where p.entry is null and n.entries ? p.size)',
    ],
  ),
];
