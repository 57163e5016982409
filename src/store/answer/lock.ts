import { type Standing, standingColumns } from '../catalog/audit.ts';
import { isLate } from '../clock.ts';
import { allSent, type Tx } from '../connection/db.ts';
import { type Claim, heldBy } from '../ledger/due.ts';
import { lineColumns } from '../live/product-lines.ts';
import { heldMemories, type LiveRefresh } from '../live/refresh.ts';
import { hintsAt, hintsOf } from '../sellers/hints.ts';
import { type HeldPromise, heldPromise } from '../sellers/promises.ts';
import { IS_SCOPED } from '../sellers/scope.ts';
import type { HeldPrices } from './calibration-evidence.ts';
import type { Doubt } from './doubts.ts';
import type { KnownMassMove } from './mass-move.ts';
import type { Oddity } from './plausibility.ts';
import type { VanishedPrices } from './price-differences.ts';
import type { HeldSecondLook } from './second-looks.ts';

/** State of an asked SKU whose claim is still this one. */
export type LockedSku = Omit<LiveRefresh, 'sizes'> &
  Standing &
  HeldSecondLook &
  VanishedPrices &
  HeldPrices & {
    readonly answerable: boolean;
    readonly state: string;
    readonly live: boolean;
    readonly seenBefore: boolean;
    /** How many sizes it has according to the last manifest line. */
    readonly listedSizes: number | null;
    /**
     * Why its prices are doubted, for how many minutes at the request, and what they were before; null if not doubted.
     */
    readonly doubt: Doubt | null;
    readonly oddity: Oddity | null;
    readonly doubtMinutes: number | null;
    readonly believed: Readonly<Record<string, number>> | null;
    /** How many seconds ago a delta reported the SKU, if the request was the first since then; otherwise null. */
    readonly reportedSeconds: number | null;
    /** Minutes from a delta's last report to the request; null if there was none, or it was the SKU's removal. */
    readonly reportedMinutes: number | null;
    /** The promise of its age; null if there is none. */
    readonly promise: HeldPromise | null;
  };

/** The time with which an answer is written, and whether its SKUs may be out of scope. */
export interface AnswerMoment {
  /** The time to store as when its SKUs were asked: Postgres's clock may have been set back since. */
  readonly at: Date;
  /** Whether that is long ago by this clock, which may have been set forward since. */
  readonly late: boolean;
  readonly scoped: boolean;
}

const readMoment = (tx: Tx, claim: Claim) => tx<[AnswerMoment & KnownMassMove & { againShare: number }]>`
  select least(${claim.askedAt}, clock_timestamp()) as at,
    ${isLate(tx, claim.askedAt)} as late, since is not null and answers is null as "isUnfinished",
    since, kind, usual, factor, case when accepted_at > clock_timestamp() - interval '7 days' then accepted end as accepted,
    late_since is not null as "pricesLag", ${tx.unsafe(IS_SCOPED)} as scoped, again_share as "againShare"
  from catalog_internal.mass_move, catalog_internal.beliefs`;

/** SQL: how long ago a delta reported the SKU `s`, not as removed: only if not asked since, and in any case. */
const reportColumns = (tx: Tx, claim: Claim) => tx`
  case when s.removed_at is distinct from s.reported_at and s.reported_at > coalesce(s.asked_at, '-infinity')
      and date_trunc('milliseconds', s.reported_at) <= ${claim.askedAt}
    then extract(epoch from clock_timestamp() - s.reported_at)::float8 end as "reportedSeconds",
  case when s.removed_at is distinct from s.reported_at
    then greatest(0, extract(epoch from ${claim.askedAt} - s.reported_at)::float8 / 60) end as "reportedMinutes"`;

/** A locked SKU, before comparePrices has added what its prices show. */
type HeldRow = Omit<LockedSku, keyof VanishedPrices>;

/**
 * Locks the asked SKUs, and returns the state of those whose claim is still this one and was given out by this server.
 * Row locks are taken in order of sku, SKUs before ledger, as in every transaction here.
 */
