import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in what is believed of an answer: which SKUs it is about, and whether it is to be asked again. */
export const BELIEVING: readonly Mutant[] = [
  ...faultsOf(
    'src/store/catalog/delta.ts',
    ['test/store/delta.pg.test.ts'],
    [
      'delta: each report that a SKU is still live makes it due',
      'from before where not still_live group by unpriced, is_live',
      'from before group by unpriced, is_live',
    ],
    [
      'delta: a report that a SKU is still live counts as one that waits for an answer',
      'select sku, price_source, true, now() from before where not still_live order by sku',
      'select sku, price_source, true, now() from before order by sku',
    ],
    [
      'delta: a live SKU that is listed again is not asked',
      "s.price_source = 'live' and s.in_manifest and s.state in ('priced', 'pending'), false)",
      "s.price_source = 'live' and s.state in ('priced', 'pending'), false)",
    ],
    [
      'delta: a live SKU that is reported although it is not found is not asked',
      "and s.in_manifest and s.state in ('priced', 'pending'), false)",
      'and s.in_manifest, false)',
    ],
    [
      'delta: the first report that a SKU went live makes nothing due',
      "coalesce(r.is_live and s.price_source = 'live' and",
      'coalesce(r.is_live and',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/reconciliation.ts',
    ['test/sync/reconciliation.test.ts', 'test/sync/passed-over.pg.test.ts'],
    [
      'short answers: SKUs that are passed over have calls cut',
      '    order.slice(read).every((sku) => isOmitted(skuAnswers.get(sku))) &&\n',
      '',
    ],
    [
      'short answers: what may be chance has calls cut',
      'chanceToBeLast(order.length, omitted.length) <= LAST_BY_CHANCE &&',
      'true &&',
    ],
    [
      'short answers: SKUs that are always passed over have calls cut',
      '!omitted.every((sku) => setBack.has(sku))',
      'true',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/recent.ts',
    ['test/sync/short-answers.test.ts', 'test/sync/passed-over.pg.test.ts'],
    [
      'short answers: a part of each call is taken for a number',
      'return answers >= SHORT_ANSWERS && differ;',
      'return answers >= SHORT_ANSWERS;',
    ],
    [
      'short answers: a larger call that is read whole shows nothing',
      'return asked > run.read ? NO_SHORT : run;',
      'return run;',
    ],
    [
      'short answers: a SKU that is passed over alone stops all calls',
      'asked.every(({ setBack = false }) => setBack) ||',
      'false ||',
    ],
    [
      'short answers: a body key that is not read is blamed on one SKU after the other',
      "this.#works = asked.some(({ sku }) => (answers.get(sku)?.kind ?? 'error') !== 'error');",
      'this.#works = true;',
    ],
  ),
];
