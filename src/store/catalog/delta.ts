import { setImmediate } from 'node:timers/promises';
import { failpoint } from '../../lib/failpoint.ts';
import { allSent, scanning, type Sql, transaction, type Tx } from '../connection/db.ts';
import { lockNewSkus } from '../connection/locks.ts';
import { isOwnMirror, refuseMirror, presentServer } from '../connection/own-mirror.ts';
import {
  type SkuBefore,
  absentSku,
  writeSkuChanges,
  deletePricesAround,
  isObjected,
} from '../history/changes.ts';
import { requestTask } from '../ledger/tasks.ts';
import { auditReports, countSeenFirst, markUnreported, unreported } from './audit.ts';
import { type CrossingCounts, reportChanged, reportRemoved } from './delta-reports.ts';
import { noteLeft } from './tokens.ts';
import { setApartUnreported } from './unreported.ts';

export interface DeltaChange {
  readonly since: string;
  readonly toSnapshot: string;
  /**
   * When it was asked for, or earlier, by Postgres's clock; now by default. The process may pause between answer and
   * COMMIT.
   */
  readonly askedAt?: Date;
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  readonly nowLive: readonly string[];
  /** Whether this answer counts as the last of a series of deltas, although it moves the token. */
  readonly isEnd?: boolean;
  /** Whether each answer has a token of its own, so that moving the token shows no change. */
  readonly ownToken?: boolean;
}

export interface DeltaApplied extends CrossingCounts {
  /**
   * False if another replica has moved the token in the meantime, or the pool has led to another server: nothing was
   * applied, or only a part, and the delta is asked for again.
   */
  readonly applied: boolean;
  readonly marked: number;
  readonly removed: number;
  /** Whether it may have been cut off, so that a manifest is requested. */
  readonly isCut: boolean;
  /** The time of each of its transactions, since when its reports have been due. */
  readonly reportedAt: readonly Date[];
}

const NOTHING: DeltaApplied = {
  applied: false,
  marked: 0,
  newSkus: 0,
  crossedToLive: 0,
  crossedToSnapshot: 0,
  removed: 0,
  isCut: false,
  reportedAt: [],
};

/** SKUs per transaction: answers for them wait until it ends, and all their prices make one piece of history. */
const PIECE = 5000;

/** What one transaction applies of a delta. */
interface Part {
  readonly reported: readonly string[];
  readonly removed: readonly string[];
  /** The delta, in its last part only. */
  readonly end?: DeltaChange;
}

/**
 * Applies one delta answer (partner rules 2.8, 4.2.4 to 4.2.7) and moves the token, if the token is still the one the
 * delta was asked with. Every reported SKU is marked due, except one that was live already and still is. A reported
 * SKU is live exactly if now_live names it, whatever the manifest said; a removed one loses its prices and is asked
 * once more. After an answer that moves the token the next one may report more: the delta counts as read once an
 * answer does not move it, or `isEnd` says so.
 *
 * A small answer takes one transaction, a large one several before the one that moves the token. If only some of those
 * were committed, the token has not moved, and the same delta is applied again from its start, which changes nothing
 * that was done. All of them must run on one server: the host name may lead to another one in between, and both have
 * the token.
 *
 * @throws if the mirror has become another account's, which ends the daemon
 */
export async function applyDelta(sql: Sql, delta: DeltaChange): Promise<DeltaApplied> {
  const nowLive = await setOf(delta.nowLive);
  const { parts, last, skus } = partsOf(delta, nowLive);
  const total = { ...NOTHING, applied: true };
  const reportedAt: Date[] = [];
  let server: string | null = null;
  const add = (counts: CrossingCounts) => {
    total.newSkus += counts.newSkus;
    total.crossedToLive += counts.crossedToLive;
    total.crossedToSnapshot += counts.crossedToSnapshot;
  };
  for (const part of [...parts, { ...last, end: delta }]) {
    const counts = await transactionFor(sql, part, async (tx, around) => {
      const found = await atToken(tx, sql, delta.since);
      if (found === null || (server !== null && found.server !== server)) return null;
      const { at } = found;
      const moves = delta.toSnapshot !== delta.since;
      const applied = await applyPart(tx, part, { nowLive, around, moves, beganAt: reportedAt[0] ?? at });
      if (part.end !== undefined) failpoint('delta.token-moved');
      return { ...found, ...applied };
    });
    if (counts === null) return NOTHING;
    add(counts);
    total.isCut = counts.isCut;
    ({ server } = counts);
    reportedAt.push(counts.at);
  }
  return { ...total, marked: skus, removed: delta.removed.length, reportedAt };
}

/**
 * Splits a large delta into parts; `last` moves the token. A SKU that is both reported and removed ends up removed.
 * `skus` is how many SKUs the delta names; in a large delta a SKU may count more than once.
 */
