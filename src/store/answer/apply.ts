import { doubtsOf, writeDoubts } from './doubted.ts';
import type { KnownMassMove } from './doubts.ts';
import { type LockedSku, type AnswerEffects, effectsOf } from './effects.ts';
import type { SkuResult, NextRefresh, Applied } from './types.ts';
import { failpoint } from '../../lib/failpoint.ts';
import { comparePrices, compareProducts } from './differences.ts';
import { readMuted, storeMuted } from './muted.ts';
import type { Moved, Turned } from './members.ts';
import { writePrices, writeProducts } from './writes.ts';
import { auditRefreshes, standingColumns } from '../audit.ts';
import { storeLooks } from '../calibration.ts';
import { correctedMeanings, hasChanges, writeChanges } from '../changes.ts';
import { isLate, notingLateClock } from '../clock.ts';
import { type Sql, transaction, type Tx } from '../db.ts';
import type { Claim } from '../due.ts';
import { forgetHints, hintsAt, hintsOf, storeHintTests } from '../hints.ts';
import { lineColumns } from '../live-lines.ts';
import { forgetDrawn, forgetHazards, heldMemories, writeRates } from '../live.ts';
import { followMoves } from '../mass-moves.ts';
import { countPromises, heldPromise, writePromiseCases } from '../promises.ts';
import { IS_SCOPED, sortByScope } from '../scope.ts';

/**
 * Applies one bulk answer in one transaction: prices and their history, metadata and its history, SKU states, and the
 * ledger. A SKU counts only where the claim is still this one: a lease that ran out, or an answer applied before, changes
 * nothing. What no answer is applied to is not settled by it: a SKU that a delta has removed since the claim is given back, due as it
 * was. All this is ordered by claim and generation, which only grow, and never by a clock.
 *
 * One round trip locks and compares, and one writes and commits; in between it is decided what follows.
 */
export async function applyAnswer(
  sql: Sql,
  claim: Claim,
  results: readonly SkuResult[],
  next: NextRefresh,
): Promise<Applied> {
  const settled = results.filter(({ kind }) => kind === 'record' || kind === 'not_found');
  const { marks, reported, moved, muted, tests, ofHints, judged, massMove, ...applied } = await transaction(
    sql,
    async (tx, last) => {
      const [{ locked, lockedAt, moment, massMove }, prices, products, muted] = await Promise.all([
        lockAnswered(tx, claim, next.everythingLive ?? false),
        comparePrices(tx, settled),
        compareProducts(tx, settled),
        readMuted(tx),
      ]);
      failpoint('bulk.compared');
      const outcome = effectsOf(locked, settled, { prices, products }, next, { muted, massMove });
      const comparedAt = performance.now();
      last(writeEffects(tx, { claim, ...moment }, results, outcome, next));
      failpoint('bulk.written');
      return {
        accepted: locked.length - outcome.overtaken.length,
        priceChanges: outcome.moves.length,
        metadataChanges: outcome.fields.length,
        sizeTypeChanges: correctedMeanings(outcome.fields),
        reported: outcome.answered.flatMap(
          ({ sku }) => locked.find((row) => row.sku === sku)?.reportedSeconds ?? [],
        ),
        marks: { lockedAt, comparedAt, notified: hasChanges(outcome) },
        moved: outcome.members,
        muted,
        tests: outcome.tests,
        ofHints: outcome.ofHints,
        judged: outcome.judged,
        massMove,
        lines: outcome.lines,
        promises: countPromises(outcome.promises),
      };
    },
  );
  const { lockedAt, ...times } = { ...marks, committedAt: performance.now() };
  const members = await noteMembers(sql, moved, muted, next);
  next.looks?.note(tests);
  const counts = next.looks?.take() ?? [];
  // What was applied stays applied: counts that cannot be written now are written with the next ones.
  await storeLooks(sql, counts).catch(() => next.looks?.giveBack(counts));
  next.hints?.note(ofHints.tests, ofHints.moves, ofHints.told);
  const shown = next.hints?.take() ?? null;
  if (shown !== null && !(await storeHintTests(sql, shown).catch(() => false))) next.hints?.giveBack(shown);
  const sinceLock = (performance.now() - lockedAt) / 1000;
  // As little as those counts may this fail what was applied: the next answer tries again.
  const massMoved = await followMoves(sql, next.moves, judged, massMove).catch(() => null);
  return {
    ...applied,
    times,
    members,
    massMoved,
    ...doubtsOf(judged),
    reportSeconds: reported.map((seconds) => seconds + sinceLock),
  };
}

/** What the answer has shown of members; stored where one is to be muted, or heard again. Outside of its transaction, as every lesson. */
async function noteMembers(
  sql: Sql,
  moved: readonly Moved[],
  muted: ReadonlySet<string>,
  { members: watch }: NextRefresh,
): Promise<Turned> {
  const turned = watch?.note(moved, muted) ?? { muted: [], unmuted: [] };
  if (turned.muted.length + turned.unmuted.length > 0) await storeMuted(sql, turned);
  return turned;
}

