import type { Queryable, Sql } from './db.ts';

/*
 * Which account's mirror a daemon found at its start, by its pool. While a daemon that counts as dead is only away (a
 * suspended machine, a cut network), the database may become another account's, or be replaced by one. So a daemon
 * writes what it learns of its partner only if the mirror is still the one that it found.
 */

/** The account in the one row of catalog_internal.account. */
export interface MirroredAccount {
  readonly address: string;
  /** Differs between accounts, and stays the same when a key is reissued. */
  readonly salt: string;
  readonly keyHash: string;
}

interface Own {
  account: MirroredAccount;
  /** Makes the error to throw if the mirror belongs to another account. */
  refusal: () => Error;
  readonly replaced: AbortController;
}

const SALT = 'select a.salt from catalog_internal.account a';

const OWN = new WeakMap<Sql, Own>();

/** Notes which mirror this pool's daemon works on from now on. */
export function bindMirror(sql: Sql, account: MirroredAccount, refusal: () => Error): void {
  const known = OWN.get(sql);
  if (known === undefined) OWN.set(sql, { account, refusal, replaced: new AbortController() });
  else Object.assign(known, { account, refusal });
}

/** Returns the salt that identifies the mirror of this pool's daemon; null if the pool is bound to no mirror. */
export const boundMirror = (sql: Sql): string | null => OWN.get(sql)?.account.salt ?? null;

/** A signal that aborts, with the refusal as its reason, once this pool's daemon has met another account's mirror. */
export const mirrorReplaced = (sql: Sql): AbortSignal =>
  OWN.get(sql)?.replaced.signal ?? new AbortController().signal;

/**
 * SQL: whether the mirror is still the one that a daemon is bound to; `salt` is the text of a parameter. Also true if
 * the daemon is bound to none, or if the account is unknown because somebody has deleted its row.
 */
export const ownMirror = (salt: string): string => `coalesce((${SALT}) = ${salt}::text, true)`;

/** SQL: the same for the daemon of a pool. */
export const isOwnMirror = (to: Queryable, pool: Sql) =>
  to`coalesce((${to.unsafe(SALT)}) = ${boundMirror(pool)}::text, true)`;

/** Throws the refusal of another account's mirror. Also makes the process of this pool's daemon end. */
export function refuseMirror(pool: Sql): never {
  const own = OWN.get(pool);
  if (own === undefined) throw new Error('bound to no mirror');
  const refusal = own.refusal();
  own.replaced.abort(refusal);
  throw refusal;
}

/**
 * Writes the mirror's account again if it is missing: otherwise the next daemon to start would take the mirror for one
 * without an owner, and replace this daemon.
 */
export async function putBackAccount(pool: Sql): Promise<void> {
  const account = OWN.get(pool)?.account;
  if (account === undefined) return;
  await pool`
    update catalog_internal.account
    set base_url = ${account.address}, salt = ${account.salt}, key_hash = ${account.keyHash}, key_since = now()
    where salt is null`;
}

/** Checks that the mirror is still this daemon's, and refuses it otherwise. */
export async function checkMirror(pool: Sql): Promise<void> {
  const [{ own }] = await pool<[{ own: boolean }]>`select ${isOwnMirror(pool, pool)} as own`;
  if (!own) refuseMirror(pool);
}

/**
 * SQL: identifies this server, as opposed to a replica or a copy, and the mirrored account, as opposed to an earlier
 * one. A server that has lost its last commits reissues numbers that were given out before.
 */
export const PRESENT_SERVER = `
  concat_ws('.', (select oid from pg_database where datname = current_database()),
    'catalog_internal.claim_numbers'::regclass::oid, extract(epoch from pg_postmaster_start_time()),
    (${SALT}))`;

/** SQL: PRESENT_SERVER as part of a statement. */
export const presentServer = (sql: Queryable) => sql.unsafe(PRESENT_SERVER);
