import { faultsOf, type Mutant } from './mutant.ts';

const AUDIT = [
  'test/store/audit.pg.test.ts',
  'test/store/audit-moves.pg.test.ts',
  'test/store/audit-model.pg.test.ts',
];

/** Faults in what the mirror's own refreshes reveal about the delta. */
export const AUDITS: readonly Mutant[] = [
  {
    breaks: 'baseline: a SKU that is listed again is swept, though the delta has left out a move of it',
    file: 'src/store/catalog/baseline-sql.ts',
    from: 'and l.missed_moves is null and l.live_left = 0',
    to: 'and l.live_left = 0',
    tests: ['test/store/unlisted.pg.test.ts'],
  },
  {
    breaks: 'baseline: a SKU that is listed again is swept, though its deferrals say that it is live',
    file: 'src/store/catalog/baseline-sql.ts',
    from: 'and l.missed_moves is null and l.live_left = 0',
    to: 'and l.missed_moves is null',
    tests: ['test/store/unlisted.pg.test.ts'],
  },
  ...faultsOf('src/store/answer/mass-moves.ts', ['test/store/accepted-doubts.pg.test.ts']),
  ...faultsOf(
    'src/store/answer/seller-doubts.ts',
    ['test/store/accepted-doubts.pg.test.ts'],
    [
      'doubts: who accepts one ends what its deferrals have taught',
      'live and live_left > 0 as seems_live',
      'false as seems_live',
    ],
    [
      'doubts: who accepts one ends the wait for a second look',
      '(5, doubted.again_at is not null,',
      '(5, false,',
    ],
  ),
  ...faultsOf(
    'src/store/answer/writes.ts',
    AUDIT,
    ['missed moves: the SKU waits for its sweep', 'where a.missed > 0', 'where false'],
    ['missed moves: its turns are those of the sweep', "'missed' where", "'sweep' where"],
  ),
  ...faultsOf(
    'src/store/catalog/audit.ts',
    AUDIT,
    ['audit: a report from before the manifest is judged', "then 'report'\n", "then 'masked'\n"],
    [
      'audit: an overtaken move is not noted',
      "standing === 'overtaken') {",
      "standing === 'overtaken' && false) {",
    ],
    [
      'audit: a move that came back is one that was never reported',
      "count(*) filter (where finding = 'overdue' and kept.moves = 1)",
      "count(*) filter (where finding = 'overdue')",
    ],
    [
      'audit: each report is unchanged that others explain',
      "count(*) filter (where finding = 'unchanged' and kept.sku is null)",
      "count(*) filter (where finding = 'unchanged')",
    ],
    [
      'missed moves: two of which one may have gone back are one',
      "finding === 'overdue' && before.keptOnce && !before.live)",
      "finding === 'overdue' && !before.live)",
    ],
    ['missed moves: more are counted in an incident', 'before.keptOnce && !before.live)', 'before.keptOnce)'],
    [
      'missed moves: they are forgotten in an incident',
      'if (before.listedLive) return null;',
      'if (before.live) return null;',
    ],
    [
      'missed moves: they are forgotten with any report',
      "before.standing === 'report' && (moved || before.kept === 'reported')",
      "before.standing === 'report'",
    ],
    [
      'missed moves: a report that was seen before is none',
      "&& (moved || before.kept === 'reported')",
      '&& moved',
    ],
    [
      'audit: a SKU that is removed waits for its report',
      'const leaving = [...new Set([...delta.nowLive, ...delta.removed])];',
      'const leaving = [...new Set([...delta.nowLive])];',
    ],
    [
      'audit: a move is waited for by the delta that could not have it',
      'and u.seen_at <= y.token_at and',
      'and',
    ],
  ),
];