/** Sends everything that an outcome changes in one go; it is carried out in this order. */
async function writeEffects(
  tx: Tx,
  { claim, at, late, scoped }: { readonly claim: Claim } & AnswerMoment,
  results: readonly SkuResult[],
  effects: AnswerEffects,
  next: NextRefresh,
): Promise<void> {
  const { answered, overtaken, prices, ahead, findings, drawn, boosted } = effects;
  await Promise.all([
    writePrices(tx, prices, at),
    writeDoubts(tx, effects.judged, at),
    writeProducts(tx, answered, effects, at),
    writeStates(tx, effects, at),
    writeRates(tx, ahead),
    forgetHazards(tx, boosted),
    forgetHints(tx, effects.hinted),
    forgetDrawn(tx, drawn),
    settleAnswered(tx, { claim, at }, effects, next),
    writePromiseCases(tx, effects.promises),
    giveBack(tx, claim, overtaken),
    postpone(tx, claim, results),
    scoped ? sortByScope(tx, answered) : null,
    auditRefreshes(tx, findings, at),
    writeChanges(tx, effects, at),
    late ? notingLateClock(tx, claim.askedAt) : null,
  ]);
}

const readMoment = (tx: Tx, claim: Claim) => tx<[AnswerMoment & KnownMassMove]>`
  select least(${claim.askedAt}, clock_timestamp()) as at, ${isLate(tx, claim.askedAt)} as late, since, usual, ${tx.unsafe(IS_SCOPED)} as scoped
  from catalog_internal.mass_move`;

interface AnswerMoment {
  /** When its SKUs were asked, as it is written; Postgres's clock may have been set back since. */
  readonly at: Date;
  /** Long ago by that clock, which may have been set forward since. */
  readonly late: boolean;
  readonly scoped: boolean;
}

/**
 * Locks the asked SKUs and returns the state of each whose claim is still this one. Row locks in order of sku, SKUs before
 * ledger, as every transaction here takes them.
 */