export async function lockAnswered(
  tx: Tx,
  claim: Claim,
  everythingLive: boolean,
): Promise<{
  readonly found: readonly HeldRow[];
  readonly lockedAt: number;
  readonly moment: AnswerMoment;
  readonly massMove: KnownMassMove;
  /** The part of SKUs that is asked once more if an answer shows nothing new of what was reported. */
  readonly againShare: number;
}> {
  const asked = claim.skus.map(({ sku }) => sku);
  // Sent in one go and in this order, because the last must see what was committed while the previous one waited for
  // its locks. The driver sends a statement when it is first awaited, so none may be awaited before earlier ones.
  const [, rows, [{ hints }], [{ at, late, scoped, againShare, ...massMove }]] = await allSent([
    tx`select from catalog.skus where sku = any(${asked}) order by sku for no key update`,
    tx<Omit<HeldRow, 'hints'>[]>`
    select d.sku, s.state, s.state <> 'removed' or d.generation = a.generation as answerable,
      (s.price_source = 'live' or ${everythingLive}) as live, s.first_priced_at is not null as "seenBefore",
      s.sizes as "listedSizes",
      r.alpha, r.beta, r.prior_part as prior, ${heldMemories(tx)} as memories,
      r.sizes_seen as "sizesSeen", r.sizes_moved as "sizesMoved", r.wholesale_moves as "wholesaleMoves",
      r.wholesale_minutes as "wholesaleMinutes", coalesce(r.hazard, r.hint_hazard) as hazard, r.told as prediction,
      (extract(epoch from ${claim.askedAt}) / 60)::float8 as at,
      case when n.line is not null then json_build_object('id', n.line::text, 'brand', p0.brand, 'model', p0.model,
        'state', ${lineColumns(tx)}) end as line, coalesce(w.weight, 1)::float8 as weight,
      e.live_prior_minutes as "priorMinutes", past.moves as "pastMoves", past.minutes as "pastMinutes",
      (extract(epoch from ${claim.askedAt} - s.asked_at) / 60)::float8 as minutes, false as moved,
      d.reason = 'changed' or coalesce(s.reported_at > coalesce(s.asked_at, '-infinity'), false) as told,
      h.cohort, p."pRight", p."sizePRight",
      exists (select from catalog_internal.random_looks l where l.sku = d.sku and l.look_at <= ${claim.askedAt}) as random,
      ${reportColumns(tx, claim)},
      ${standingColumns(tx, claim.askedAt)}, (${heldPromise(tx)}) as promise,
      extract(epoch from d.again_at - ${claim.askedAt})::float8 as "againInSeconds", d.asked_because as "askedBecause",
      d.doubt, d.oddity, d.believed,
      (extract(epoch from ${claim.askedAt} - d.doubted_at) / 60)::float8 as "doubtMinutes"
    from unnest(${asked}::text[], ${claim.skus.map(({ generation }) => generation)}::int[]) as a(sku, generation)
    join catalog_internal.due d using (sku) join catalog.skus s using (sku)
    left join catalog_internal.live_rates r using (sku) left join catalog_internal.watched w using (sku)
    left join lateral (
      select p.brand, p.model from catalog.products p where p.sku = d.sku and s.price_source = 'live' offset 0
    ) p0 on true
    cross join lateral (select catalog_internal.line_of(p0.brand, p0.model) as line) n
    left join catalog_internal.live_lines l on l.line = n.line
    cross join catalog_internal.price_beliefs() e
    cross join lateral (
      select catalog_internal.cohort_of(s.price_source, s.in_manifest and d.missed_moves is null, d.live, d.reason = 'changed') as cohort,
        case when s.state = 'priced' then greatest(0, extract(epoch from ${claim.askedAt} - s.priced_at)::float8 / 60) end as minutes
    ) h
    left join lateral (
      select catalog_internal.p_right(by_rate, reported, false, h.minutes, r, e) as "pRight",
        catalog_internal.p_right(by_rate, reported, true, h.minutes, r, e) as "sizePRight"
      from (select h.cohort in ('live', 'unlisted') as by_rate,
        case when h.cohort = 'reported' then true when d.again_at is null then false end as reported) b where h.minutes is not null
    ) p on true
    -- With OFFSET 0 the function is called for these SKUs alone, and not for all to be filtered afterwards.
    left join lateral (
      select p.* from (
        select where r.sku is null and (s.price_source = 'live' or not s.in_manifest or d.missed_moves > 0 or ${everythingLive}) offset 0
      ) unknown
        cross join lateral catalog_internal.past_moves_planned(s.sku, s.first_priced_at) p
    ) past on true
    where ${heldBy(tx, claim, 'd')}
    order by d.sku for update of d`,
    hintsAt(tx, asked),
    readMoment(tx, claim),
  ]);
  const found = rows.map((row) => ({ ...row, hints: hintsOf(hints, row.sku) }));
  return { found, lockedAt: performance.now(), moment: { at, late, scoped }, massMove, againShare };
}
