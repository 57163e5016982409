import { METADATA_COLUMNS } from '../../declared/metadata.ts';
import { allSent, constant, type Tx } from '../connection/db.ts';
import { type Claim, MOST_UNCOUNTED, ownDeferrals } from '../ledger/due.ts';
import type { PriceDifference } from './differences.ts';
import type { Doubt } from './doubts.ts';
import type { AnswerEffects } from './effects.ts';
import type { SkuJudgement } from './judgements.ts';
import type { Oddity } from './plausibility.ts';
import type { AnswerLearning, DoubtedSku, ErrorCause, NextRefresh, SkuResult } from './types.ts';

/** Writes what an answer says about prices that the mirror does not hold. */
export async function writePrices(tx: Tx, diff: readonly PriceDifference[], at: Date): Promise<void> {
  if (diff.length === 0) return;
  await tx`
    with diff as materialized (
      select * from unnest(${diff.map((d) => d.sku)}::text[], ${diff.map((d) => d.size)}::text[],
        ${diff.map((d) => d.newPrice)}::int[], ${diff.map((d) => d.entry)}::text[]::jsonb[],
        ${diff.map((d) => d.how)}::text[]) as d(sku, size, price, entry, how)
    ),
    vanished as (
      delete from catalog.prices p using diff where how = 'gone' and p.sku = diff.sku and p.size = diff.size
    ),
    -- An update and an insert, where an upsert would lock each row before it writes it. The SKU's row is locked.
    changed as (
      update catalog.prices p set price = diff.price, entry = diff.entry,
        changed_at = case when how = 'moved' then ${at}::timestamptz else p.changed_at end
      from diff where how in ('moved', 'entry') and p.sku = diff.sku and p.size = diff.size
    )
    insert into catalog.prices (sku, size, price, entry, changed_at)
    select sku, size, price, entry, ${at} from diff where how = 'appeared' order by sku, size`;
}

/**
 * Writes the metadata of answered SKUs: all of it for SKUs in `renewed`, for the others only that it was seen again.
 * `changed_at` moves for SKUs in `changed`, in which more than muted members has changed.
 */
export async function writeProducts(
  tx: Tx,
  answered: readonly SkuResult[],
  { renewed, changed }: Pick<AnswerEffects, 'renewed' | 'changed'>,
  at: Date,
): Promise<void> {
  const records = answered.flatMap((result) =>
    result.kind === 'record' ? [{ sku: result.sku, ...result.product }] : [],
  );
  const same = records.filter(({ sku }) => !renewed.has(sku)).map(({ sku }) => sku);
  const rows = records.filter(({ sku }) => renewed.has(sku));
  const columns = METADATA_COLUMNS.map((column) => tx`, ${tx(column)}`);
  const values = METADATA_COLUMNS.map((column) => tx`, ${rows.map((r) => r[column])}::text[]`);
  const renewals = METADATA_COLUMNS.map(
    (column) => tx`, ${tx(column)} = coalesce(excluded.${tx(column)}, p.${tx(column)})`,
  );
  await allSent([
    same.length > 0 && tx`update catalog.products set refreshed_at = ${at} where sku = any(${same})`,
    rows.length > 0 &&
      tx`
      insert into catalog.products as p (sku, product ${columns}, refreshed_at, changed_at)
      select n.*, ${at}, ${at}
      from unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.product)}::text[]::jsonb[] ${values})
        as n(sku, product ${columns})
      order by sku
      on conflict (sku) do update set product = p.product || excluded.product,
        refreshed_at = excluded.refreshed_at,
        changed_at = case when excluded.sku = any(${[...changed]}::text[]) then excluded.changed_at else p.changed_at end ${renewals}`,
  ]);
}

/** Writes which doubts begin or end. Call this with the SKUs' rows of the ledger locked. */
export async function writeDoubts(tx: Tx, judged: readonly SkuJudgement[], at: Date): Promise<void> {
  const rows = judged.flatMap(({ sku, judgement }): DoubtRow[] => {
    if (judgement.kind === 'begins') {
      const { doubt, oddity, believed } = judgement;
      return [{ sku, doubt, oddity, believed: JSON.stringify(Object.fromEntries(believed)) }];
    }
    return judgement.kind === 'ends' ? [{ sku, doubt: null, oddity: null, believed: null }] : [];
  });
  if (rows.length === 0) return;
  await tx`
    update catalog_internal.due d set doubt = n.doubt, oddity = n.oddity, believed = n.believed,
      doubted_at = case when n.doubt is not null then ${at}::timestamptz end
    from unnest(${rows.map(({ sku }) => sku)}::text[], ${rows.map(({ doubt }) => doubt)}::text[],
      ${rows.map(({ oddity }) => oddity)}::text[],
      ${rows.map(({ believed }) => believed)}::text[]::jsonb[]) as n(sku, doubt, oddity, believed)
    where d.sku = n.sku`;
}

