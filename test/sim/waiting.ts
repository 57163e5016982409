import type { Sql } from '../../src/store/connection/db.ts';

/** What `catalog.refresh_begin` returns and `catalog.refresh_wait` takes. */
interface Ticket {
  readonly skus: readonly string[];
}

/** A seller in `catalog.refresh_now`. */
interface Caller {
  /** When it was called, by the world's clock. */
  readonly since: number;
  ticket: Ticket;
}

/** The code with which callers beyond the limit are refused. */
const REFUSED = 'CM004';

/** Sellers that have SKUs refreshed and wait for the answers like `catalog.refresh_now`, but without its sleep. */
export class Callers {
  #waiting: Caller[] = [];

  /** Adds a caller. Returns whether it has something to wait for. */
  async call(sql: Sql, skus: readonly string[], at: number): Promise<boolean> {
    try {
      const [row] = await sql<[{ ticket: Ticket | null }]>`
        select catalog.refresh_begin(${skus as string[]}, '0', null) as ticket`;
      if (row.ticket !== null) this.#waiting.push({ since: at, ticket: row.ticket });
      return row.ticket !== null;
    } catch (error) {
      if ((error as { code?: unknown }).code === REFUSED) return false;
      throw error;
    }
  }

  /** Returns the SKUs answered meanwhile, each with the moment after which the partner was to be asked. */
  async answered(sql: Sql): Promise<[string, number][]> {
    const all: [string, number][] = [];
    for (const caller of this.#waiting) {
      const [row] = await sql<[{ ticket: Ticket }]>`
        select ticket from catalog.refresh_wait(${sql.json(caller.ticket as never)})`;
      const left = new Set(row.ticket.skus);
      all.push(
        ...caller.ticket.skus
          .filter((sku) => !left.has(sku))
          .map((sku): [string, number] => [sku, caller.since]),
      );
      caller.ticket = row.ticket;
    }
    this.#waiting = this.#waiting.filter(({ ticket }) => ticket.skus.length > 0);
    return all;
  }

  /** Ends all sessions. */
  leave(): void {
    this.#waiting = [];
  }
}
