import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in how another unit is found where it is hard to: of some sizes, by several daemons, in few answers. */
export const HIDDEN_FAULTS: readonly Mutant[] = [
  ...faultsOf(
    'src/store/answer/plausibility.ts',
    ['test/store/hidden-faults.pg.test.ts'],
    ['hidden faults: of a part of the sizes are none', 'median(far.length > 0 ? far : logs)', 'median(logs)'],
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
    ['hidden faults: in a crash each SKU is stored', 'l) < ${MOST_READ}', 'l) < 1000000'],
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
