import { doubling } from '../lib/backoff.ts';
import type { LowestRecord } from '../partner/client.ts';
import type { Fate } from '../store/answers.ts';
import type { ClaimedSku } from '../store/due.ts';
import type { SyncSettings } from './context.ts';
import type { Verdict } from './envelope.ts';

const SKU_ERROR_MOST_MS = 6 * 3_600_000;
/** Deferred SKUs wait up to this part longer, so that they do not come back all at once. */
const JITTER = 0.1;

/** The verdict as it is to be stored; waits are drawn and grow here. */
export function fateOf(
  asked: ClaimedSku,
  verdict: Verdict,
  settings: SyncSettings,
  random: () => number,
): Fate {
  const { sku } = asked;
  switch (verdict.kind) {
    case 'record':
      return { sku, kind: 'record', ...rowsOf(verdict.record) };
    case 'not_found':
      return { sku, kind: 'not_found' };
    case 'deferred':
      return { sku, kind: 'deferred', waitMs: settings.deferredMs * (1 + JITTER * random()) };
    case 'error': {
      const waitMs = doubling(settings.errorMs, asked.failures + 1, SKU_ERROR_MOST_MS);
      return { sku, kind: 'error', waitMs };
    }
  }
}

function rowsOf(record: LowestRecord): Pick<Extract<Fate, { kind: 'record' }>, 'prices' | 'product'> {
  const { productFields: fields } = record;
  return {
    prices: [...record.sizes].map(([size, { price, entry }]) => ({
      size,
      price,
      entry: entry === null ? null : JSON.stringify(entry),
    })),
    product: {
      name: fields.name,
      model: fields.model,
      brand: fields.brand,
      genderSize: fields.gender_size,
      sizeType: fields.size_type,
      category: fields.category,
      sizeMapSizeType: record.sizeType,
      product: JSON.stringify(record.product ?? {}),
    },
  };
}

/** Entries of a record's size_map that carry no readable price. */
export function unpriced(record: LowestRecord): number {
  return [...record.sizes.values()].filter(({ price, entry }) => price === null && entry !== null).length;
}