interface DoubtRow {
  readonly sku: string;
  readonly doubt: Doubt | null;
  readonly oddity: Oddity | null;
  /** JSON text. */
  readonly believed: string | null;
}

/** Returns the SKUs whose doubt begins, except those that have only moved during a mass move. Pure. */
export const newlyDoubted = (judged: readonly SkuJudgement[]): DoubtedSku[] =>
  judged.flatMap(({ sku, judgement }) =>
    judgement.kind === 'begins' && judgement.oddity !== null ? [{ sku, oddity: judgement.oddity }] : [],
  );

/**
 * Writes that the SKUs were refreshed, and their new state. A price that moved while live clears `hash_before_live`:
 * if the SKU leaves live with its old hash, it must still be asked.
 */
export async function writeStates(
  tx: Tx,
  { answered, states, moved }: AnswerEffects,
  at: Date,
): Promise<void> {
  if (answered.length === 0) return;
  const now = new Map(states.map(({ sku, newState }) => [sku, newState]));
  await tx`
    update catalog.skus s set
      state = coalesce(a.state, s.state),
      removed_at = case when a.found then null else s.removed_at end,
      first_priced_at = case when a.found then coalesce(s.first_priced_at, ${at}::timestamptz) else s.first_priced_at end,
      hash_before_live = case when s.sku = any(${[...moved]}::text[]) then null else s.hash_before_live end,
      priced_at = ${at}, asked_at = ${at}
    from unnest(${answered.map(({ sku }) => sku)}::text[], ${answered.map(({ kind }) => Number(kind === 'record'))}::int[]::boolean[],
      ${answered.map(({ sku }) => now.get(sku) ?? null)}::text[]) as a(sku, found, state)
    where s.sku = a.sku`;
}

const generationsOf = ({ skus }: Claim) => new Map(skus.map(({ sku, generation }) => [sku, generation]));

/** A SKU that is always computed live but not listed as live is deferred once in 2^MAX_LIVE_MARKS refreshes. */
const MAX_LIVE_MARKS = 6;

/** From this place in nextTurn on, the turn that is due first is taken. */
const SOONEST = 7;

/** What decides when the SKUs of an answer are next refreshed. */
export type Settling = { readonly next: NextRefresh } & Pick<AnswerLearning, 'everythingLive'>;

/**
 * Schedules the next refresh of answered SKUs. A SKU that was marked after the claim stays due. Otherwise the first of
 * these cases that applies decides; among the last four, the one that is due soonest (nextTurn):
 * - Removed, in no manifest and not watched: it has had its one request, and is not asked until it is reported again.
 * - Listed, and without a price, now or ever: after as long as it has had none (at least `lostMs`, at most
 *   `notFoundMs`), because the price routes may not know it for hours.
 * - Any other that is removed or not found, even if watched or listed again: after `notFoundMs`. The price routes may
 *   know it again without a delta reporting it.
 * - Doubted: due, but held until a second answer counts.
 * - Live: after the time that was learned for it.
 * - Priced, but in no manifest: after `liveMs`, because nobody reports its moves. It takes a live slot only if it was
 *   last listed as live.
 * - Listed, but with a move that the delta has left out: after `liveMs`, for the same reason.
 * - Listed as snapshot-priced, but still counted as live (postpone): in the turns of live SKUs, after `liveMs`. It may
 *   be live by now, so its prices are judged as a live SKU's until it no longer counts as one.
 * - To be asked once more (second-looks.ts): then.
 * - In any other case: after `snapshotMs`.
 *
 * A promise of its age can bring a refresh forward (`promised_at`). All are settled as if they were in scope;
 * sortByScope then takes out those that are not.
 */
