import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in detecting a changed unit where that is hard: for some sizes, by several daemons, in few answers. */
export const HIDDEN_FAULTS: readonly Mutant[] = [
  ...faultsOf(
    'src/store/answer/plausibility.ts',
    ['test/store/hidden-faults.pg.test.ts'],
    ['hidden faults: of a part of the sizes are none', 'median(far.length > 0 ? far : all)', 'median(all)'],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/hidden-faults.pg.test.ts'],
    [
      'hidden faults: while each move is doubted no daemon knows what another has seen',
      'if (begunOddly(judged).length > 0) counts',
      'if (!isEachDoubted(known) && begunOddly(judged).length > 0) counts',
    ],
    [
      'hidden faults: what a size has appeared with was believed',
      'case when m.sku is null then p.price else m.old_price end as price',
      'coalesce(m.old_price, p.price) as price',
    ],
  ),
  ...faultsOf(
    'src/store/answer/odd-moves.ts',
    ['test/store/hidden-faults.pg.test.ts'],
    [
      'hidden faults: while each move is doubted nothing is stored',
      'if (begun.length === 0) return;',
      'if (begun.length === 0 || isEachDoubted(known)) return;',
    ],
    [
      'hidden faults: odd moves of earlier hours leave no room for others',
      'where ${ofHour(tx)} limit',
      'limit',
    ],
    ['mass moves: end by a daemon that sees nothing of them', 'if (isRecent) return false;', 'return false;'],
    ['hidden faults: in a crash each SKU is stored', 'l) < ${MOST_READ}', 'l) < 1000000'],
  ),
  ...faultsOf(
    'src/store/answer/mass-moves.ts',
    ['test/store/hidden-faults.pg.test.ts'],
    [
      'mass moves: a daemon with few answers leaves a factor to some',
      'hasStood && hourOfMoves.isRecent)',
      'hasStood)',
    ],
  ),
  ...faultsOf(
    'src/store/answer/doubts.ts',
    ['test/store/while-masses-move.test.ts'],
    [
      'hidden faults: any jump beside a factor is of many',
      '? OF_FACTOR_SOME : OF_FACTOR;',
      '? OF_FACTOR : OF_FACTOR;',
    ],
    [
      'hidden faults: of all sizes are none where one is further',
      'isNear(levelOf(believed, now), OF_FACTOR) || ',
      '',
    ],
    [
      'accepting: whatever has jumped beside the factor is accepted',
      '!hasMovedApart(before, now, accepted);',
      'true;',
    ],
  ),
  ...faultsOf(
    'src/store/answer/fault-doubts.ts',
    ['test/store/while-masses-move.test.ts'],
    ['hidden faults: single sizes that jump keep a fault going', 'isLeft ? ofSome.length : 0', '0'],
    [
      'hidden faults: of some sizes are over with the first repaired',
      ' && commonFactor(factors) === null',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/answer/move-counts.ts',
    ['test/store/move-counts.test.ts'],
    [
      'mass moves: never end where few answers come in an hour',
      'if (this.#known.kind === null || answers >= SOME_SKUS) return recent;',
      'if (this.#known.kind !== undefined) return recent;',
    ],
    ['mass moves: count what came before the hour', 'this.#known.kind === null || answers', 'answers'],
    ['mass moves: count all that ever came', 'if (answers >= SOME_SKUS) break;', ''],
  ),
];
