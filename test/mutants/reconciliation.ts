import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in what an answer says about each SKU, and in how long the next one is put off. */
export const RECONCILIATIONS: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/reprice/reconciliation.ts',
    ['test/sync/reconciliation.test.ts', 'test/sync/retries.test.ts', 'test/hostile/reconciliation.test.ts'],
    [
      'reconciliation: the second of two results counts',
      "skuAnswers.set(sku, { kind: 'error', because: 'contradictory' });",
      'skuAnswers.set(sku, skuAnswer);',
    ],
    [
      'reconciliation: the same result twice is a contradiction',
      '} else if (present.kind !== skuAnswer.kind) {',
      '} else {',
    ],
    [
      'reconciliation: a SKU left out is not found',
      "const OMITTED: SkuAnswer = { kind: 'error', because: 'omitted' };",
      "const OMITTED: SkuAnswer = { kind: 'not_found' };",
    ],
    [
      'reconciliation: null in results contradicts the list that names the SKU',
      'else if (result.isPlaceholder === true) placeholders.push(sku);',
      'else if (false) placeholders.push(sku);',
    ],
    [
      'reconciliation: null in results is nothing at all',
      'if (isOmitted(skuAnswers.get(sku) ?? OMITTED)) rule(sku, UNREADABLE);',
      'if (false) rule(sku, UNREADABLE);',
    ],
    [
      'reconciliation: unexpected SKUs are counted each time',
      'unexpected: unexpected.size',
      'unexpected: Math.min(1, unexpected.size)',
    ],
    [
      'reconciliation: deferred SKUs all come back together',
      'longestMs) * (1 + JITTER * random())',
      'longestMs)',
    ],
    [
      'reconciliation: deferred SKUs come back early',
      'longestMs) * (1 + JITTER * random())',
      'longestMs) * (1 - JITTER * random())',
    ],
    [
      'reconciliation: who is deferred again waits longer although nobody is computed',
      'computes ? MAX_DEFERRED * deferredMs : deferredMs',
      'MAX_DEFERRED * deferredMs',
    ],
    [
      'reconciliation: who is deferred again and again waits no longer',
      'computes ? MAX_DEFERRED * deferredMs : deferredMs',
      'deferredMs',
    ],
    [
      'reconciliation: an error waits as long each time',
      'doubling(errorMs, failures + 1, Math.min',
      'doubling(errorMs, 1, Math.min',
    ],
    [
      'reconciliation: a SKU is blamed the first time',
      'if (blamed > 0) return',
      "if (skuAnswer.because === 'alone') return",
    ],
    [
      'reconciliation: entries with a price are unpriced',
      'filter(({ unreadable }) => unreadable)',
      'filter(() => true)',
    ],
  ),
];