export async function settleAnswered(
  tx: Tx,
  { claim, at }: { readonly claim: Claim; readonly at: Date },
  { answered, ahead, judged, lost, again, missed }: AnswerEffects,
  settling: Settling,
): Promise<void> {
  const { next, everythingLive } = settling;
  const liveMs = new Map(ahead.map(({ sku, nextMs }) => [sku, nextMs]));
  const doubtedMs = new Map(
    judged.flatMap(({ sku, confirmInMs }) => (confirmInMs === null ? [] : [[sku, confirmInMs]])),
  );
  const generation = generationsOf(claim);
  const secs = (ms: number) => ms / 1000;
  const secsOrNull = (ms: number | undefined) => (ms === undefined ? null : secs(ms));
  const lostMs = new Map(
    lost.map(({ sku, minutes }) => [sku, Math.min(Math.max(next.lostMs, minutes * 60_000), next.notFoundMs)]),
  );
  await tx`
    update catalog_internal.due d set
      claim = null, asked_claim = d.claim, asked_because = case when d.generation = a.generation then d.reason end,
      asked_generation = a.generation, deferrals = 0, failures = 0, last_error = null, largest_call = null,
      held_until = case when a.doubted_seconds is not null and d.generation = a.generation
        then now() + make_interval(secs => a.doubted_seconds) end,
      live = d.live and (s.price_source is not distinct from 'live' or ${everythingLive} or d.live_left > 1),
      live_left = greatest(d.live_left - 1, 0),
      live_marks = case when d.live then d.live_marks else greatest(d.live_marks - 1, 0) end,
      missed_moves = a.missed,
      again_at = ${at}::timestamptz + make_interval(secs => a.again_seconds),
      (promised_at, promised_by) = (
        select ${at}::timestamptz + make_interval(secs => catalog_internal.live_promised_interval(w.max_age,
            case when d.live then (select catalog_internal.live_rate()) end)),
          ${at}::timestamptz + make_interval(secs => w.max_age)
        from catalog_internal.watched w where w.sku = d.sku and w.max_age is not null and w.feasible and s.state = 'priced'
      ),
      due_at = case when d.generation = a.generation then next.due_at else coalesce(d.outside_due_at, d.due_at) end, outside_due_at = null,
      reason = case when d.generation = a.generation then next.reason when d.reason = 'scope' then 'changed' else d.reason end,
      lane = case when d.generation = a.generation then catalog_internal.lane_of(next.reason)
        when d.outside_due_at is not null then catalog_internal.lane_of(case when d.reason = 'scope' then 'changed' else d.reason end)
        else d.lane end,
      rank = case when d.generation = a.generation and d.rank = 'Infinity'
        then coalesce((select weight from catalog_internal.watched w where w.sku = d.sku), 1) else d.rank end
    from unnest(${answered.map(({ sku }) => sku)}::text[], ${answered.map(({ sku }) => generation.get(sku) ?? -1)}::int[],
        ${answered.map(({ sku }) => secs(liveMs.get(sku) ?? next.liveMs))}::float8[],
        ${answered.map(({ sku }) => secsOrNull(doubtedMs.get(sku)))}::float8[],
        ${answered.map(({ sku }) => secsOrNull(lostMs.get(sku)))}::float8[], ${answered.map(({ sku }) => again.get(sku) ?? null)}::float8[],
        ${answered.map(({ sku }) => missed.get(sku) ?? null)}::smallint[])
        as a(sku, generation, live_seconds, doubted_seconds, lost_seconds, again_seconds, missed)
      join catalog.skus s using (sku) join catalog_internal.due l using (sku)
      cross join lateral (${nextTurn(tx, at, settling)}) next
    where d.sku = a.sku and d.claim = ${claim.number}`;
}

/**
 * SQL: when a SKU `s` (in the ledger `l`) with the answer `a` is due again, and why, if no mark has come in the
 * meantime: the first turn here that applies, but from SOONEST on the one that is due first.
 */
function nextTurn(tx: Tx, at: Date, { next, everythingLive }: Settling) {
  const after = (ms: number) => tx`now() + make_interval(secs => ${ms / 1000})`;
  return tx`
    select turn.due_at, turn.reason from (
      select 1 as place, 'infinity'::timestamptz as due_at, 'metadata' as reason where s.state = 'removed' and not s.in_manifest
        and not exists (select from catalog_internal.watched w where w.sku = s.sku and w.weight is not null)
      union all select 2, now() + make_interval(secs => a.lost_seconds), 'metadata' where s.in_manifest and a.lost_seconds is not null
      union all select 3, ${after(next.notFoundMs)}, 'metadata' where s.state in ('removed', 'not_found')
      union all select 4, now(), 'doubted' where a.doubted_seconds is not null
      union all select 5, now() + make_interval(secs => a.live_seconds), 'live' where s.price_source = 'live' or ${everythingLive}
      union all select 6, ${after(next.liveMs)}, 'unlisted' where not s.in_manifest
      union all select ${SOONEST}::int, ${after(next.liveMs)}, 'missed' where a.missed > 0
      union all select 8, ${after(next.liveMs)}, 'live' where l.live and l.live_left > 1
      union all select 9, ${at}::timestamptz + make_interval(secs => a.again_seconds), 'again' where a.again_seconds is not null
      union all select 10, ${after(next.snapshotMs)}, ${next.snapshotReason}::text
    ) as turn
    order by least(turn.place, ${SOONEST}), turn.due_at, turn.place limit 1`;
}

/**
 * Gives back SKUs that a delta has removed since the claim: their answer settles nothing, and they are asked again.
 */
export async function returnOvertaken(tx: Tx, claim: Claim, overtaken: readonly string[]): Promise<void> {
  if (overtaken.length === 0) return;
  await tx`
    update catalog_internal.due set claim = null, held_until = null
    where sku = any(${overtaken as string[]}) and claim = ${claim.number}`;
}

