/*
 * A follower in TypeScript: prints each change once, as soon as it is committed, across restarts of either side.
 *
 *   DATABASE_URL=postgres://… node examples/consumer.ts     (Node.js 22.18 or newer; node_modules/.bin/node is one)
 *
 * Its role is a member of catalog_reader and owns the schema shop (an administrator: create schema shop authorization …).
 */
import { realpathSync } from 'node:fs';
import postgres, { type Sql, type TransactionSql } from 'postgres';

/** A row of catalog.changes(). */
export interface Change {
  /** bigint, as text. */
  readonly position: string;
  readonly kind: 'sku' | 'price' | 'product';
  readonly sku: string;
  /** Price changes: whole baht; null: the size did not exist, or no longer exists. */
  readonly size: string | null;
  readonly old_price: number | null;
  readonly new_price: number | null;
  /** Product changes: the column of catalog.products. SKU changes: state, price_source or in_manifest. */
  readonly field: string | null;
  readonly old_value: string | null;
  readonly new_value: string | null;
  /** The size keys of the SKU have a new meaning from here on: not a market move. */
  readonly meaning_changed: boolean;
  readonly observed_at: Date;
}

/** Applies a change. Statements on `tx` commit together with the position, so they take effect exactly once. */
export type Apply = (change: Change, tx: TransactionSql) => Promise<void> | void;

const AT_ONCE = 1000;
/** A NOTIFY only reduces latency: changes missed while the connection is down are found by polling. */
const ASK_EVERY_MS = 60_000;

/** Follows the changes from the saved position, or from now on, until aborted. */
export async function follow(sql: Sql, apply: Apply, stop: AbortSignal): Promise<void> {
  // CREATE SCHEMA IF NOT EXISTS needs CREATE on the database even where the schema is there.
  await sql`do $$ begin if to_regnamespace('shop') is null then create schema shop; end if; end $$`;
  await sql`create table if not exists shop.position (only_one boolean primary key default true check (only_one), position bigint not null)`;
  await sql`insert into shop.position (position) select catalog.changes_position() on conflict do nothing`;
  let wake = Promise.withResolvers<void>();
  // Also called after each reconnect, when something may have been missed.
  const listening = await sql.listen(
    'catalog_changes',
    () => wake.resolve(),
    () => wake.resolve(),
  );
  stop.addEventListener('abort', () => wake.resolve());
  while (!stop.aborted) {
    wake = Promise.withResolvers<void>();
    while (!stop.aborted && (await takeNext(sql, apply)) > 0);
    if (stop.aborted) break;
    const timer = setTimeout(() => wake.resolve(), ASK_EVERY_MS);
    await wake.promise;
    clearTimeout(timer);
  }
  await listening.unlisten();
}

/** Applies the next changes and saves the position in one transaction; returns how many. */
async function takeNext(sql: Sql, apply: Apply): Promise<number> {
  return await sql.begin(async (tx) => {
    // Locked, so that concurrent followers wait for each other.
    const [mine] = await tx<[{ position: string }]>`select position from shop.position for update`;
    const changes = await tx<Change[]>`select * from catalog.changes(${mine.position}, ${AT_ONCE})`;
    for (const change of changes) await apply(change, tx);
    const last = changes.at(-1);
    if (last !== undefined) await tx`update shop.position set position = ${last.position}`;
    return changes.length;
  });
}

// Node.js before 24.2 does not say in import.meta which module is the main one.
if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) {
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  process.once('SIGTERM', () => stop.abort());
  const sql = postgres(process.env['DATABASE_URL'] ?? 'postgres://localhost/postgres', {
    onnotice: () => {},
  });
  await follow(sql, (change) => void process.stdout.write(`${JSON.stringify(change)}\n`), stop.signal);
  await sql.end();
}
