import { claimDue } from '../../src/store/ledger/claim.ts';
import { PROMISED } from '../../src/store/ledger/due.ts';
import { answerAsked, followWatchlist, found, knownSkus, LEASE_MS, type TestStore } from './support.ts';

/** Returns what tests of promises do with a store. */
export function promising(store: TestStore) {
  /** Prices SKUs just now, with nothing due for hours. */
  async function priced(...skus: string[]): Promise<void> {
    await knownSkus(store.sql, skus);
    await answerAsked(store.sql, ...skus.map((sku) => found(sku, { 42: 100 })));
  }

  async function promise(maxAge: string, ...skus: string[]): Promise<void> {
    await store.sql`
    insert into catalog.watchlist (sku, max_age) select sku, ${maxAge}::interval from unnest(${skus}::text[]) as s(sku)
    on conflict (sku) do update set max_age = excluded.max_age`;
    await followWatchlist(store.sql);
  }

  /** Claims SKUs for their promise, at most so many, and returns them. */
  async function claimPromised(count = 100, live = false): Promise<string[]> {
    const quotas = [{ lane: PROMISED, live, count, earlySeconds: 0 } as const];
    const claim = await claimDue(store.sql, { quotas }, LEASE_MS);
    return (claim?.skus ?? []).map(({ sku }) => sku).toSorted();
  }

  /** Lets time pass for everything that promises depend on. */
  async function passSeconds(seconds: number): Promise<void> {
    const ago = store.sql`make_interval(secs => ${seconds})`;
    await store.sql`update catalog_internal.due set promised_at = promised_at - ${ago}, promised_by = promised_by - ${ago}`;
    await store.sql`update catalog.skus set asked_at = asked_at - ${ago}, priced_at = priced_at - ${ago}`;
    await store.sql`update catalog_internal.watched set promised_since = promised_since - ${ago}`;
  }

  /** Returns in how many seconds a SKU comes first. */
  async function comesIn(sku: string): Promise<number | null> {
    const [row] = await store.sql<{ seconds: number | null }[]>`
    select extract(epoch from promised_at - clock_timestamp())::float8 as seconds from catalog_internal.due where sku = ${sku}`;
    return row?.seconds ?? null;
  }

  async function promised() {
    return await store.sql<
      { sku: string; feasible: boolean; kept_share: number | null; because: string | null }[]
    >`select sku, feasible, kept_share, because from catalog.promises order by sku`;
  }

  const one = async (sku: string) => (await promised()).find((row) => row.sku === sku);

  return { priced, promise, claimPromised, passSeconds, comesIn, promised, one };
}
