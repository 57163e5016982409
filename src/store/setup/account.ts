import { createHash, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { ConfigError } from '../../config/config.ts';
import { plural } from '../../lib/format.ts';
import { scanning, type Sql, transaction, type Tx } from '../connection/db.ts';
import { lockNewSkus } from '../connection/locks.ts';
import { bindMirror, boundMirror, refuseMirror } from '../connection/own-mirror.ts';
import { countDaemons } from './instance.ts';

/*
 * Whose catalog a database mirrors. Prices, token and pace of one partner or account say nothing about another's,
 * and their snapshots may have the same names: then a delta would report nothing new. The base URL identifies the
 * partner, so a different one is refused. The api_key identifies the account (partner rule 5.2), but may be reissued
 * for the same account, so a different key is only reported. A running daemon goes by the salt, which stays with the
 * account.
 */

export interface Account {
  readonly baseUrl: string;
  readonly apiKey: string;
}

export interface KnownAccount {
  /** Null before the first start. */
  readonly address: string | null;
  readonly salt: string | null;
  readonly keyHash: string | null;
  readonly keySince: Date | null;
  /** Whether the key differs from the one that the mirror began with. */
  readonly keyReplaced: boolean;
}

const UNKNOWN: KnownAccount = {
  address: null,
  salt: null,
  keyHash: null,
  keySince: null,
  keyReplaced: false,
};

/**
 * Returns origin and path of a base URL; on this host without the port, because a simulated partner takes any free
 * one.
 */
export function addressOf(baseUrl: string): string {
  const { protocol, host, hostname, pathname } = new URL(baseUrl);
  const isOwn =
    hostname === 'localhost' || hostname === '[::1]' || (isIP(hostname) === 4 && hostname.startsWith('127.'));
  return `${protocol}//${isOwn ? hostname : host}${pathname.replace(/\/+$/, '')}`;
}

const hashOf = (salt: string, apiKey: string): string =>
  createHash('sha256').update(`${salt}:${apiKey}`).digest('hex');

/** Compares an account with the mirrored one. `first`: none is mirrored yet. Pure. */
export function compareAccount(
  known: KnownAccount,
  { baseUrl, apiKey }: Account,
): 'first' | 'same' | 'other-key' | 'other-partner' {
  const { address, salt, keyHash } = known;
  if (address === null || salt === null) return 'first';
  if (address !== addressOf(baseUrl)) return 'other-partner';
  return hashOf(salt, apiKey) === keyHash ? 'same' : 'other-key';
}

const SELECT_KNOWN = `
  select base_url as address, salt, key_hash as "keyHash", key_since as "keySince", key_replaced as "keyReplaced"
  from catalog_internal.account`;

/**
 * Refuses the mirror of another partner as `noteAccount` does, but changes nothing: for use before the database is
 * migrated. A database of an early version has no account stored, so it is not refused.
 *
 * @throws OtherPartner
 */
export async function refuseOtherPartner(sql: Sql, account: Account): Promise<void> {
  await refuseMirrorOf(sql, account, ['other-partner']);
}

/**
 * Also refuses the mirror of another api_key: for addresses of this host, which all simulated partners share.
 *
 * @throws OtherPartner
 */
export async function refuseOtherAccount(sql: Sql, account: Account): Promise<void> {
  await refuseMirrorOf(sql, account, ['other-partner', 'other-key']);
}

async function refuseMirrorOf(
  sql: Sql,
  account: Account,
  refused: readonly ReturnType<typeof compareAccount>[],
): Promise<void> {
  const [{ there }] = await sql<[{ there: boolean }]>`
    select to_regclass('catalog_internal.account') is not null as there`;
  if (!there) return;
  const known = await readAccount(sql);
  if (!refused.includes(compareAccount(known, account))) return;
  if (await isMirrored(sql)) throw new OtherPartner(known.address ?? '', account.baseUrl);
}

/** Whether anything of the known account is here: stored data, or a daemon. */
const isMirrored = async (sql: Sql): Promise<boolean> =>
  (await hasMirror(sql)) || (await countDaemons(sql)) > 0;

/**
 * Reads the mirrored account, as far as it is known. Its row may be gone; a start creates it again. The database
 * must be migrated.
 */
export async function readAccount(sql: Sql): Promise<KnownAccount> {
  const [known] = await sql.unsafe<KnownAccount[]>(SELECT_KNOWN);
  return known ?? UNKNOWN;
}

/**
 * Reads the mirrored account as far as it binds whoever starts next: without data or a daemon of that account the
 * database is nobody's, because an address may have been misspelled.
 */
export async function readMirroredAccount(sql: Sql): Promise<KnownAccount> {
  const known = await readAccount(sql);
  return (await isMirrored(sql)) ? known : { ...known, address: null };
}

interface Noted {
  readonly how: 'known' | 'key-replaced';
  readonly salt: string;
}

/**
 * Notes whose catalog is mirrored here, and binds the pool of the starting daemon to it. Returns whether the api_key
 * differs from the previous one.
 *
 * @throws OtherPartner if the mirror is another partner's: data of that partner is stored, or another daemon is
 * running. A database without both belongs to whoever starts next, because an address may have been misspelled.
 */
export async function noteAccount(sql: Sql, account: Account): Promise<Noted['how']> {
  const { how, salt } = await transaction(sql, async (tx) => {
    const known = await lockAccount(tx);
    const compared = compareAccount(known, account);
    if (compared === 'other-partner') await takeOver(tx, known, account);
    return await noteCompared(tx, known, account, compared);
  });
  bindTo(sql, account, salt);
  return how;
}

/**
 * Notes the api_key that a running daemon reads. Returns the same as noteAccount.
 *
 * @throws OtherPartner if the mirror is no longer the one that the daemon found when it started
 */
export async function noteKey(sql: Sql, account: Account): Promise<Noted['how']> {
  const { how, salt } = await transaction(sql, async (tx): Promise<Noted> => {
    const known = await lockAccount(tx);
    if (known.salt !== null && known.salt !== boundMirror(sql)) refuseMirror(sql);
    return await noteCompared(tx, known, account, compareAccount(known, account));
  });
  bindTo(sql, account, salt);
  return how;
}

async function lockAccount(tx: Tx): Promise<KnownAccount> {
  const [known] = await tx.unsafe<KnownAccount[]>(`${SELECT_KNOWN} for update`);
  return known ?? UNKNOWN;
}

/** Refuses to take over a database in which another partner has something. */
async function takeOver(tx: Tx, { address }: KnownAccount, { baseUrl }: Account): Promise<void> {
  if ((await hasMirror(tx)) || (await countDaemons(tx)) > 1) throw new OtherPartner(address ?? '', baseUrl);
  // Names learned from answers of a misspelled address say nothing about this partner's.
  await tx`delete from catalog_internal.learned_names`;
}

async function noteCompared(
  tx: Tx,
  { salt }: KnownAccount,
  account: Account,
  compared: ReturnType<typeof compareAccount>,
): Promise<Noted> {
  if (compared === 'same' && salt !== null) return { how: 'known', salt };
  const isReplaced = compared === 'other-key' && (await hasMirror(tx));
  const stored = await storeAccount(tx, account, {
    keyReplaced: isReplaced,
    // As far as can be told, this is another key of the same account.
    salt: compared === 'other-key' ? salt : null,
  });
  return { how: isReplaced ? 'key-replaced' : 'known', salt: stored };
}

/** The refusal is created later, when the mirror may be another account's. */
function bindTo(sql: Sql, { baseUrl, apiKey }: Account, salt: string): void {
  const account = { address: addressOf(baseUrl), salt, keyHash: hashOf(salt, apiKey) };
  bindMirror(sql, account, () => new OtherPartner(null, baseUrl));
}

async function hasMirror(tx: Sql | Tx): Promise<boolean> {
  // The only row of sync may be gone.
  const [row] = await tx<[{ filled: boolean }]>`
    select exists (select from catalog_internal.sync where manifest_applied_at is not null)
      or exists (select from catalog.prices) as filled`;
  return row.filled;
}

interface StoredAs {
  readonly keyReplaced: boolean;
  /** The present salt; null for a new one. */
  readonly salt: string | null;
}

/** Stores the account; returns its salt. */
async function storeAccount(
  tx: Tx,
  { baseUrl, apiKey }: Account,
  { keyReplaced, salt: known }: StoredAs,
): Promise<string> {
  const salt = known ?? randomBytes(16).toString('hex');
  await tx`
    update catalog_internal.account set base_url = ${addressOf(baseUrl)}, salt = ${salt}, key_hash = ${hashOf(salt, apiKey)},
      key_since = now(), key_replaced = ${keyReplaced}`;
  return salt;
}

/** The database contains the mirror of another partner than the configured one. */
export class OtherPartner extends ConfigError {
  /** Address of the mirrored partner; null if the mirror has become another account's since this daemon started. */
  readonly mirrored: string | null;

  constructor(mirrored: string | null, baseUrl: string) {
    super([
      {
        variable: 'PARTNER_BASE_URL',
        expected:
          mirrored === null
            ? 'the partner and the account whose catalog this database mirrors by now'
            : `${mirrored}, whose catalog this database mirrors`,
        got: addressOf(baseUrl),
        but: 'use another database, or run `catalog-mirror migrate --adopt-account`, after which all prices are requested anew',
      },
    ]);
    this.mirrored = mirrored;
  }
}

/** Nothing was changed: the daemons continue with the mirrored account. */
export class DaemonsRunning extends Error {
  override readonly name = 'DaemonsRunning';
  readonly kind = 'daemons-running';
  readonly hint = 'stop them, run this again, and start them with the settings of the other account';

  constructor(daemons: number) {
    super(`${daemons} ${plural(daemons, 'daemon is', 'daemons are')} running on this database`);
  }
}

/** Tables of what was learned about a partner. */
const LEARNED = [
  'live_rates',
  'live_calls',
  'unreported_moves',
  'pace',
  'pace_sends',
  'catalog_counts',
  'samples',
  'calibration_hours',
  'random_looks',
  'live_backlog',
  'live_lines',
  'hints',
  'waiting_hints',
  'hint_sources',
  'learned_names',
  'left_tokens',
  'refused_tasks',
  'idle_manifests',
  'unread_lines',
  'muted_members',
  'odd_moves',
];
/** The same, with one row each. */
const LEARNED_AS_ONE = [
  'live_plan',
  'live_ceiling',
  'call_size',
  'delta_audit',
  'beliefs',
  'mass_move',
  'releases',
];

/**
 * Makes the mirror another account's, in one transaction: deletes what was learned about the partner, its pace and
 * its refusals, makes every SKU due, and trusts none before a new baseline and a new answer. Prices stay until then,
 * histories for good.
 *
 * @throws DaemonsRunning
 */
export async function adoptAccount(sql: Sql, account: Account): Promise<void> {
  const salt = await transaction(sql, async (tx) => {
    await tx`lock table catalog_internal.instances in share row exclusive mode`;
    const daemons = await countDaemons(tx);
    if (daemons > 0) throw new DaemonsRunning(daemons);
    await tx`delete from catalog_internal.sync`;
    // The new account's manifest may be far smaller than the old one's.
    await tx`insert into catalog_internal.sync (shrink_confirmed) values (true)`;
    await lockNewSkus(tx);
    await forgetAnswers(tx);
    for (const table of LEARNED) await scanning(tx`delete from ${tx(`catalog_internal.${table}`)}`);
    for (const table of LEARNED_AS_ONE) {
      await tx`delete from ${tx(`catalog_internal.${table}`)}`;
      await tx`insert into ${tx(`catalog_internal.${table}`)} default values`;
    }
    await tx`
      update catalog_internal.tasks set next_at = now(), run = null, running_until = null, failures = 0, outcome = null, progress = null`;
    return await storeAccount(tx, account, { keyReplaced: false, salt: null });
  });
  bindTo(sql, account, salt);
}

/** Makes every SKU due, and forgets everything answered about it except its prices. */
async function forgetAnswers(tx: Tx): Promise<void> {
  await scanning(tx`
    update catalog.skus set hash = null, asked_at = null, reported_at = null, hash_before_live = null
    where hash is not null or asked_at is not null or reported_at is not null or hash_before_live is not null`);
  const forgotten = tx`
    claim = null, held_until = null, deferrals = 0, failures = 0, last_error = null, largest_call = null,
    doubt = null, oddity = null, doubted_at = null, believed = null, again_at = null, missed_moves = null,
    live_marks = 0, live_left = 0, generation = generation + 1`;
  const turned = tx`
    case when reason = 'scope' or reason <> 'metadata' and due_at <= now() then reason when live then 'live' else 'sweep' end`;
  await scanning(tx`
    update catalog_internal.due set ${forgotten}, due_at = least(due_at, now()),
      outside_due_at = case when outside_due_at is not null then least(outside_due_at, now()) end,
      reason = ${turned}, lane = catalog_internal.lane_of(${turned})
    where due_at < 'infinity'`);
  await scanning(tx`
    update catalog_internal.due set ${forgotten},
      reason = case when outside_due_at <= now() and reason <> 'metadata' then reason when live then 'live' else 'sweep' end,
      outside_due_at = least(outside_due_at, now())
    where due_at = 'infinity' and outside_due_at < 'infinity'`);
}
