import type { MetadataColumn } from '../declared/metadata.ts';
import type { Sql, Tx } from './db.ts';

export interface PriceMove {
  readonly sku: string;
  readonly size: string;
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
}

/** A field of a product that changed: a row of catalog.product_history. */
export interface FieldChange {
  readonly sku: string;
  readonly field: MetadataColumn | 'product';
  readonly oldValue: string | null;
  readonly newValue: string | null;
}

/** The field whose change gives every size key of the SKU another meaning (partner rule 4.2.2). */
const MEANING: MetadataColumn = 'size_map_size_type';

/** SKUs among the changes whose size keys mean something else now; a size type that is known for the first time corrects nothing. */
export function correctedMeanings(fields: readonly FieldChange[]): string[] {
  return fields.flatMap(({ sku, field, oldValue }) => (field === MEANING && oldValue !== null ? [sku] : []));
}

/*
 * Positions are in the order of commits because one transaction at a time writes history, from its first position to its
 * commit. Without that lock a position is a pair (xid8, id), read below pg_snapshot_xmin: then readers wait for the oldest
 * writer of the whole server, even an import into another database, and no position outlives a dump and restore. Answers
 * come a few times a second and hold the lock only for their commits: no waiting for one another could be measured.
 */

/**
 * Writes both histories and notifies listeners, as the last step of a transaction: the holder of the lock that this takes
 * waits for no other lock, so it cannot be part of a deadlock. `at` null: the transaction's time. A SKU's corrected size
 * type is written before the prices of the same answer, and marks them.
 */
export async function writeChanges(
  tx: Tx,
  moves: readonly PriceMove[],
  fields: readonly FieldChange[],
  at: Date | null,
): Promise<void> {
  if (moves.length + fields.length === 0) return;
  const corrected = correctedMeanings(fields);
  // Sent in one go. A chunk that is missing is made before the lock's holder needs it.
  await Promise.all([
    tx`select catalog_internal.lock_changes(), catalog_internal.add_history_chunks()`,
    fields.length > 0 &&
      tx`
      insert into catalog.product_history (sku, field, old_value, new_value, observed_at)
      select sku, field, old_value, new_value, coalesce(${at}::timestamptz, now())
      from unnest(${fields.map((f) => f.sku)}::text[], ${fields.map((f) => f.field)}::text[],
        ${fields.map((f) => f.oldValue)}::text[], ${fields.map((f) => f.newValue)}::text[]) as f(sku, field, old_value, new_value)
      order by sku, field`,
    moves.length > 0 &&
      tx`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at, size_type_changed)
      select sku, size, old_price, new_price, coalesce(${at}::timestamptz, now()), sku = any(${corrected}::text[])
      from unnest(${moves.map((m) => m.sku)}::text[], ${moves.map((m) => m.size)}::text[],
        ${moves.map((m) => m.oldPrice)}::int[], ${moves.map((m) => m.newPrice)}::int[]) as m(sku, size, old_price, new_price)
      order by sku, size`,
    tx`select pg_notify('catalog_changes', last_value::text) from catalog_internal.change_positions`,
  ]);
}

/** Deletes all prices of SKUs, and writes that into their history, as the last step of a transaction (see writeChanges). */
export async function dropPrices(tx: Tx, skus: readonly string[]): Promise<void> {
  await Promise.all([
    tx`select catalog_internal.lock_changes(), catalog_internal.add_history_chunks()`,
    tx`
    with gone as (delete from catalog.prices where sku = any(${skus as string[]}) returning sku, size, price),
    written as (
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at, size_type_changed)
      select sku, size, price, null, now(), false from gone where price is not null order by sku, size
      returning id
    )
    select pg_notify('catalog_changes', max(id)::text) from written having count(*) > 0`,
  ]);
}

/**
 * Notes which database this is, and sets sequences that are behind their rows to what the rows have, before anything is drawn from
 * them: logical replication and copies of tables leave them behind. Postgres warns of each.
 */
export async function mendSequences(sql: Sql): Promise<void> {
  await sql`select catalog_internal.mend_sequences()`;
}

/** Creates the history tables' next chunks before they are needed. */
export async function prepareHistory(sql: Sql): Promise<void> {
  await sql`select catalog_internal.add_history_chunks()`;
}

/**
 * Drops the chunks of price_history whose newest row is older than `keptMs`, oldest first, each in a transaction of its own;
 * returns how many. One that is being read at the moment, and all after it, wait for the next call.
 */
export async function dropOldHistory(sql: Sql, keptMs: number): Promise<number> {
  for (let dropped = 0; ; dropped += 1) {
    const [{ outcome }] = await sql<[{ outcome: string }]>`
      select catalog_internal.drop_history_chunk(${keptMs / 1000}) as outcome`;
    if (outcome !== 'dropped') return dropped;
  }
}

export interface PriceChange {
  readonly sku: string;
  readonly name: string | null;
  readonly size: string;
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
  readonly observedAt: Date;
}

/** The newest price changes; by the primary key, so the length of the history does not matter. */
export async function readRecentChanges(sql: Sql, most: number): Promise<PriceChange[]> {
  return await sql<PriceChange[]>`
    select h.sku, p.name, h.size, h.old_price as "oldPrice", h.new_price as "newPrice", h.observed_at as "observedAt"
    from (select * from catalog.price_history order by id desc limit ${most}) h
    left join catalog.products p using (sku)
    order by h.id desc`;
}