async function lockAnswered(
  tx: Tx,
  claim: Claim,
  everythingLive: boolean,
): Promise<{
  readonly locked: readonly LockedSku[];
  readonly lockedAt: number;
  readonly moment: AnswerMoment;
  readonly massMove: KnownMassMove;
}> {
  const asked = claim.skus.map(({ sku }) => sku);
  const generations = claim.skus.map(({ generation }) => generation);
  // Sent in one go and in this order: the last is to see what was committed while the one before waited for its locks. The
  // driver sends a statement when it is first waited for, so none of them may be waited for earlier than those before it.
  const [, found, [{ hints }], [{ at, late, scoped, ...massMove }]] = await Promise.all([
    tx`select from catalog.skus where sku = any(${asked}) order by sku for update`,
    tx<Omit<LockedSku, 'hints'>[]>`
    select d.sku, s.state, s.state <> 'removed' or d.generation = a.generation as answerable,
      (s.price_source = 'live' or ${everythingLive}) as live, s.first_priced_at is not null as "seenBefore",
      r.alpha, r.beta, r.prior_part as prior, ${heldMemories(tx)} as memories, r.sizes_seen as "sizesSeen", r.sizes_moved as "sizesMoved", r.wholesale_moves as "wholesaleMoves",
      r.wholesale_minutes as "wholesaleMinutes", coalesce(r.hazard, r.hint_hazard) as hazard, r.told,
      (extract(epoch from ${claim.askedAt}) / 60)::float8 as at,
      case when n.line is not null then json_build_object('id', n.line::text, 'brand', p0.brand, 'model', p0.model,
        'state', ${lineColumns(tx)}) end as line, coalesce(w.weight, 1)::float8 as weight,
      e.live_prior_minutes as "priorMinutes", past.moves as "pastMoves", past.minutes as "pastMinutes",
      (extract(epoch from ${claim.askedAt} - s.asked_at) / 60)::float8 as minutes, false as moved,
      h.cohort, p."pRight", p."sizePRight",
      exists (select from catalog_internal.random_looks l where l.sku = d.sku and l.look_at <= ${claim.askedAt}) as random,
      case when s.removed_at is distinct from s.reported_at and s.reported_at > coalesce(s.asked_at, '-infinity')
          and date_trunc('milliseconds', s.reported_at) <= ${claim.askedAt}
        then extract(epoch from clock_timestamp() - s.reported_at)::float8 end as "reportedSeconds",
      ${standingColumns(tx, claim.askedAt)}, (${heldPromise(tx)}) as promise, d.doubt, d.oddity, d.believed, v.vanished, v.minutes as "vanishedMinutes",
      (extract(epoch from ${claim.askedAt} - d.doubted_at) / 60)::float8 as "doubtMinutes"
    from unnest(${asked}::text[], ${generations}::int[]) as a(sku, generation)
    join catalog_internal.due d using (sku) join catalog.skus s using (sku)
    left join catalog_internal.live_rates r using (sku) left join catalog_internal.watched w using (sku)
    left join catalog.products p0 on p0.sku = d.sku and s.price_source = 'live'
    cross join lateral (select catalog_internal.line_of(p0.brand, p0.model) as line) n
    left join catalog_internal.live_lines l on l.line = n.line
    cross join catalog_internal.price_beliefs() e
    cross join lateral (
      select catalog_internal.cohort_of(s.price_source, s.in_manifest, d.live, d.reason = 'changed') as cohort,
        case when s.state = 'priced' then greatest(0, extract(epoch from ${claim.askedAt} - s.priced_at)::float8 / 60) end as minutes
    ) h
    left join lateral (
      select catalog_internal.p_right(by_rate, h.cohort = 'reported', false, h.minutes, r, e) as "pRight",
        catalog_internal.p_right(by_rate, h.cohort = 'reported', true, h.minutes, r, e) as "sizePRight"
      from (select h.cohort in ('live', 'unlisted') as by_rate) b where h.minutes is not null
    ) p on true
    left join lateral (
      select jsonb_object_agg(h.size, h.old_price) as vanished, (extract(epoch from ${claim.askedAt} - max(h.observed_at)) / 60)::float8 as minutes
      from (select where s.first_priced_at is not null and not exists (select from catalog.prices held where held.sku = s.sku) offset 0) gone
        cross join lateral (
          select size, old_price, new_price, observed_at, observed_at = first_value(observed_at) over (order by id desc) as is_last
          from catalog.price_history where sku = s.sku order by id desc limit 100
        ) h
      where h.is_last and h.new_price is null and h.old_price is not null
    ) v on true
    -- With OFFSET 0 the function is called for these SKUs alone, and not for all to be filtered afterwards.
    left join lateral (
      select p.* from (select where r.sku is null and (s.price_source = 'live' or not s.in_manifest or ${everythingLive}) offset 0) unknown
        cross join lateral catalog_internal.past_moves(s.sku, s.first_priced_at) p
    ) past on true
    where d.claim = ${claim.number}
    order by d.sku for update of d`,
    hintsAt(tx, asked),
    readMoment(tx, claim),
  ]);
  const locked = found.map((row) => ({ ...row, hints: hintsOf(hints, row.sku) }));
  return { locked, lockedAt: performance.now(), moment: { at, late, scoped }, massMove };
}

/**
 * Writes that the SKUs were refreshed, and what they are now. One whose price moved while it was live is not what it was,
 * should it come back with its hash of before.
 */
