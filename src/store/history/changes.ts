import type { MetadataColumn } from '../../declared/metadata.ts';
import { allSent, type Sql, type Tx, type Queryable } from '../connection/db.ts';
import { isLockNotAvailable, limitLockWaits } from '../connection/locks.ts';
import { LOCK_NOT_AVAILABLE, rejection } from '../connection/sql-errors.ts';
import { quarantine, type Quarantined } from '../quarantine.ts';

export interface PriceMove {
  readonly sku: string;
  readonly size: string;
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
}

/** A changed field of a product: a row of catalog.product_history. */
export interface FieldChange {
  readonly sku: string;
  readonly field: MetadataColumn | 'product';
  readonly oldValue: string | null;
  readonly newValue: string | null;
}

export interface StateChange {
  readonly sku: string;
  readonly oldState: string;
  readonly newState: string;
}

/** Values that become known: only the feed contains them, neither history. */
export interface FirstRecords {
  readonly prices: readonly { readonly sku: string; readonly size: string; readonly price: number }[];
  /** Columns with a value, and for each SKU `product`, the whole object as JSON text. */
  readonly fields: readonly {
    readonly sku: string;
    readonly field: FieldChange['field'];
    readonly value: string;
  }[];
}

const NO_RECORDS: FirstRecords = { prices: [], fields: [] };

/** What a transaction changed. `moves` and `fields` become history; all of it goes into the feed. */
export interface Changes {
  readonly moves: readonly PriceMove[];
  readonly fields: readonly FieldChange[];
  readonly states?: readonly StateChange[];
  readonly first?: FirstRecords;
}

/** The field whose change gives every size key of the SKU another meaning (partner rule 4.2.2). */
const MEANING: MetadataColumn = 'size_map_size_type';

/** Returns the SKUs whose size keys mean something else now. A size type that becomes known corrects nothing. */
export function correctedMeanings(fields: readonly FieldChange[]): string[] {
  return fields.flatMap(({ sku, field, oldValue }) => (field === MEANING && oldValue !== null ? [sku] : []));
}

/*
 * Positions follow the order of commits because only one transaction at a time writes history, from its first
 * position to its commit. Without that lock a position would be a pair (xid8, id), read below pg_snapshot_xmin:
 * readers would wait for the oldest writer of the whole server, even for an import into another database, and no
 * position would survive a dump and restore. Answers come a few times a second and hold the lock only for their
 * commits; no waiting for each other could be measured.
 */

/** Whether there is anything to write, and to notify listeners of. */
export const hasChanges = ({ moves, fields, states = [], first = NO_RECORDS }: Changes): boolean =>
  moves.length + fields.length + states.length + first.prices.length + first.fields.length > 0;

/**
 * Writes both histories and the rest of the feed, and notifies listeners, as the last step of a transaction: the
 * holder of the lock that this takes waits for no other lock, so it cannot be part of a deadlock. If `at` is null,
 * the transaction's time counts. A SKU's corrected size type is written before the prices of the same answer, and
 * marks them; the object `product` comes after the columns, because its text replaces its members (productAfter).
 */
export async function writeChanges(
  tx: Tx,
  { moves, fields, states = [], first = NO_RECORDS }: Changes,
  at: Date | null,
): Promise<void> {
  if (!hasChanges({ moves, fields, states, first })) return;
  const corrected = correctedMeanings(fields);
  // Sent together. Creates the chunk being written if it is missing; maintenance creates the next one.
  await allSent([
    tx`select catalog_internal.lock_changes(), catalog_internal.add_history_chunks()`,
    ...writeStateChanges(tx, states, at),
    ...writeFirstRecords(tx, first, at),
    fields.length > 0 &&
      tx`
      insert into catalog.product_history (sku, field, old_value, new_value, observed_at)
      select sku, field, old_value, new_value, coalesce(${at}::timestamptz, now())
      from unnest(${fields.map((f) => f.sku)}::text[], ${fields.map((f) => f.field)}::text[],
        ${fields.map((f) => f.oldValue)}::text[], ${fields.map((f) => f.newValue)}::text[]) as f(sku, field, old_value, new_value)
      order by sku, field = 'product', field`,
    moves.length > 0 &&
      tx`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at, size_type_changed)
      select sku, size, old_price, new_price, coalesce(${at}::timestamptz, now()), sku = any(${corrected}::text[])
      from unnest(${moves.map((m) => m.sku)}::text[], ${moves.map((m) => m.size)}::text[],
        ${moves.map((m) => m.oldPrice)}::int[], ${moves.map((m) => m.newPrice)}::int[]) as m(sku, size, old_price, new_price)
      order by sku, size`,
    tx`select catalog_internal.notify_changes()`,
  ]);
}

