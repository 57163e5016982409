import type { Sql } from '../../src/store/connection/db.ts';
import type { Draw } from './faults.ts';

/** The code with which positions are refused that are no longer kept, or that belong to another history. */
const TOLD = 'CM001';

interface Change {
  readonly position: string;
  readonly kind: string;
  readonly sku: string;
  readonly size: string | null;
  readonly price: number | null;
  readonly field: string | null;
  readonly value: string | null;
}

/** A seller's program that follows `catalog.changes` with a copy of SKUs and prices, at its leisure. */
export class Follower {
  /** Null: it starts with a first copy. */
  #position: bigint | null = null;
  #copy = new Map<string, number | string>();
  readonly #draw: Draw;
  readonly #note: (what: string) => void;

  constructor(draw: Draw, note: (what: string) => void) {
    this.#draw = draw;
    this.#note = note;
  }

  /** Reads on for a while. */
  async follow(sql: Sql): Promise<void> {
    for (let n = 1 + this.#draw(3); n > 0; n -= 1) if (!(await this.#readOn(sql, 1 + this.#draw(40)))) return;
  }

  /**
   * Reads to the end, where its copy must contain exactly the SKUs and prices of the mirror.
   *
   * @throws Error if it has missed a change without being told
   */
  async catchUp(sql: Sql): Promise<void> {
    // Starts over once if it is told to.
    for (let n = 0; n < 2; n += 1) while (await this.#readOn(sql, 1000));
    const rows = await sql<{ key: string; price: number | string }[]>`
      select json_build_array('price', sku, size)::text as key, to_json(price) as price from catalog.prices where price is not null
      union all
      select json_build_array('sku', sku, field)::text, to_json(value) from catalog.skus
      cross join lateral (values ('state', state), ('price_source', price_source), ('in_manifest', in_manifest::text)) f(field, value)
      where value is not null`;
    const mirror = new Map(
      rows.map(({ key, price }) => [keyOf(JSON.parse(key) as [string, string, string]), price]),
    );
    const differing = [...new Set([...mirror.keys(), ...this.#copy.keys()])].filter(
      (key) => mirror.get(key) !== this.#copy.get(key),
    );
    if (differing.length > 0)
      throw new Error(
        `who follows from ${this.#position} on differs in ${differing.map((key) => `${key}: ${this.#copy.get(key)} for ${mirror.get(key)}`).join(', ')}`,
      );
    this.#note('a follower is up to date');
  }

  /** Reads one batch. Returns whether there may be more. */
  async #readOn(sql: Sql, most: number): Promise<boolean> {
    if (this.#position === null) {
      await this.#begin(sql);
      return true;
    }
    const after = this.#position;
    const dropped = await this.#dropped(sql);
    try {
      const rows = await sql<Change[]>`
        select "position"::text, kind, sku, size, new_price as price, field, new_value as value from catalog.changes(${String(after)}::bigint, ${most})`;
      if (after < dropped) throw new Error(`${after} is behind ${dropped}, and nobody says so`);
      for (const row of rows) this.#apply(row);
      return rows.length === most;
    } catch (error) {
      if ((error as { code?: unknown }).code !== TOLD) throw error;
      this.#note(
        after < dropped ? 'a follower is told that it is late' : 'a follower is told of another history',
      );
      this.#position = null;
      return true;
    }
  }

  async #begin(sql: Sql): Promise<void> {
    const [here] = await sql<[{ position: string }]>`select catalog.changes_position()::text as position`;
    const rows = await sql<Change[]>`
      select "position"::text, kind, sku, size, new_price as price, field, new_value as value from catalog.changes_snapshot('', 10000)`;
    this.#copy = new Map();
    for (const row of rows) this.#keep(row);
    this.#position = BigInt(rows[0]?.position ?? here.position);
  }

  #apply(row: Change): void {
    const { position } = row;
    if (this.#position !== null && BigInt(position) <= this.#position)
      throw new Error(`position ${position} comes after ${this.#position}`);
    this.#position = BigInt(position);
    this.#keep(row);
  }

  /** Applies a change of a price, or of the SKU itself. */
  #keep({ kind, sku, size, price, field, value }: Change): void {
    if (kind !== 'price' && kind !== 'sku') return;
    const key = keyOf([kind, sku, (kind === 'price' ? size : field) ?? '']);
    const now = kind === 'price' ? price : value;
    if (now === null) this.#copy.delete(key);
    else this.#copy.set(key, now);
  }

  async #dropped(sql: Sql): Promise<bigint> {
    const [row] = await sql<[{ at: string }]>`
      select catalog_internal.position_of(last_value)::text as at from catalog_internal.dropped_positions`;
    return BigInt(row.at);
  }
}

const keyOf = (of: readonly [kind: string, sku: string, size: string]): string => JSON.stringify(of);
