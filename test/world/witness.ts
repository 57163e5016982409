import type { ISql } from 'postgres';
import type { Sql } from '../../src/store/connection/db.ts';
import type { Answers } from './answers.ts';
import type { Market } from './market.ts';

const PRODUCT = ['name', 'model', 'brand', 'gender_size', 'size_type', 'category'] as const;

interface Change {
  readonly position: string;
  readonly kind: 'sku' | 'price' | 'product';
  readonly sku: string;
  readonly size: string;
  readonly old_price: number | null;
  readonly new_price: number | null;
  readonly field: string;
  readonly old_value: string | null;
  readonly new_value: string | null;
}

/** A copy of the tables built from the change feed alone, as values by the name of their cell. */
export class Follower {
  #position: string | null = null;
  readonly cells = new Map<string, string>();
  readonly faults: string[] = [];
  compared = 0;

  /** Reads new changes, and compares the copy with the tables in the same database snapshot. */
  async compare(sql: Sql): Promise<void> {
    await sql.begin('isolation level repeatable read', async (tx) => {
      const [first] = this.#position === null ? await tx`select catalog.changes_oldest() as position` : [];
      let position = this.#position ?? String(first?.['position']);
      for (;;) {
        const changes = await tx<
          Change[]
        >`select position::text, kind, sku, size, old_price, new_price, field, old_value, new_value
          from catalog.changes(${position}, 5000)`;
        for (const change of changes) this.#apply(change);
        position = changes.at(-1)?.position ?? position;
        if (changes.length < 5000) break;
      }
      const tables = await readTables(tx);
      this.#position = position;
      this.compared += 1;
      for (const key of new Set([...tables.keys(), ...this.cells.keys()]))
        if (tables.get(key) !== this.cells.get(key))
          this.#fault(
            `the feed has ${key} as ${String(this.cells.get(key))}, the table as ${String(tables.get(key))}`,
          );
    });
  }

  #fault(text: string): void {
    if (this.faults.length < 20) this.faults.push(text);
  }

  #apply({ kind, sku, size, field, old_price, new_price, old_value, new_value }: Change): void {
    if (field === 'product') return;
    const key = kind === 'price' ? `price ${sku} ${size}` : `${kind} ${sku} ${field}`;
    const [before, after] = kind === 'price' ? [old_price, new_price] : [old_value, new_value];
    const held = this.cells.get(key) ?? null;
    if (held !== (before === null ? null : String(before)))
      this.#fault(
        `a change of ${key} begins with ${String(before)}, and the one before ended with ${String(held)}`,
      );
    if (after === null) this.cells.delete(key);
    else this.cells.set(key, String(after));
  }
}

async function readTables(sql: ISql): Promise<Map<string, string>> {
  const cells = new Map<string, string>();
  const put = (key: string, value: string | number | boolean | null | undefined) =>
    value !== null && value !== undefined && cells.set(key, String(value));
  for (const { sku, size, price } of await sql`select sku, size, price from catalog.prices`)
    put(`price ${sku} ${size}`, price);
  for (const row of await sql`select sku, state, price_source, in_manifest from catalog.skus`)
    for (const field of ['state', 'price_source', 'in_manifest'])
      put(`sku ${row['sku']} ${field}`, row[field]);
  for (const row of await sql`select * from catalog.products`)
    for (const field of [...PRODUCT, 'size_map_size_type']) put(`product ${row['sku']} ${field}`, row[field]);
  return cells;
}

/** Returns a line for each shown price that was never answered, and for each state that was never reported. */
export async function unanswered(sql: Sql, partner: Answers): Promise<string[]> {
  const faults: string[] = [];
  for (const {
    sku,
    size,
    price,
  } of await sql`select sku, size, price from catalog.current_prices where price is not null`)
    if (partner.answered.get(`${sku}\0${size}`)?.has(Number(price)) !== true)
      faults.push(`${sku} ${size} is shown for ${price}, which was never answered`);
  for (const {
    sku,
    state,
  } of await sql`select sku, state from catalog.skus where state in ('not_found', 'removed')`)
    if (partner.said.get(String(sku))?.has(state === 'removed' ? 'removed' : '0009') !== true)
      faults.push(`${sku} is ${state}, which was never said`);
  return faults;
}