/** Returns one statement for each kind of state change; an answer rarely contains two. */
function writeStateChanges(tx: Tx, states: readonly StateChange[], at: Date | null) {
  const alike = Map.groupBy(states, ({ oldState, newState }) => `${oldState} ${newState}`);
  return [...alike.values()].map(
    (group) => tx`
    select catalog_internal.add_changes('sku', ${group.map(({ sku }) => sku).toSorted()}::text[], null, null, '{state}',
      ${group.slice(0, 1).map(({ oldState }) => oldState)}::text[], ${group.slice(0, 1).map(({ newState }) => newState)}::text[],
      coalesce(${at}::timestamptz, now()))`,
  );
}

function writeFirstRecords(tx: Tx, { prices, fields }: FirstRecords, at: Date | null) {
  return [
    fields.length > 0 &&
      tx`
      select catalog_internal.add_changes('product', ${fields.map(({ sku }) => sku)}::text[], null, null,
        ${fields.map(({ field }) => field)}::text[], null, ${fields.map(({ value }) => value)}::text[],
        coalesce(${at}::timestamptz, now()))`,
    prices.length > 0 &&
      tx`
      select catalog_internal.add_changes('price', ${prices.map(({ sku }) => sku)}::text[], ${prices.map(({ size }) => size)}::text[],
        ${prices.map(({ price }) => price)}::int[], null, null, null, coalesce(${at}::timestamptz, now()))`,
  ];
}

/** A SKU as it was before a transaction; null if it did not exist. */
export interface SkuBefore {
  readonly sku: string;
  readonly state: string | null;
  readonly priceSource: string | null;
  readonly listed: boolean | null;
}

export const absentSku = (sku: string): SkuBefore => ({
  sku,
  state: null,
  priceSource: null,
  listed: null,
});

/**
 * Writes what became of SKUs, and deletes all prices of the removed ones, with rows in their history, as the last
 * step of a transaction (see writeChanges).
 */
export async function writeSkuChanges(
  tx: Tx,
  before: readonly SkuBefore[],
  removed: readonly string[] = [],
): Promise<void> {
  const listed = before.map((sku) => (sku.listed === null ? null : Number(sku.listed)));
  const [, [{ changed }], dropped] = await allSent([
    tx`select catalog_internal.lock_changes(), catalog_internal.add_history_chunks()`,
    tx<[{ changed: number }]>`
      select catalog_internal.add_sku_changes(${before.map(({ sku }) => sku)}::text[], ${before.map(({ state }) => state)}::text[],
        ${before.map(({ priceSource }) => priceSource)}::text[], ${listed}::int[]::boolean[])::int as changed`,
    deletePrices(tx, removed),
  ]);
  if (changed + dropped.count > 0) await tx`select catalog_internal.notify_changes()`;
}

/**
 * Records which database this is, and advances sequences that are behind their rows, before anything is drawn from
 * them: logical replication and copies of tables leave sequences behind. Postgres warns about each.
 */
export async function repairSequencesAtStart(sql: Sql): Promise<void> {
  await sql`select catalog_internal.lock_changes(), catalog_internal.mend_sequences()`;
}

/**
 * Does the same for a running mirror, where writers of changes record the database. No session waits if no sequence
 * is behind.
 */
export async function repairSequences(sql: Sql): Promise<void> {
  await sql`select catalog_internal.mend_sequences()`;
}

export interface PriceChange {
  readonly sku: string;
  readonly name: string | null;
  readonly size: string;
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
  readonly observedAt: Date;
}

