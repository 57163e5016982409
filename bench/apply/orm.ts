import { and, eq, getTableColumns, inArray, or, sql as raw } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { priceHistory, prices, products, skus } from '../../src/store/schema/catalog.ts';
import { due } from '../../src/store/schema/ledger.ts';
import { type Answer, NEXT } from './answer.ts';

/** All columns but those named, set to what was to be inserted. */
function excluded(table: PgTable, ...but: readonly string[]) {
  const columns = Object.entries(getTableColumns(table)).filter(([name]) => !but.includes(name));
  return Object.fromEntries(
    columns.map(([name, { name: column }]) => [name, raw.raw(`excluded."${column}"`)]),
  );
}

/** Drizzle's bulk upsert with its own tables; what has moved is found by reading the old prices first. */
export async function ormUpsert(orm: PostgresJsDatabase, { claim, records }: Answer): Promise<void> {
  const at = claim.askedAt;
  const names = records.map(({ sku }) => sku);
  await orm.transaction(async (tx) => {
    const old = await tx.select().from(prices).where(inArray(prices.sku, names));
    const before = new Map(old.map(({ sku, size, price }) => [`${sku}\t${size}`, price]));
    const rows = records.flatMap((record) =>
      record.prices.map((price) => ({ ...price, sku: record.sku, changedAt: at })),
    );
    const moves = rows
      .filter(({ sku, size, price }) => before.get(`${sku}\t${size}`) !== price)
      .map(({ sku, size, price }) => ({
        sku,
        size,
        oldPrice: before.get(`${sku}\t${size}`) ?? null,
        newPrice: price,
        observedAt: at,
      }));
    await tx
      .insert(prices)
      .values(rows)
      .onConflictDoUpdate({ target: [prices.sku, prices.size], set: excluded(prices, 'changedAt') });
    if (moves.length > 0) await tx.insert(priceHistory).values(moves);
    const answered = new Set(rows.map(({ sku, size }) => `${sku}\t${size}`));
    const gone = old.filter(({ sku, size }) => !answered.has(`${sku}\t${size}`));
    if (gone.length > 0)
      await tx
        .delete(prices)
        .where(or(...gone.map(({ sku, size }) => and(eq(prices.sku, sku), eq(prices.size, size)))));
    await tx
      .insert(products)
      .values(
        records.map(({ sku, product }) => ({
          ...product,
          sku,
          product: JSON.parse(product.product) as unknown,
          refreshedAt: at,
          changedAt: at,
        })),
      )
      .onConflictDoUpdate({ target: products.sku, set: excluded(products, 'changedAt') });
    await tx.update(skus).set({ state: 'priced', pricedAt: at, askedAt: at }).where(inArray(skus.sku, names));
    const seconds = raw`case when ${due.live} then ${NEXT.liveMs / 1000}::float8 else ${NEXT.snapshotMs / 1000}::float8 end`;
    const reason = raw`case when ${due.live} then 'live' else 'sweep' end`;
    await tx
      .update(due)
      .set({
        claim: null,
        heldUntil: null,
        deferrals: 0,
        failures: 0,
        dueAt: raw`now() + make_interval(secs => ${seconds})`,
        reason,
        lane: raw`catalog_internal.lane_of(${reason})`,
      })
      .where(inArray(due.sku, names));
  });
}