async function writeStates(tx: Tx, { answered, states, moved }: AnswerEffects, at: Date): Promise<void> {
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

/** A SKU that is always computed live although it is not listed so is deferred once in 2 to this power refreshes. */
const MOST_LIVE_MARKS = 6;

/**
 * Schedules the next refresh of answered SKUs, where no mark came since the claim; a newer mark leaves the SKU due. A
 * removed SKU that is still 0009 has had its one request and is not asked until it is reported again; a watched one is
 * asked as often as any that is not found, because the price routes may know it again without a delta reporting it.
 * One that is doubted is due, and waits until a second answer counts. Nobody reports the moves of a priced one that no manifest lists: it is asked as often as a live one, and has no live slot
 * unless it was last listed as live, since whether the partner computes it live is not known. When a promise of its age has it come
 * before that is a time of its own. All are settled as if they were in scope; who is not
 * is put out of it afterwards (sortByScope).
 */
async function settleAnswered(
  tx: Tx,
  { claim, at }: { readonly claim: Claim; readonly at: Date },
  { answered, ahead, judged }: AnswerEffects,
  next: NextRefresh,
): Promise<void> {
  const liveMs = new Map(ahead.map(({ sku, nextMs }) => [sku, nextMs]));
  const doubtedMs = new Map(
    judged.flatMap(({ sku, againInMs }) => (againInMs === null ? [] : [[sku, againInMs]])),
  );
  const generation = new Map(claim.skus.map((sku) => [sku.sku, sku.generation]));
  const secs = (ms: number) => ms / 1000;
  await tx`
    update catalog_internal.due d set
      claim = null, asked_claim = d.claim, asked_because = case when d.generation = a.generation then d.reason end,
      asked_generation = a.generation, deferrals = 0, failures = 0, largest_call = null,
      held_until = case when a.doubted_seconds is not null then now() + make_interval(secs => a.doubted_seconds) end,
      live = d.live and (s.price_source is not distinct from 'live' or ${next.everythingLive ?? false} or d.live_left > 1),
      live_left = greatest(d.live_left - 1, 0),
      live_marks = case when d.live then d.live_marks else greatest(d.live_marks - 1, 0) end,
      (promised_at, promised_by) = (
        select ${at}::timestamptz + make_interval(secs => catalog_internal.promised_interval(w.max_age)), ${at}::timestamptz + make_interval(secs => w.max_age)
        from catalog_internal.watched w where w.sku = d.sku and w.max_age is not null and w.feasible and s.state = 'priced'
      ),
      due_at = case when d.generation = a.generation then next.due_at else coalesce(d.outside_due_at, d.due_at) end, outside_due_at = null,
      reason = case when d.generation = a.generation then next.reason when d.reason = 'scope' then 'changed' else d.reason end,
      lane = case when d.generation = a.generation then catalog_internal.lane_of(next.reason)
        when d.outside_due_at is not null then catalog_internal.lane_of(case when d.reason = 'scope' then 'changed' else d.reason end) else d.lane end,
      rank = case when d.generation = a.generation and d.rank = 'Infinity'
        then coalesce((select weight from catalog_internal.watched w where w.sku = d.sku), 1) else d.rank end
    from unnest(${answered.map(({ sku }) => sku)}::text[], ${answered.map(({ sku }) => generation.get(sku) ?? -1)}::int[],
        ${answered.map(({ sku }) => secs(liveMs.get(sku) ?? next.liveMs))}::float8[],
        ${answered.map(({ sku }) => (doubtedMs.has(sku) ? secs(doubtedMs.get(sku) ?? 0) : null))}::float8[]) as a(sku, generation, live_seconds, doubted_seconds)
      join catalog.skus s using (sku)
      cross join lateral (
        select case
          when s.state = 'removed' and not exists (select from catalog_internal.watched w where w.sku = s.sku and w.weight is not null) then 'infinity'::timestamptz
          when s.state in ('removed', 'not_found') then now() + make_interval(secs => ${secs(next.notFoundMs)})
          when a.doubted_seconds is not null then now()
          when s.price_source = 'live' or ${next.everythingLive ?? false} then now() + make_interval(secs => a.live_seconds)
          when not s.in_manifest then now() + make_interval(secs => ${secs(next.liveMs)})
          else now() + make_interval(secs => ${secs(next.snapshotMs)})
        end as due_at,
        case
          when s.state in ('removed', 'not_found') then 'metadata'
          when a.doubted_seconds is not null then 'doubted'
          when s.price_source = 'live' or ${next.everythingLive ?? false} then 'live'
          when not s.in_manifest then 'unlisted'
          else ${next.snapshotReason}
        end as reason
      ) next
    where d.sku = a.sku and d.claim = ${claim.number}`;
}

/** An answer that came too late for them settles nothing: they are asked about again. */
async function giveBack(tx: Tx, claim: Claim, overtaken: readonly string[]): Promise<void> {
  if (overtaken.length === 0) return;
  await tx`
    update catalog_internal.due set claim = null, held_until = null
    where sku = any(${overtaken as string[]}) and claim = ${claim.number}`;
}

/**
 * Deferred and erring SKUs stay due as they were and wait, whatever marks came meanwhile. A deferred SKU has shown
 * that it is computed live, so it counts against the live budget (partner rules 4.1.3 and 4.1.4), or that its call had too much of it:
 * one that is not listed as live counts until its next answer, and each time that it is deferred again for twice as many.
 */
async function postpone(tx: Tx, claim: Claim, results: readonly SkuResult[]): Promise<void> {
  const waiting = results.filter((result) => result.kind === 'deferred' || result.kind === 'error');
  if (waiting.length === 0) return;
  await tx`
    update catalog_internal.due d set
      claim = null,
      held_until = clock_timestamp() + make_interval(secs => h.wait),
      live = d.live or h.deferred,
      live_marks = case when h.deferred and not d.live then least(d.live_marks + 1, ${MOST_LIVE_MARKS}::int) else d.live_marks end,
      live_left = case when h.deferred and not d.live then 1 << d.live_marks else d.live_left end,
      deferrals = d.deferrals + h.deferred::int,
      failures = case when h.deferred then d.failures else d.failures + 1 end,
      largest_call = case when h.alone then 1 end,
      lane = case when h.deferred or d.lane = 0 then d.lane else catalog_internal.lane_of('error') end
    from unnest(${waiting.map(({ sku }) => sku)}::text[], ${waiting.map(({ kind }) => Number(kind === 'deferred'))}::int[]::boolean[],
      ${waiting.map((result) => Number(result.kind === 'error' && result.alone === true))}::int[]::boolean[],
      ${waiting.map((result) => result.waitMs / 1000)}::float8[]) as h(sku, deferred, alone, wait)
    where d.sku = h.sku and d.claim = ${claim.number}`;
}
