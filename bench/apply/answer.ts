import {
  type AnswerLearning,
  type NextRefresh,
  NO_LEARNING,
  type SkuResult,
} from '../../src/store/answer/types.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import type { Claim } from '../../src/store/ledger/due.ts';

export const SKUS_AN_ANSWER = 100;

export const NEXT: NextRefresh = {
  liveMs: 1_800_000,
  snapshotMs: 86_400_000,
  snapshotReason: 'sweep',
  lostMs: 3_600_000,
  notFoundMs: 604_800_000,
};

export const LEARNING: AnswerLearning = {
  ...NO_LEARNING,
  live: ({ sku, alpha, beta }) => ({
    sku,
    alpha: alpha ?? 1,
    beta: beta ?? 720,
    sizesSeen: 0,
    sizesMoved: 0,
    nextMs: 1_800_000,
  }),
};

export type FoundRecord = Extract<SkuResult, { kind: 'record' }>;

/** An answer to be applied: its SKUs are claimed, every one of them is found. */
export interface Answer {
  readonly claim: Claim;
  readonly records: readonly FoundRecord[];
  /** How many of its prices differ from the mirror's. */
  readonly changed: number;
}

/** Names of priced SKUs, scattered over the whole mirror: each is handed out once before any comes again. */
export function* scattered(skus: number): Generator<string, never> {
  for (let i = 0; ; i += 1) {
    const n = ((i * 7_368_787) % skus) + 1;
    if (n % 1000 > 3) yield `SKU-${String(n).padStart(9, '0')}`;
  }
}

/**
 * Claims SKUs and makes the answer in which the part `share` of their prices is another than the mirror's; reported,
 * where it is any.
 */
export async function prepare(
  sql: Sql,
  skus: readonly string[],
  share: number,
  random: () => number,
): Promise<Answer> {
  const names = [...skus];
  const [first] = await sql<{ claim: string; askedAt: Date }[]>`
    select nextval('catalog_internal.claim_numbers') as claim, clock_timestamp() as "askedAt"`;
  if (first === undefined) throw new Error('no claim number');
  // Where prices have changed, a delta has said so.
  if (share > 0)
    await sql`update catalog.skus set reported_at = clock_timestamp() - interval '1 minute' where sku = any(${names})`;
  const claimed = await sql<Claim['skus'][number][]>`
    update catalog_internal.due set claim = ${first.claim}, held_until = now() + interval '1 hour',
      reason = case when ${share > 0} then 'changed' else reason end
    where sku = any(${names})
    returning sku, generation, deferrals, failures, live, due_at as "dueAt", reason`;
  const found = await foundRecords(sql, names, share, random);
  return { claim: { number: first.claim, askedAt: first.askedAt, skus: claimed }, ...found };
}

/** What a partner answers to SKUs of the mirror of whose prices the part `share` has moved. */
export async function foundRecords(
  sql: Sql,
  names: readonly string[],
  share: number,
  random: () => number,
): Promise<Pick<Answer, 'records' | 'changed'>> {
  const products = await sql<{ sku: string; record: FoundRecord['product'] }[]>`
    select sku, to_jsonb(p) - array['sku', 'refreshed_at', 'changed_at'] || jsonb_build_object('product', product::text) as record
    from catalog.products p where sku = any(${names as string[]})`;
  const prices = await sql<{ sku: string; size: string; price: number }[]>`
    select sku, size, price from catalog.prices where sku = any(${names as string[]})`;
  const pricesOf = Map.groupBy(prices, ({ sku }) => sku);
  let changed = 0;
  const records = products.map(({ sku, record }): FoundRecord => ({
    sku,
    kind: 'record',
    product: record,
    prices: (pricesOf.get(sku) ?? []).map(({ size, price }) => {
      const moves = random() < share;
      if (moves) changed += 1;
      return { size, price: moves ? price + 1 : price, entry: null };
    }),
  }));
  return { records, changed };
}

/** Throws where the mirror is not as this answer says: prices, history, metadata's time, state and ledger. */
export async function expectApplied(sql: Sql, { claim, records, changed }: Answer): Promise<void> {
  const rows = records.flatMap(({ sku, prices }) => prices.map((price) => ({ sku, ...price })));
  const skus = records.map(({ sku }) => sku);
  const [found] = await sql<Record<string, number>[]>`
    select
      (select count(*)::int from catalog.prices join unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.size)}::text[],
        ${rows.map((r) => r.price)}::int[]) as a(sku, size, price) using (sku, size, price)) as prices,
      (select count(*)::int from catalog.price_history where sku = any(${skus}) and observed_at = ${claim.askedAt}) as moves,
      (select count(*)::int from catalog.products where sku = any(${skus}) and refreshed_at = ${claim.askedAt}) as products,
      (select count(*)::int from catalog.skus where sku = any(${skus}) and priced_at = ${claim.askedAt} and asked_at = ${claim.askedAt}) as skus,
      (select count(*)::int from catalog_internal.due where sku = any(${skus}) and claim is null and held_until is null and due_at > now()) as due`;
  const n = skus.length;
  const wanted = { prices: rows.length, moves: changed, products: n, skus: n, due: n };
  if (JSON.stringify(found) !== JSON.stringify(wanted))
    throw new Error(`not as answered: ${JSON.stringify({ found, wanted })}`);
}
