import { type Applied, applyAnswer } from '../../src/store/answer/apply.ts';
import { MoveCounts } from '../../src/store/answer/move-counts.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import type { Claim } from '../../src/store/ledger/due.ts';
import { allDue, claimAll, found, knownSkus, LEASE_MS, mark, REFRESH, type TestStore } from './support.ts';

export const USUAL = { 40: 4000, 41: 4100, 42: 4300, 43: 4200 };
export const POISON = { ...USUAL, 41: 41_000 };
/** A usual price move. */
export const MOVED = { ...USUAL, 41: 4150 };

/** Returns one daemon's counts; its clock stands still unless one is given. */
export const daemon = (monotonic = () => 0) => new MoveCounts({ monotonic });

/** Returns what tests of doubts do with a store. */
export function doubting(store: TestStore) {
  async function answer(results: readonly SkuResult[], moves = daemon()): Promise<Applied> {
    const { sql } = store;
    await mark(
      sql,
      results.map(({ sku }) => sku),
    );
    await sql`update catalog_internal.due set held_until = null where sku = any(${results.map(({ sku }) => sku)})`;
    return await applyAnswer(sql, await claimAll(sql), results, REFRESH, {
      observers: { ...NO_OBSERVERS, moves },
    });
  }

  async function passMinutes(minutes: number): Promise<void> {
    const { sql } = store;
    const secs = minutes * 60;
    await sql`
      update catalog_internal.due set doubted_at = doubted_at - make_interval(secs => ${secs}), due_at = due_at - make_interval(secs => ${secs}),
        held_until = held_until - make_interval(secs => ${secs})`;
    await sql`
      update catalog.skus set asked_at = asked_at - make_interval(secs => ${secs}), priced_at = priced_at - make_interval(secs => ${secs})`;
  }

  /** Returns the doubt of a SKU as readers see it, and whether any of its prices may be acted on. */
  async function seen(sku: string) {
    const [row] = await store.sql`
      select t.doubt, (select bool_or(p.actionable) from catalog.current_prices p where p.sku = t.sku) as actionable,
        (select p.price from catalog.current_prices p where p.sku = t.sku and size = '41') as price
      from catalog.sku_trust t where t.sku = ${sku}`;
    return row;
  }

  async function priced(...skus: readonly string[]): Promise<void> {
    const { sql } = store;
    await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now()`;
    await knownSkus(sql, skus);
    await answer(skus.map((sku) => found(sku, USUAL)));
  }

  return { answer, passMinutes, seen, priced };
}

/** Claims what is not due yet, as spare slots do. */
export async function claimEarly(sql: Sql): Promise<Claim> {
  const quotas = allDue(10).map((quota) => ({ ...quota, earlySeconds: 30 * 86_400 }));
  const claim = await claimDue(sql, { quotas }, LEASE_MS);
  if (claim === null) throw new Error('nothing is to be had early');
  return claim;
}

/** Attaches a seller's trigger to prices that records what current_prices says of each price when it is written. */
export async function hearPrices(sql: Sql) {
  await sql.unsafe(`
    create table public.heard (sku text, size text, price int, actionable boolean);
    create function public.hear() returns trigger language plpgsql as $$
    begin
      insert into public.heard select sku, size, price, actionable from catalog.current_prices where sku = new.sku and size = new.size;
      return null;
    end $$;
    create trigger hear after insert or update on catalog.prices for each row execute function public.hear()`);
  return {
    rows: async () => await sql`select sku, size, price, actionable from public.heard order by sku, size`,
    async [Symbol.asyncDispose]() {
      await sql.unsafe(
        'drop trigger hear on catalog.prices; drop function public.hear; drop table public.heard',
      );
    },
  };
}
