import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in the treatment of a factor that some SKUs have in common, and in deciding whether a fault is over. */
export const FAULTS_OF_SOME: readonly Mutant[] = [
  ...faultsOf(
    'src/store/answer/move-counts.ts',
    ['test/store/move-counts.test.ts'],
    ['mass moves: a crash is another unit', ' || Math.abs(factor) < FACTOR.least', ''],
    ['mass moves: any moves have a common factor', ' || skus < FACTOR.part * all', ''],
    ['mass moves: seven SKUs have a common factor', 'skus < FACTOR.skus ||', 'skus < 7 ||'],
  ),
  ...faultsOf(
    'src/store/answer/move-counts.ts',
    ['test/store/move-counts.test.ts'],
    ['mass moves: answers that have a fault still show another', 'if (begins && odd &&', 'if (odd &&'],
    [
      'mass moves: the first few of a factor are forgotten with the others',
      'kind !== null && (factor === null ? !isFault(kind) : isOfAnother(by, { kind, factor }))',
      'false',
    ],
  ),
  ...faultsOf(
    'src/store/answer/hour-of-moves.ts',
    ['test/store/move-counts.test.ts'],
    [
      'mass moves: a factor of some is none',
      "return kind === null ? 'factor-of-some' : 'factor';",
      "return kind === null ? null : 'factor';",
    ],
    [
      'mass moves: a factor of some doubts each move',
      "return kind === null ? 'factor-of-some' : 'factor';",
      "return 'factor';",
    ],
    [
      'mass moves: a few answers beside a fault of some doubt each move',
      ' || (isOfSome && answers < ENOUGH_SKUS)',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/answer/hour-of-moves.ts',
    ['test/store/lasting-faults.pg.test.ts', 'test/store/move-counts.test.ts'],
    [
      'mass moves: a common factor is found at first or never',
      'known.kind === null || isAnotherFault(turned, known) ? turned',
      'known.kind === null ? turned',
    ],
    [
      'faults of some: are never those of all',
      "if (isOfSome && !isFault(found)) return { kind: 'factor', factor: known.factor };",
      '',
    ],
  ),
  ...faultsOf(
    'src/store/answer/mass-move.ts',
    ['test/store/faults-of-some.pg.test.ts'],
    [
      'faults of some: every move is doubted',
      "since !== null && kind !== 'factor-of-some';",
      'since !== null;',
    ],
  ),
  ...faultsOf(
    'src/store/answer/judgements.ts',
    ['test/store/faults-of-some.pg.test.ts'],
    [
      'faults of some: their own answers make them one of all',
      'const isLeft = !isEachDoubted(massMove) && judgement',
      'const isLeft = massMove.since === null && judgement',
    ],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/faults-of-some.pg.test.ts'],
    [
      'faults of some: all that has moved within the hour is doubted',
      "found.kind === 'factor-of-some' ? moved.filter(ofFault) : moved",
      'moved',
    ],
    [
      'faults of some: what was confirmed before they were known is a price',
      "found.kind === 'factor-of-some' ? moved.filter(ofFault) : moved",
      "found.kind === 'factor-of-some' ? [] : moved",
    ],
    [
      'faults of some: go on for the hour in which they began',
      "(found === 'factor-of-some' && hour.repairedSkus >= GOING_SKUS)",
      'false',
    ],
  ),
  ...faultsOf(
    'src/store/answer/move-counts.ts',
    ['test/store/faults-of-some.pg.test.ts'],
    ['faults of some: one hides another, of fewer SKUs', 'commonFactor(others) ?? ', ''],
  ),
  ...faultsOf(
    'src/store/answer/mass-move.ts',
    ['test/store/faults-of-some.pg.test.ts'],
    ['faults of some: the end of one is another', ' || Math.abs(by + known) > OF_FACTOR', ' || true'],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/faults-of-some.pg.test.ts'],
    [
      'faults of some: all others wait for as long as they last',
      'return await leaveToSome(sql, going, hourOfMoves);',
      'return null;',
    ],
    ['faults of some: two take turns with each answer', ' && !counts.mayTurn()', ''],
    [
      'faults of some: what another daemon has seen begin is not known',
      'counts.noteBegun(await readOddMoves(sql))',
      'counts.noteBegun([])',
    ],
    [
      'faults of some: what has moved beside them is not asked again',
      '  await askDoubted(sql);\n  const shown',
      '  const shown',
    ],
  ),
  ...faultsOf(
    'src/store/answer/odd-moves.ts',
    ['test/store/faults-of-some.pg.test.ts'],
    [
      'faults of some: what began yesterday counts',
      'begun_at between clock_timestamp() - make_interval(mins => ${HOUR_MINUTES}) and',
      'begun_at <',
    ],
    ['faults of some: what has shown the last shows the next', 'where ${factor === null} or', 'where'],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/masses-begin.pg.test.ts'],
    [
      'mass moves: begin with each answer in flight',
      'return await counts.alone(async () => {',
      'return await (async (w: () => Promise<MassMoved | null>) => await w())(async () => {',
    ],
    [
      'mass moves: begin again by an answer of before',
      '.count === 0) return null;\n  // Before it is stored',
      '.count === 0) await null;\n  // Before it is stored',
    ],
    [
      'mass moves: the whole history is read',
      'observed_at > ${from}::timestamptz and id > catalog_internal.position_before(${from}::timestamptz) and sku',
      'observed_at > clock_timestamp() - make_interval(mins => 60) and ${from} is not null and sku',
    ],
  ),
  ...faultsOf(
    'src/store/answer/fault-doubts.ts',
    ['test/store/faults-of-some.pg.test.ts'],
    ['faults of some: are over while nobody answers for them', "kind === 'factor-of-some'", 'kind === null'],
  ),
  ...faultsOf(
    'src/store/answer/fault-doubts.ts',
    ['test/store/faults-outlast.pg.test.ts'],
    ['faults of many: are over while SKUs have them', "if (still >= GOING_SKUS) return 'lasts';", ''],
    ['faults of many: are over once any answers are usual', '(repaired >= GOING_SKUS)', '(repaired >= 0)'],
    ['faults of many: are over only once no SKU has them', "if (repaired >= GOING_SKUS) return 'over';", ''],
    [
      'faults of many: go on where another daemon has seen them end',
      "if (still + unseen < GOING_SKUS) return 'over';",
      '',
    ],
    [
      'faults of many: those that are sold out keep them going',
      '      and exists (select from catalog.prices p where p.sku = d.sku and p.price is not null)`;',
      '`;',
    ],
    [
      'faults of many: those that are right again keep them going',
      'saysFault(oddity, prices)',
      'saysFault(oddity, { ...prices, believed: new Map() })',
    ],
    [
      'faults of many: those that fail keep them going',
      'sql`d.failures = 0 and d.deferrals = 0`',
      'sql`true`',
    ],
    ['faults of many: all SKUs are asked whether they go on', ' limit ${SAMPLE}', ''],
  ),
];