function partsOf(
  { changed, removed }: DeltaChange,
  nowLive: ReadonlySet<string>,
): { parts: Part[]; last: Part; skus: number } {
  const reported = [...nowLive, ...changed.filter((sku) => !nowLive.has(sku))];
  if (reported.length + removed.length <= PIECE) {
    const last = { reported: [...new Set(reported)], removed: [...new Set(removed)] };
    return { parts: [], last, skus: new Set([...reported, ...removed]).size };
  }
  const parts: Part[] = [];
  // A SKU must not occur twice in one statement; one that is in two pieces is marked twice.
  for (let at = 0; at < reported.length; at += PIECE)
    parts.push({ reported: [...new Set(reported.slice(at, at + PIECE))], removed: [] });
  for (let at = 0; at < removed.length; at += PIECE)
    parts.push({ reported: [], removed: [...new Set(removed.slice(at, at + PIECE))] });
  return { parts, last: { reported: [], removed: [] }, skus: reported.length + removed.length };
}

/** SKUs added to a set at once: a million would take most of a second, in which nothing else of the process runs. */
const SET_AT_ONCE = 50_000;

async function setOf(skus: readonly string[]): Promise<ReadonlySet<string>> {
  const all = new Set<string>();
  for (let at = 0; at < skus.length; at += SET_AT_ONCE) {
    if (at > 0) await setImmediate();
    for (const sku of skus.slice(at, at + SET_AT_ONCE)) all.add(sku);
  }
  return all;
}

/**
 * Runs `work` in a transaction. If another owner's object rejects it and SKUs are removed, runs it once more, `around`
 * their prices, which are the likely cause: a seller's foreign key to a price must not hold up the other reports.
 */
async function transactionFor<T>(
  sql: Sql,
  { removed }: Part,
  work: (tx: Tx, around: boolean) => Promise<T>,
): Promise<T> {
  try {
    return await transaction(sql, (tx) => work(tx, false));
  } catch (error) {
    if (removed.length === 0 || !isObjected(error)) throw error;
    return await transaction(sql, (tx) => work(tx, true));
  }
}

interface AtToken {
  /** The transaction's time. */
  readonly at: Date;
  /** The server that it ran on (`presentServer`). */
  readonly server: string;
}

/** Locks the row of the token; returns null if the token is another one. */
async function atToken(tx: Tx, pool: Sql, token: string): Promise<AtToken | null> {
  // No row if the one that was waited for is gone: another account has a row of its own.
  const [sync] = await tx<(AtToken & { token: string | null; own: boolean })[]>`
    select snapshot_id as token, now() as at, ${presentServer(tx)} as server, ${isOwnMirror(tx, pool)} as own
    from catalog_internal.sync for update`;
  if (sync?.own === false) refuseMirror(pool);
  return sync?.token === token ? { at: sync.at, server: sync.server } : null;
}

interface Applying {
  readonly nowLive: ReadonlySet<string>;
  /** Whether prices of removed SKUs are deleted around what other owners' objects reject (store/history/changes.ts). */
  readonly around: boolean;
  /** Whether the delta moves the token. */
  readonly moves: boolean;
  /** When the delta's first part was applied. */
  readonly beganAt: Date;
}

/** Applies a part, and moves the token if it is the last (`end`). */
async function applyPart(
  tx: Tx,
  { reported, removed, end }: Part,
  { nowLive, around, moves, beganAt }: Applying,
): Promise<CrossingCounts & { readonly isCut: boolean }> {
  let isCut = false;
  const all = [...new Set([...reported, ...removed])];
  const isMarked = end === undefined ? tx`` : tx`union ${unreported(tx, end.toSnapshot)}`;
  await lockNewSkus(tx);
  const [before] = await allSent([
    tx<SkuBefore[]>`
      select sku, state, price_source as "priceSource", in_manifest as listed from catalog.skus where sku = any(${all})
      order by sku for no key update`,
    // Locks all that is marked below in several steps, in order of sku, as everyone locks the ledger. Each row is
    // found by its key: a join would compare it with each row of a ledger that was analyzed while it was empty.
    tx`
      select from (select sku from (select unnest(${all}::text[]) as sku ${isMarked}) named order by sku collate "C") named
      cross join lateral (select from catalog_internal.due d where d.sku = named.sku for update) locked`,
  ]);
  const live = reported.filter((sku) => nowLive.has(sku));
  const seenFirst =
    all.length > 0 ? await auditReports(tx, { changed: reported, nowLive: live, removed }) : null;
  const counts = reported.length > 0 ? await reportChanged(tx, reported, { nowLive, moves }) : NOTHING;
  if (removed.length > 0) await reportRemoved(tx, removed);
  if (end !== undefined) {
    await markUnreported(tx, end.toSnapshot);
    failpoint('delta.reported');
    await noteLeft(tx, end.toSnapshot, beganAt);
    if (end.toSnapshot !== end.since) await setApartUnreported(tx);
    isCut = await askForWhatWasCut(tx, end);
    await moveToken(tx, end);
  }
  if (seenFirst !== null) await countSeenFirst(tx, seenFirst);
  if (all.length > 0) await writeSkuChanges(tx, withNew(before, all), around ? [] : removed);
  if (around) await deletePricesAround(tx, removed);
  return { ...counts, isCut };
}

