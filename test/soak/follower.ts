import type { Sql } from '../../src/store/connection/db.ts';

interface Change {
  readonly position: string;
  readonly kind: 'sku' | 'price' | 'product';
  readonly sku: string;
  readonly size: string | null;
  readonly old_price: number | null;
  readonly new_price: number | null;
}

const AT_ONCE = 1000;
const EVERY_MS = 1000;

/**
 * Follows catalog.changes as a seller's program does: from a copy of all prices and its position, change by
 * change, whatever happens to its connection. Counts changes that come twice, out of order, or do not follow from
 * earlier ones.
 */
export class Follower {
  readonly faults: string[] = [];
  seen = 0;
  readonly sql: Sql;
  readonly #prices = new Map<string, number>();
  readonly #stopping = new AbortController();
  #position = 0n;
  #from = 0n;
  #following: Promise<void> = Promise.resolve();

  constructor(sql: Sql) {
    this.sql = sql;
  }

  /** Copies the prices with their position, and starts to follow. */
  async start(): Promise<void> {
    const [{ position, prices }] = await this.sql<[{ position: string; prices: [string, number][] | null }]>`
      select catalog.changes_position()::text as position,
        (select json_agg(json_build_array(sku || ' ' || size, price)) from catalog.prices where price is not null) as prices`;
    for (const [key, price] of prices ?? []) this.#prices.set(key, price);
    this.#position = BigInt(position);
    this.#from = this.#position;
    this.#following = this.#follow();
  }

  async #follow(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const taken = await this.#take().catch(() => 0);
      if (taken < AT_ONCE)
        await new Promise((resolve) => {
          setTimeout(resolve, EVERY_MS);
        });
    }
  }

  async #take(): Promise<number> {
    const changes = await this.sql<Change[]>`
      select position::text as position, kind, sku, size, old_price, new_price
      from catalog.changes(${String(this.#position)}::bigint, ${AT_ONCE})`;
    for (const change of changes) this.#apply(change);
    return changes.length;
  }

  #apply(change: Change): void {
    const position = BigInt(change.position);
    if (position <= this.#position) this.#fault(`position ${change.position} after ${this.#position}`);
    this.#position = position;
    this.seen += 1;
    if (change.kind !== 'price') return;
    const key = `${change.sku} ${change.size ?? ''}`;
    const before = this.#prices.get(key) ?? null;
    if (before !== change.old_price)
      this.#fault(
        `${key} was ${String(before)}, and change ${change.position} says ${String(change.old_price)}`,
      );
    if (change.new_price === null) this.#prices.delete(key);
    else this.#prices.set(key, change.new_price);
  }

  #fault(text: string): void {
    if (this.faults.length < 5) this.faults.push(text);
  }

  /** Stops following once everything has arrived, and compares it with what there is. */
  async end(): Promise<void> {
    this.#stopping.abort();
    await this.#following;
    while ((await this.#take()) > 0);
    const [{ written }] = await this.sql<[{ written: number }]>`
      with start as (select catalog_internal.id_before(${String(this.#from)}::bigint) as id)
      select ((select count(*) from catalog.price_history h, start s where h.id > s.id)
        + (select count(*) from catalog.product_history h, start s where h.id > s.id)
        + (select coalesce(sum(b.last_id - b.id + 1), 0) from catalog_internal.change_batches b, start s where b.id > s.id))::int as written`;
    if (written !== this.seen) this.#fault(`${written} changes were written, and ${this.seen} came`);
    const rows = await this.sql<{ key: string; price: number }[]>`
      select sku || ' ' || size as key, price from catalog.prices where price is not null`;
    const now = new Map(rows.map(({ key, price }) => [key, price]));
    for (const key of new Set([...now.keys(), ...this.#prices.keys()]))
      if (now.get(key) !== this.#prices.get(key))
        this.#fault(`${key} is ${String(now.get(key))}, by its changes ${String(this.#prices.get(key))}`);
  }
}
