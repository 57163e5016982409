import { scanning, type Queryable, type Sql, type Tx } from '../connection/db.ts';
import { whenFree } from '../connection/locks.ts';
import type { Claim } from '../ledger/due.ts';
import { ALIVE } from '../setup/instance.ts';

/*
 * What is priced (catalog.scope). Sellers write the rules in transactions of their own, and may lock them as they
 * like. So triggers record each statement, and a daemon copies committed rules into the mirror's own and then sorts,
 * in pieces, the SKUs that they may concern. Whoever writes something about a SKU that rules depend on (new SKUs,
 * metadata) sorts it in the same transaction (catalog_internal.apply_scope).
 */

/** SQL: whether there are unread changes of the rules, or SKUs that are still to be sorted by them. */
export const SCOPE_MOVED = `
  exists (select from catalog_internal.scope_changes)
  or exists (select from catalog_internal.scope_pending)
  or exists (select from catalog_internal.scope_passes)`;

/** SQL: whether the rules apply. */
export const IS_SCOPED = '(select scoped from catalog_internal.scoping)';

/** How many SKUs one transaction compares with the rules. Answers for those that it moves wait until it ends. */
const PIECE = 5000;

export interface ScopeReading {
  /** Compares all rules, instead of what the triggers recorded. */
  readonly everything: boolean;
  /** Sorts SKUs in at most this many pieces; the rest is left to the next call. */
  readonly pieces: number;
}

/**
 * Brings what sellers have committed to catalog.scope into the mirror's own rules and into the ledger. Never waits
 * long: returns false if somebody locks what is needed (perhaps the table itself), if another process is doing this,
 * or if more is left.
 */
export async function readScope(sql: Sql, { everything, pieces }: ScopeReading): Promise<boolean> {
  const read = await whenFree(
    sql,
    'scoping',
    async (tx) => await scanning(tx`select catalog_internal.read_scope(${everything}::boolean)`),
  );
  for (let piece = 0; piece < pieces; piece += 1) {
    const sorted = await whenFree(
      sql,
      'scoping',
      async (tx) =>
        await scanning(tx<[{ more: boolean }]>`select catalog_internal.follow_scope(${PIECE}::int) as more`),
    );
    if (sorted === null) return false;
    if (!sorted[0].more) return read !== null;
  }
  return false;
}

/** Gives back those SKUs of a claim that are out of scope by the present rules. Returns null if none is left. */
export async function withinScope(sql: Sql, claim: Claim): Promise<Claim | null> {
  const skus = claim.skus.map(({ sku }) => sku);
  const given = await sql<{ sku: string }[]>`
    select sku from catalog_internal.give_back_outside(${claim.number}::bigint, ${skus}::text[]) as sku`;
  if (given.length === 0) return claim;
  const outside = new Set(given.map(({ sku }) => sku));
  const left = claim.skus.filter(({ sku }) => !outside.has(sku));
  return left.length === 0 ? null : { ...claim, skus: left };
}

/**
 * Sorts SKUs by the rules. Must be the transaction's last write to these SKUs, with their rows of the ledger locked.
 */
export async function sortByScope(tx: Tx, answered: readonly { readonly sku: string }[]): Promise<void> {
  await tx`select catalog_internal.apply_scope(${answered.map(({ sku }) => sku)}::text[])`;
}

/** Stores whether the rules apply (MIRROR_SCOPE). Returns whether that changed. */
export async function storeScopeMode(sql: Sql, scoped: boolean): Promise<boolean> {
  const [row] = await sql<[{ changed: boolean }]>`
    select case when ${sql.unsafe(IS_SCOPED)} <> ${scoped}::boolean
      then catalog_internal.set_scope(${scoped}::boolean)
      else false end as changed`;
  return row.changed;
}

export interface Scope {
  /** Whether the rules apply; otherwise everything is in scope. */
  readonly scoped: boolean;
  readonly rules: number;
  /** There are unread changes of the rules, or SKUs that are still to be sorted by them. */
  readonly moving: boolean;
  /** How many running daemons have another MIRROR_SCOPE than the one that applies. */
  readonly otherwise: number;
}

/** Reads what is in scope at present, and whether daemons agree about that. */
export async function readScopeState(sql: Queryable): Promise<Scope> {
  const [row] = await sql<[Scope]>`
    select g.scoped, (select count(*)::int from catalog_internal.scope_rules) as rules, ${sql.unsafe(SCOPE_MOVED)} as moving,
      (select count(*)::int from catalog_internal.instances i
       where i.scoped <> g.scoped and ${sql.unsafe(ALIVE)}) as otherwise
    from catalog_internal.scoping g`;
  return row;
}
