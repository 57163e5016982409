import { faultsOf, type Mutant } from './mutant.ts';

/**
 * Faults in the treatment of implausible prices: many at once, sizes that are offered again, or prices that do not
 * move although they are reported.
 */
export const MASS_MOVES: readonly Mutant[] = [
  ...faultsOf(
    'src/store/answer/move-counts.ts',
    ['test/store/move-counts.test.ts', 'test/store/doubts.pg.test.ts'],
    ['mass moves: a small catalog never ends them', 'answers >= SOME_SKUS && this', 'false && this'],
  ),
  ...faultsOf(
    'src/store/answer/hour-of-moves.ts',
    ['test/store/move-counts.test.ts', 'test/store/doubts.pg.test.ts'],
    ['mass moves: one is enough', 'odd > share * part * all', 'odd > 0'],
    ['mass moves: one of a few is enough', 'odd >= share * few', 'odd > 0'],
    [
      'mass moves: prices may vanish in masses',
      "if (isMany(lost, answers, LOST) || isMany(untold.lost, untold.answers, LOST)) return 'lost';",
      '',
    ],
    ['mass moves: live SKUs may vanish', ' || isMany(untold.lost, untold.answers, LOST)', ''],
    ['mass moves: one SKU keeps them going', 'implausibleSkus >= GOING_SKUS', 'implausibleSkus >= 0'],
  ),
  ...faultsOf(
    'src/store/answer/doubts.ts',
    ['test/store/while-masses-move.test.ts', 'test/store/lasting-faults.pg.test.ts'],
    [
      'doubts: another unit is a price once two answers have it',
      "if (isOfFault(held, answer, massMove)) return { kind: 'stays', isFault: true };",
      '',
    ],
    ['doubts: first prices in another unit are prices', ': massMove.factor !== null;', ': false;'],
    [
      'doubts: what is accepted is doubted again',
      'return isAccepted(before, now, accepted) ? null : oddity;',
      'return oddity;',
    ],
    [
      'doubts: one price for all is right once two answers have it',
      "if (kind === 'one-price')",
      "if (kind === 'far')",
    ],
  ),
  ...faultsOf(
    'src/store/answer/doubts.ts',
    ['test/store/while-masses-move.test.ts'],
    [
      'doubts: what is of a fault of many is a price once others are as before',
      'return saysFault(oddity, { believed, before, now }) &&',
      'return false &&',
    ],
    [
      'doubts: what is of a fault of many waits though it is accepted',
      ' && !isAccepted(believed, now, massMove.accepted);',
      ';',
    ],
    [
      'doubts: one price of many is right once others have several',
      '(hasOnePrice(believed, now) || saysOnePrice',
      '(saysOnePrice',
    ],
    [
      'doubts: a fault of many is none where it begins while others have it',
      'oddity: ofMany ?? oddity',
      'oddity',
    ],
    [
      'doubts: a fault of many is forgotten with other odd prices',
      'isOfMany(held.oddity) ? held.oddity : oddity',
      'oddity',
    ],
  ),
  ...faultsOf(
    'src/store/answer/plausibility.ts',
    ['test/store/while-masses-move.test.ts', 'test/store/faults-outlast.pg.test.ts'],
    [
      'doubts: another unit on a size that was not there is back',
      'old === undefined ? [level,',
      'old === undefined ? [null,',
    ],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/faults-outlast.pg.test.ts'],
    [
      'faults of many: what was doubted before they were known is a price',
      '  await keepFaults(sql);\n  // An answer',
      '  // An answer',
    ],
    [
      'faults of many: what was being written when they were found is a price',
      '    await keepFaults(sql);\n    await',
      '    await',
    ],
  ),
  ...faultsOf(
    'src/store/answer/mass-move.ts',
    ['test/store/faults-outlast.pg.test.ts', 'test/store/move-counts.test.ts'],
    ['faults of many: another one of another kind is none', 'found.kind !== known.kind || ', ''],
  ),
  ...faultsOf(
    'src/store/answer/mass-move.ts',
    ['test/store/faults-outlast.pg.test.ts', 'test/store/move-counts.test.ts'],
    [
      'faults of many: another one by another factor is none',
      ' || isOfAnother(found.factor ?? 0, known)',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/answer/doubts.ts',
    ['test/store/faults-outlast.pg.test.ts'],
    [
      'faults of many: one price is none where some of its sizes are sold',
      ' || saysOnePrice(before, now)',
      '',
    ],
    [
      'faults of many: one price is over where it is in another unit',
      '  if (isFar(believed, now)) return true;\n',
      "  if (isFar(believed, now)) return oddity === 'unit-of-many';\n",
    ],
  ),
  ...faultsOf(
    'src/store/answer/judgements.ts',
    ['test/store/returned-sizes.pg.test.ts', 'test/store/while-masses-move.test.ts'],
    [
      'mass moves: a size that is offered again hides them',
      ' && oddityOf(before, others(), usual ?? 0) === null',
      '',
    ],
    ['mass moves: one SKU whose numbers go on changing begins them', ' && judgement.isAgain !== true', ''],
  ),
  ...faultsOf(
    'src/store/answer/judgements.ts',
    ['test/store/faults-outlast.pg.test.ts'],
    ['faults of many: what is left of them begins them anew', ' || isCounted || isLeft', ' || isCounted'],
  ),
  ...faultsOf(
    'src/store/answer/judgements.ts',
    ['test/store/while-masses-move.test.ts'],
    ['doubts: another unit seems over', 'odd: begins || stays', 'odd: begins'],
    ['doubts: first prices keep mass moves going', ' && held.believed.size > 0', ''],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/lasting-faults.pg.test.ts', 'test/store/accepted-doubts.pg.test.ts'],
    ['mass moves: what is still in another unit waits for its sweep', '    await askDoubted(sql);', ''],
    [
      'mass moves: what led to them leads to them again',
      "if (moved !== null) counts.follow(moved.event === 'began' ? moved : NO_MASS_MOVE);",
      '',
    ],
  ),
  ...faultsOf(
    'src/store/answer/seller-doubts.ts',
    ['test/store/lasting-faults.pg.test.ts', 'test/store/accepted-doubts.pg.test.ts'],
    [
      'doubts: who accepts one ends a wait that the partner has asked for',
      'when waits and d.deferrals = 0 then null',
      'when waits then null',
    ],
    [
      'mass moves: nothing is remembered of what was accepted',
      'accepted = coalesce(factor, accepted)',
      'accepted = accepted',
    ],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/doubts.pg.test.ts'],
    [
      'mass moves: what has lost its prices is not asked again',
      "if (going !== undefined && !['far', 'factor-of-some'].includes(going.kind)) await askLost(sql, going.since);",
      '',
    ],
    [
      'mass moves: what has lost its prices is not asked again where a fault was found, too',
      "!['far', 'factor-of-some'].includes(going.kind)",
      "going.kind === 'lost'",
    ],
    [
      'mass moves: a held row holds up the answer',
      'catalog_internal.mass_move for update skip locked)`',
      'catalog_internal.mass_move for update)`',
    ],
    [
      'mass moves: a report that is there waits for their second answers',
      'd.held_until is null and coalesce(d.outside_due_at, d.due_at) > clock_timestamp()',
      'd.held_until is null',
    ],
  ),
  ...faultsOf(
    'src/store/answer/writes.ts',
    ['test/store/doubts.pg.test.ts'],
    [
      'doubts: a report that came meanwhile waits for the second answer',
      'a.doubted_seconds is not null and d.generation = a.generation',
      'a.doubted_seconds is not null',
    ],
  ),
  ...faultsOf(
    'drizzle/0059_marks_end_doubted.sql',
    ['test/store/accepted-doubts.pg.test.ts'],
    [
      'mark_due: a report is lost with the doubt that a seller ends',
      "        WHEN d.reason = 'doubted' THEN excluded.reason\n",
      '',
    ],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/masses-begin.pg.test.ts'],
    [
      'mass moves: what is being written when they begin is not doubted',
      "where m.kind is distinct from 'factor-of-some') is not null and",
      'where false) is not null and',
    ],
    [
      'mass moves: what is doubted is read before its lock is there',
      '      order by d.sku for update of d`;',
      '      order by d.sku`;',
    ],
    [
      'mass moves: what came while they were being said is forgotten with the daemon',
      'if (isUnfinished && kind !== null) await doubtMeanwhile(sql, { kind, factor }, hour);',
      '',
    ],
    [
      'mass moves: what came while they were being said is doubted with each answer',
      'set answers = ${answers}, implausible',
      'set implausible',
    ],
    [
      'mass moves: what is being committed when they begin is not doubted',
      'await awaitChanges(sql).then(',
      'await Promise.resolve().then(',
    ],
    [
      'mass moves: first prices in another unit are not doubted',
      ' or (select m.factor from catalog_internal.mass_move m) is not null)',
      ')',
    ],
    [
      'mass moves: first prices are doubted with every move',
      "n.believed <> '{}' or (select m.factor from catalog_internal.mass_move m) is not null",
      'true',
    ],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/unreported.pg.test.ts'],
    [
      'mass moves: what led to them is learned from',
      'new Date(going.since.getTime() - WINDOW_MS)',
      'going.since',
    ],
    [
      'mass moves: what they have shown is learned from once they are over',
      '    await setApartSince(sql, ',
      '    void (sql, ',
    ],
    [
      'mass moves: that no delta has reported far moves is forgotten',
      "going !== undefined && going.kind !== 'far'",
      'going !== undefined',
    ],
  ),
  ...faultsOf(
    'src/store/answer/price-differences.ts',
    ['test/store/returned-sizes.pg.test.ts'],
    [
      'doubts: a size that is offered again may cost anything',
      "where h.appeared <> '[]' and s.first_priced_at is not null",
      'where false',
    ],
    [
      'doubts: an entry that had no price is no size that is offered again',
      "array_agg(p.size) filter (where p.price is not null), '{}')",
      "array_agg(p.size), '{}')",
    ],
  ),
  ...faultsOf(
    'src/store/answer/price-differences.ts',
    ['test/store/doubts.pg.test.ts'],
    [
      'lost prices: what has vanished is not known',
      'count(p.price) = 0 as is_unpriced',
      'false as is_unpriced',
    ],
  ),
  ...faultsOf(
    'drizzle/0080_history_plans.sql',
    ['test/store/returned-sizes.pg.test.ts'],
    ['doubts: a wrong price that came and went is what a size cost', ' LIMIT 4\n', ' LIMIT 1\n'],
  ),
  ...faultsOf(
    'src/store/answer/doubts.ts',
    ['test/store/returned-sizes.pg.test.ts'],
    [
      'doubts: a wrong price of the past is believed',
      '    if (!hasJumped(new Map([[size',
      '    if (1 > 0 || !hasJumped(new Map([[size',
    ],
    ['doubts: the last price of a size may be a wrong one', '.at(-1) ?? from;', '.at(0) ?? from;'],
    [
      "doubts: another account's sizes are offered again",
      '...(isOurs && { returned, settled })',
      '...{ returned, settled }',
    ],
    [
      'doubts: what a size cost before is forgotten with its doubt',
      'new Map([...before, ...settled]);\n    if',
      'before;\n    if',
    ],
  ),
  ...faultsOf(
    'src/store/answer/judgements.ts',
    ['test/store/returned-sizes.pg.test.ts'],
    ['doubts: sizes that are offered again move in masses', ' || isLeft || isReturned)', ' || isLeft)'],
  ),
];
