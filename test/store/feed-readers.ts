import type { Sql } from '../../src/store/connection/db.ts';
import { type ChangeRow, MirrorCopy } from '../support/copy.ts';

/* Followers that have only the feed: one from a position on, and one that starts with a copy in pieces. */

export async function changesAfter(sql: Sql, position: string, most: number): Promise<ChangeRow[]> {
  return await sql<ChangeRow[]>`select * from catalog.changes(${position}, ${most})`;
}

/**
 * A reader with a copy of its own. Until it has passed position `until`, its copy may already contain what it
 * reads.
 */
export class Reader {
  readonly copy = new MirrorCopy();
  /** What it was given but should not have been. */
  readonly faults: string[] = [];
  position: string;
  until = '-1';
  readonly #sql: Sql;

  constructor(sql: Sql, position: string) {
    this.#sql = sql;
    this.position = position;
  }

  async readAll(most: number): Promise<void> {
    for (;;) {
      const changes = await changesAfter(this.#sql, this.position, most);
      if (changes.length > most) this.faults.push(`${changes.length} changes, and ${most} were asked for`);
      for (const change of changes) {
        if (BigInt(change.position) <= BigInt(this.position))
          this.faults.push(`${change.position} after ${this.position}`);
        this.copy.apply([change], BigInt(change.position) <= BigInt(this.until));
        this.position = change.position;
      }
      if (changes.length === 0) return;
    }
  }
}

/** A copy that is made in pieces; what happens between them is read again. */
export class Copier {
  reader: Reader | null = null;
  isWhole = false;
  #after = '';
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async copyOn(skus: number): Promise<void> {
    if (this.isWhole) return;
    const piece = await this.#sql<
      ChangeRow[]
    >`select * from catalog.changes_snapshot(${this.#after}, ${skus})`;
    const [first] = piece;
    this.reader ??= new Reader(this.#sql, first?.position ?? (await positionNow(this.#sql)));
    if (first === undefined) {
      // A SKU that went before its piece was read is in no piece, and its removal is among the changes.
      this.reader.until = await positionNow(this.#sql);
      this.isWhole = true;
      return;
    }
    if (piece.some(({ position }) => position !== first.position))
      this.reader.faults.push('a piece with two positions');
    this.reader.copy.apply(piece, true);
    this.reader.until = first.position;
    this.#after = piece.at(-1)?.sku ?? '';
  }

  async finish(): Promise<Reader> {
    while (!this.isWhole) await this.copyOn(2);
    return this.reader ?? new Reader(this.#sql, await positionNow(this.#sql));
  }
}

export async function positionNow(sql: Sql): Promise<string> {
  const [row] = await sql<[{ position: string }]>`select catalog.changes_position() as position`;
  return row.position;
}
