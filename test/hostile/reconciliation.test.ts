import { assert, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LowestRecord } from '../../src/partner/answers.ts';
import { readBulk } from '../../src/partner/bulk-answer.ts';
import { reconcile, tally } from '../../src/sync/reprice/reconciliation.ts';
import { runs } from '../support/soak.ts';
import { anyMutations, mutated, type Mutation } from './mutations.ts';
import { ASKED, type SkuResult } from './reconciliation-cases.ts';
import { resultsByPartnerRules } from './reconciliation-oracle.ts';

const RUNS = runs(4000);
/** New in each run, and printed; SEED repeats a run. */
const SEED = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

interface Made {
  readonly outcomes: Record<string, SkuResult>;
  readonly records: ReadonlyMap<string, LowestRecord>;
}

/**
 * Returns what src makes of the text: each SKU's result and the records to store, or null if it refuses the whole
 * text.
 */
function made(text: string): Made | null {
  const reading = readBulk(JSON.parse(text), { priceFields: ['price'], skuField: 'sku' });
  if (!reading.ok) return null;
  const { skuAnswers } = reconcile(ASKED, reading.value);
  expect([...skuAnswers.keys()]).toEqual(ASKED);
  const { resolved, notFound, deferred, errors } = tally(skuAnswers.values());
  expect(resolved + notFound + deferred + errors).toBe(ASKED.length);
  const records = new Map<string, LowestRecord>();
  for (const [sku, skuAnswer] of skuAnswers)
    if (skuAnswer.kind === 'record') records.set(sku, skuAnswer.record);
  return { outcomes: Object.fromEntries([...skuAnswers].map(([sku, { kind }]) => [sku, kind])), records };
}

/** Checks that a SKU's record contains exactly that SKU's sizes, each with its own price. */
function checkRecords(text: string, { records }: Made): void {
  const { results } = JSON.parse(text) as { results: Record<string, { size_map: Record<string, unknown> }> };
  for (const [sku, record] of records) {
    const sizeMap = new Map(Object.entries(results[sku]?.size_map ?? {}));
    expect([...record.sizes.keys()].toSorted()).toEqual(
      [...sizeMap.keys()].filter((size) => size !== 'size_type').toSorted(),
    );
    for (const [size, { price }] of record.sizes) {
      const said = sizeMap.get(size);
      if (Number.isInteger(said) && Number(said) >= 50 && Number(said) < 2 ** 31) expect(price).toBe(said);
      if (price !== null) expect(price).toBe(Number((said as { price?: unknown }).price ?? said));
    }
  }
}

/** Compares src with the oracle, and returns the kind of answer it was. */
function check(mutations: readonly Mutation[]): 'refused' | 'good' | 'bent' {
  const text = mutated(mutations);
  const expected = resultsByPartnerRules(text);
  const actual = made(text);
  expect(actual?.outcomes ?? null).toEqual(expected);
  if (actual === null) return 'refused';
  checkRecords(text, actual);
  return Object.values(actual.outcomes).filter((settledAs) => settledAs === 'error').length > 1
    ? 'bent'
    : 'good';
}

describe('a mutated bulk answer', () => {
  test(
    `settles only the SKUs on which everything in it agrees (${RUNS} answers, seed ${SEED})`,
    { timeout: 600_000 },
    () => {
      const seen = { refused: 0, good: 0, bent: 0 };
      assert(
        property(anyMutations, (mutations) => {
          seen[check(mutations)] += 1;
        }),
        { numRuns: RUNS, seed: SEED },
      );
      console.log(`envelopes: ${JSON.stringify(seen)}, seed ${SEED}`);
      // A mix of kinds: the mutations reach both the whole answer and single SKUs.
      expect(seen.refused).toBeGreaterThan(RUNS / 50);
      expect(seen.bent).toBeGreaterThan(RUNS / 10);
    },
  );
});