/** Errors of a SKU that was answered: it is unknown what the answer says, except that the mirror does not hold it. */
const CONTRADICTING: ErrorCause[] = ['unreadable', 'contradictory'];

/**
 * Deferred and erring SKUs stay due and wait. A mark that has come in the meantime counts as one that comes now
 * (mark_due): it ends no wait except that after an error of the SKU, which is asked again at once. If a spare slot
 * asked for the SKU before its time:
 * - Deferred: due after its wait. While it counts as live, its price is judged as a live SKU's, and its own time may
 *   be far from that.
 * - Answered, but unreadably or with contradictions (CONTRADICTING): due, and for a re-price, because the partner has
 *   said something else than the mirror holds.
 * - In `errors`, or left out: this says nothing about it. It stays in its lane, where spare slots reach it.
 *
 * If it was due:
 * - Deferred: it is computed live, or its call had too many live SKUs, so it counts against the live budget (partner
 *   rules 4.1.3 and 4.1.4). If it is not listed as live, it counts until its next answer; with each further deferral,
 *   for twice as many answers.
 * - Deferred again, or in error: it moves to the `error` lane, and takes no more slots than that lane has. Deferrals
 *   while the ceiling on live computations is met do not count (ownDeferrals).
 * - An error that nearly all SKUs share is counted once, and leaves the lane as it was; one that all live SKUs share
 *   is not counted.
 */
export async function postpone(tx: Tx, claim: Claim, results: readonly SkuResult[]): Promise<void> {
  const waiting = results.filter((result) => result.kind === 'deferred' || result.kind === 'error');
  if (waiting.length === 0) return;
  const generation = generationsOf(claim);
  await tx`
    update catalog_internal.due d set
      claim = null,
      held_until = case when d.generation = h.generation or h.deferred or own.deferrals > 0
          or h.blame = 'alone' or h.blame = 'class' and d.failures = 0
        then clock_timestamp() + make_interval(secs => h.wait) end,
      live = d.live or h.deferred,
      live_marks = case when h.deferred and not d.live then least(d.live_marks + 1, ${MAX_LIVE_MARKS}::int) else d.live_marks end,
      live_left = case when h.deferred and not d.live then 1 << d.live_marks else d.live_left end,
      deferrals = case when not h.deferred then own.deferrals when own.deferrals = 0 and h.because is null then 1 else d.deferrals + 1 end,
      failures = case when h.deferred or h.blame = 'class' then d.failures
        when h.blame = 'general' then greatest(d.failures, 1) else d.failures + 1 end,
      last_error = case when h.deferred and own.deferrals > 0 then null else h.because end,
      largest_call = case when h.blame = 'alone' then 1 end,
      due_at = case when d.outside_due_at is not null then d.due_at
        when h.because = any(${CONTRADICTING}) then least(d.due_at, clock_timestamp())
        when h.deferred then least(d.due_at, clock_timestamp() + make_interval(secs => h.wait)) else d.due_at end,
      -- Back in scope it is due at once.
      outside_due_at = case when d.outside_due_at is not null and h.because = any(${CONTRADICTING})
        then least(d.outside_due_at, clock_timestamp()) else d.outside_due_at end,
      -- While due for these, a price is judged by its probability (view catalog.sku_trust).
      reason = case when s.state = 'priced' and h.because = any(${CONTRADICTING})
        and d.reason in ('live', 'again', 'metadata') then 'missed' else d.reason end,
      lane = case when h.deferred and own.deferrals = 0 and (h.because is null or d.deferrals < ${constant(tx, MOST_UNCOUNTED)})
          or h.blame in ('general', 'class') or d.lane = 0 then d.lane
        when h.blame is null and h.because in ('reported', 'omitted') and d.due_at > clock_timestamp() then d.lane
        else catalog_internal.lane_of('error') end
    from unnest(${waiting.map(({ sku }) => sku)}::text[], ${waiting.map(({ kind }) => Number(kind === 'deferred'))}::int[]::boolean[],
      ${waiting.map((result) => ('blame' in result ? (result.blame ?? null) : null))}::text[],
      ${waiting.map((result) => ('because' in result ? (result.because ?? null) : null))}::text[],
      ${waiting.map((result) => result.waitMs / 1000)}::float8[],
      ${waiting.map(({ sku }) => generation.get(sku) ?? -1)}::int[]) as h(sku, deferred, blame, because, wait, generation)
      join catalog.skus s using (sku) join catalog_internal.due l using (sku)
      cross join lateral (select ${ownDeferrals(tx, 'l')} as deferrals) own
    where d.sku = h.sku and d.claim = ${claim.number}`;
}