/** Counts of the actionable prices and the right ones among them, and the sum of their p_right (`claimed`). */
export interface Record_ {
  shown: number;
  right: number;
  claimed: number;
  readonly wrong: Map<string, string>;
}

/** Compares actionable prices with what the partner would answer now, and adds the result to the record. */
export async function judge(sql: Sql, market: Market, record: Record_): Promise<void> {
  const before = sizesOfAll(market);
  const rows =
    await sql`select sku, size, price, p_right, price_source from catalog.current_prices where actionable`;
  const after = sizesOfAll(market);
  for (const { sku, size, price, p_right: claim, price_source: source } of rows) {
    const truth = [before.get(`${sku}\0${size}`), after.get(`${sku}\0${size}`)];
    record.shown += 1;
    record.claimed += Number(claim);
    if (truth.includes(Number(price))) record.right += 1;
    else
      record.wrong.set(
        `${sku} ${size}`,
        `${price} (${source}, ${Number(claim).toFixed(3)}), true ${truth.join(' ')}`,
      );
  }
}

function sizesOfAll(market: Market): Map<string, number> {
  const all = new Map<string, number>();
  for (const item of market.items.values()) {
    if (!item.known) continue;
    for (const [size, price] of market.sizesNow(item)) all.set(`${item.sku}\0${size}`, price);
  }
  return all;
}

/** Returns a line for each SKU that differs from the market; of never priced ones, only the manifest's data counts. */
export async function differences(sql: Sql, partner: Answers): Promise<string[]> {
  const { market } = partner;
  const cells = await readTables(sql);
  const known = new Map(
    (await sql`select sku, state, price_source, in_manifest from catalog.skus`).map((row) => [
      String(row['sku']),
      row,
    ]),
  );
  const trust = new Map(
    (
      await sql`select sku, doubt, actionable, owed_reason, failures, deferrals, next_look_at::text from catalog.sku_trust`
    ).map((row) => [String(row['sku']), row]),
  );
  const lines = market.builds.at(-1)?.lines ?? new Map();
  const sizesIn = Map.groupBy(
    [...cells.keys()].filter((key) => key.startsWith('price ')),
    (key) => key.split(' ')[1] ?? '',
  );
  const found: string[] = [];
  for (const item of market.items.values()) {
    const { sku } = item;
    const row = known.get(sku);
    const line = lines.get(sku);
    if (row === undefined && line === undefined) continue;
    const wrong: string[] = [];
    const check = (what: string, is: unknown, should: unknown) =>
      is !== should && wrong.push(`${what} is ${String(is)}, should be ${String(should)}`);
    check('in_manifest', row?.['in_manifest'] ?? false, line !== undefined);
    if (line !== undefined) check('price_source', row?.['price_source'], line.source);
    if (!item.neverPriced) {
      const prices = item.known ? market.sizesNow(item) : new Map<string, number>();
      if (item.known) check('state', row?.['state'], 'priced');
      else if (row?.['state'] !== 'removed') check('state', row?.['state'], 'not_found');
      for (const size of new Set([
        ...prices.keys(),
        ...(sizesIn.get(sku) ?? []).map((key) => key.split(' ')[2] ?? ''),
      ]))
        check(`price of ${size}`, cells.get(`price ${sku} ${size}`), prices.get(size)?.toString());
      if (item.known) {
        for (const field of PRODUCT) check(field, cells.get(`product ${sku} ${field}`), item.product[field]);
        check('size_map.size_type', cells.get(`product ${sku} size_map_size_type`), item.sizeType);
      }
    }
    if (wrong.length > 0) found.push(`${sku}: ${wrong.join('; ')} ${JSON.stringify(trust.get(sku) ?? null)}`);
  }
  return found;
}
