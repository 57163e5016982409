import type { Sql } from '../../src/store/connection/db.ts';
import { type PriceMove, writeChanges } from '../../src/store/history/changes.ts';
import type { Change } from '../../src/store/history/feed.ts';

/** Returns a change, of a price by default. */
export const changeAt = (position: bigint, more: Partial<Change> = {}): Change => ({
  position,
  kind: 'price',
  sku: 'A',
  size: '9',
  oldPrice: 100,
  newPrice: 90,
  field: null,
  oldValue: null,
  newValue: null,
  meaningChanged: false,
  observedAt: new Date('2026-11-20T10:00:00.123Z'),
  copy: false,
  ...more,
});

/** Commits this many price changes in one transaction, with their index as the size. */
export async function movePrices(sql: Sql, count: number, sku = 'A'): Promise<void> {
  const moves: PriceMove[] = Array.from({ length: count }, (_, n) => ({
    sku,
    size: String(n),
    oldPrice: 1,
    newPrice: 2,
  }));
  await sql.begin((tx) => writeChanges(tx, { moves, fields: [] }, null));
}

/** Returns the positions of all changes after a position, as the feed itself returns them. */
export async function positionsAfter(sql: Sql, after: bigint): Promise<number[]> {
  const rows = await sql<{ position: string }[]>`
    select position from catalog.changes(${String(after)}::bigint, 1000000)`;
  return rows.map(({ position }) => Number(position));
}

export async function positionNow(sql: Sql): Promise<bigint> {
  const [row] = await sql<[{ position: string }]>`select catalog.changes_position() as position`;
  return BigInt(row.position);
}
