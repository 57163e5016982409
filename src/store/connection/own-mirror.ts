import type { Queryable, Sql } from './db.ts';

/*
 * Whose mirror a daemon has found at its start, by its pool. While a daemon that counts as dead is only away (a
 * suspended machine, a network that was cut), the database may become another account's, or be replaced by another's.
 * So a daemon writes what it learns of its partner only if the mirror is still the one that it found.
 */

/** What the one row of catalog_internal.account has of an account. */
export interface MirroredAccount {
  readonly address: string;
  /** Another one for each account, and the same for a key that is issued anew. */
  readonly salt: string;
  readonly keyHash: string;
}

interface Own {
  account: MirroredAccount;
  /** What is thrown where the mirror is another account's. */
  refusal: () => Error;
  readonly replaced: AbortController;
}

const SALT = 'select a.salt from catalog_internal.account a';

const OWN = new WeakMap<Sql, Own>();

/** Notes whose mirror the daemon of this pool works on from now on. */
export function bindMirror(sql: Sql, account: MirroredAccount, refusal: () => Error): void {
  const known = OWN.get(sql);
  if (known === undefined) OWN.set(sql, { account, refusal, replaced: new AbortController() });
  else Object.assign(known, { account, refusal });
}

/** The salt by which the mirror of this pool's daemon is known; null: the pool is bound to no mirror. */
export const boundMirror = (sql: Sql): string | null => OWN.get(sql)?.account.salt ?? null;

/** Aborts, with the refusal as its reason, once this pool's daemon has met the mirror of another account. */
export const mirrorReplaced = (sql: Sql): AbortSignal =>
  OWN.get(sql)?.replaced.signal ?? new AbortController().signal;

/**
 * SQL: the mirror is still the one that a daemon is bound to; `salt`: text of a parameter. Also true if the daemon is
 * bound to none, or if nothing is known of the account because somebody has deleted its row.
 */
export const ownMirror = (salt: string): string => `coalesce((${SALT}) = ${salt}::text, true)`;

/** SQL: the same, of the daemon of a pool. */
export const isOwnMirror = (to: Queryable, pool: Sql) =>
  to`coalesce((${to.unsafe(SALT)}) = ${boundMirror(pool)}::text, true)`;

/** Throws why the mirror is refused: it is another account's. Also makes the process of this pool's daemon end. */
export function refuseMirror(pool: Sql): never {
  const own = OWN.get(pool);
  if (own === undefined) throw new Error('bound to no mirror');
  const refusal = own.refusal();
  own.replaced.abort(refusal);
  throw refusal;
}

/**
 * Writes whose mirror it is if that is no longer known: otherwise a daemon that starts next would find a mirror without
 * an owner, and this daemon itself would be replaced.
 */
export async function putBackAccount(pool: Sql): Promise<void> {
  const account = OWN.get(pool)?.account;
  if (account === undefined) return;
  await pool`
    update catalog_internal.account
    set base_url = ${account.address}, salt = ${account.salt}, key_hash = ${account.keyHash}, key_since = now()
    where salt is null`;
}

/** Asks whether the mirror is still this daemon's, and refuses it where it is not. */
export async function checkMirror(pool: Sql): Promise<void> {
  const [{ own }] = await pool<[{ own: boolean }]>`select ${isOwnMirror(pool, pool)} as own`;
  if (!own) refuseMirror(pool);
}

/**
 * SQL: identifies this server, as opposed to a replica or a copy of it, and the mirrored account, as opposed to the one
 * before. A server that lacks the last commits gives out numbers again that were given out before.
 */
export const PRESENT_SERVER = `
  concat_ws('.', (select oid from pg_database where datname = current_database()),
    'catalog_internal.claim_numbers'::regclass::oid, extract(epoch from pg_postmaster_start_time()),
    (${SALT}))`;

/** SQL: the same, within a statement. */
export const presentServer = (sql: Queryable) => sql.unsafe(PRESENT_SERVER);