/** Reads the newest price changes, by primary key, so the length of the history does not matter. */
export async function readRecentChanges(sql: Sql, most: number): Promise<PriceChange[]> {
  return await sql<PriceChange[]>`
    select h.sku, p.name, h.size, h.old_price as "oldPrice", h.new_price as "newPrice", h.observed_at as "observedAt"
    from (select * from catalog.price_history order by id desc limit ${most}) h
    left join catalog.products p using (sku)
    order by h.id desc`;
}

/** Deletes all prices of SKUs, with rows in their history. */
const deletePrices = (tx: Queryable, skus: readonly string[]) => tx`
  with gone as (delete from catalog.prices where sku = any(${skus as string[]}) returning sku, size, price)
  insert into catalog.price_history (sku, size, old_price, new_price, observed_at, size_type_changed)
  select sku, size, price, null, now(), false from gone where price is not null order by sku, size`;

/** Clears the values of prices that cannot be deleted. No key changes, so no foreign key objects. */
const emptyPrices = (tx: Queryable, sku: string) => tx`
  with held as materialized (select sku, size, price from catalog.prices where sku = ${sku} and num_nonnulls(price, entry) > 0),
  emptied as (
    update catalog.prices p set price = null, entry = null, changed_at = now() from held h where p.sku = h.sku and p.size = h.size
  )
  insert into catalog.price_history (sku, size, old_price, new_price, observed_at, size_type_changed)
  select sku, size, price, null, now(), false from held where price is not null order by size`;

/** Returns why others' foreign key, trigger or lock prevents deleting prices; null if the error has another cause. */
const objection = (error: unknown): string | null => {
  const rejected = isLockNotAvailable(error)
    ? { state: LOCK_NOT_AVAILABLE, by: 'the lock of another session' }
    : rejection(error);
  return rejected === null ? null : `SQLSTATE ${rejected.state}, by ${rejected.by}`;
};

/** Whether deletePricesAround can work around this error. */
export const isObjected = (error: unknown): boolean => objection(error) !== null;

/**
 * Deletes the prices of SKUs. If a foreign key, trigger or lock of others prevents that for some, those prices stay,
 * without their numbers if possible, and their SKUs are put into quarantine. Call this as the last step of a
 * transaction, while holding the lock on changes (writeChanges).
 */
export async function deletePricesAround(tx: Tx, skus: readonly string[]): Promise<void> {
  // Checks that are deferred to the end of the transaction must fail here.
  await tx`set constraints all immediate`;
  // A seller may have locked one of the prices, and all writers of changes wait meanwhile.
  await limitLockWaits(tx);
  await quarantine(tx, 'store', await keptOf(tx, skus));
  await tx`select catalog_internal.notify_changes()`;
}

/** Deletes prices in halves, down to those that stay, and returns these for quarantine. */
async function keptOf(tx: Tx, skus: readonly string[]): Promise<Quarantined[]> {
  const problem = await attempt(tx, (inner) => deletePrices(inner, skus));
  const [first] = skus;
  if (problem === null || first === undefined) return [];
  if (skus.length > 1) {
    const half = skus.length >> 1;
    return [...(await keptOf(tx, skus.slice(0, half))), ...(await keptOf(tx, skus.slice(half)))];
  }
  await attempt(tx, (inner) => emptyPrices(inner, first));
  const sample = `Postgres refuses to delete the prices of a removed SKU: ${problem}`;
  return [{ reason: 'not-deleted', sku: first, sample }];
}

/** Runs `work`. If others prevent it, undoes it and returns why; otherwise null. */
async function attempt(tx: Tx, work: (inner: Tx) => Promise<unknown>): Promise<string | null> {
  // The driver never releases its own savepoints, and thousands of nested ones are slow.
  await tx`savepoint attempt`;
  const problem = await tx.savepoint(work).then(
    () => null,
    (error: unknown) => {
      const objected = objection(error);
      if (objected === null) throw error;
      return objected;
    },
  );
  await tx`release savepoint attempt`;
  return problem;
}