/** Adds the SKUs that did not exist before. */
function withNew(before: readonly SkuBefore[], skus: readonly string[]): SkuBefore[] {
  const known = new Set(before.map(({ sku }) => sku));
  const added = skus.filter((sku) => !known.has(sku));
  return [...before, ...added.map(absentSku)];
}

async function moveToken(
  tx: Tx,
  { toSnapshot, changed, askedAt, isEnd = false, ownToken = false }: DeltaChange,
): Promise<void> {
  const count = changed.length;
  const saidAt = tx`least(now(), ${askedAt ?? null}::timestamptz)`;
  // Others may have asked since; a time in the future is of a clock that was wrong.
  const checkedAt = tx`greatest(${saidAt}, case when delta_checked_at <= now() then delta_checked_at end)`;
  await tx`
    update catalog_internal.sync set
      snapshot_moved_at = case when snapshot_id <> ${toSnapshot} then ${saidAt} else snapshot_moved_at end,
      token_at = case when snapshot_id <> ${toSnapshot} then now() else token_at end,
      built_after = case when snapshot_id <> ${toSnapshot} and caught_up then token_at else built_after end,
      caught_up = snapshot_id = ${toSnapshot},
      delta_checked_at = case when snapshot_id = ${toSnapshot} or ${isEnd} then ${checkedAt} else delta_checked_at end,
      -- It leads to what the manifest route named, or has at least moved by itself.
      delta_doubt = case when snapshot_id <> ${toSnapshot} and (seen_snapshot_id = ${toSnapshot} or delta_doubt = 'distrusted')
        then null else delta_doubt end,
      delta_still_since = case when snapshot_id = ${toSnapshot} then delta_still_since end,
      behind_since = case when snapshot_id <> ${toSnapshot} and seen_snapshot_id = ${toSnapshot} then null else behind_since end,
      own_tokens = snapshot_id <> ${toSnapshot} and (own_tokens or ${ownToken}),
      round_changed = case when ${isRound(count)} then greatest(round_changed, ${count}) when ${count} > round_changed then null
        else round_changed end,
      -- Answered, whatever it was before.
      chain_broken_at = null, rejected_snapshot_id = null, manifest_refused = nullif(manifest_refused, 'rejected-token'),
      snapshot_id = ${toSnapshot}, catalog_fault = null, chain_breaks = 0`;
}

/** Nobody sets a limit that is smaller or less round than this. */
const LEAST_LIMIT = 500;
const LIMIT_STEP = 100;

/** Whether `count` SKUs in `changed` may be the partner's limit, not all changes. A larger answer refutes it. */
const isRound = (count: number): boolean => count >= LEAST_LIMIT && count % LIMIT_STEP === 0;

/** A manifest is requested because of such answers at most this often. */
const LIMIT_SUSPECTED_EVERY = '6 hours';

/**
 * Two answers with exactly the same round number of SKUs in `changed`, and none with more since, may have been cut
 * off. No delta reports again what they leave out, but the newest manifest contains it, so a manifest is requested.
 * Call this before the token moves, because this delta is the last evidence. Returns whether a manifest was requested.
 */
async function askForWhatWasCut(tx: Tx, { toSnapshot, changed }: DeltaChange): Promise<boolean> {
  const count = changed.length;
  if (!isRound(count)) return false;
  const noted = await tx`
    update catalog_internal.sync set limit_suspected_at = now()
    where snapshot_id <> ${toSnapshot} and round_changed = ${count}
      and (limit_suspected_at is null or limit_suspected_at < now() - ${LIMIT_SUSPECTED_EVERY}::interval)
    returning 1`;
  if (noted.length === 0) return false;
  await requestTask(tx, 'manifest');
  return true;
}

/** Counts the SKUs that the mirror has as listed, and how many of them `skus` names. Reads the whole catalog. */
export async function countListed(
  sql: Sql,
  skus: readonly string[],
): Promise<{ readonly listed: number; readonly named: number }> {
  const [counts] = await scanning(
    sql<[{ listed: number; named: number }]>`
      select count(*)::int as listed, count(named.sku)::int as named
      from catalog.skus s left join (select distinct sku from unnest(${skus as string[]}::text[]) as n(sku)) named using (sku)
      where s.in_manifest`,
  );
  return counts;
}
