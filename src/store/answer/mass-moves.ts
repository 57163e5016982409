import type { Clock } from '../../lib/clock.ts';
import type { Sql } from '../connection/db.ts';
import { APART_MINUTES, HOUR_MINUTES, type KnownMassMove, type SkuJudgement } from './doubts.ts';
import type { AnswerObservers } from './observers.ts';

/*
 * Prices that move implausibly in masses: a fault of the partner, or a crash of the market. Nobody can tell these
 * apart by one answer, so while it goes on each move is doubted until a second answer says the same. What is counted
 * is what one process has seen within an hour.
 */

const WINDOW_MS = HOUR_MINUTES * 60_000;
const SLICES = 60;
const SLICE_MS = WINDOW_MS / SLICES;

/** Answered SKUs of the hour, and moved ones among them, from which on they may show a mass move. */
const ENOUGH = 200;
/** Moved SKUs of the hour that suffice to show that a mass move goes on. */
const SOME = 20;
/** Part of the answered SKUs that is implausible, or that has lost all its prices. */
const IMPLAUSIBLE_PART = 0.01;
const LOST_PART = 0.25;
/**
 * Prices move far from this many times the usual move on. The least that is taken as usual, and what is far while
 * that is not known (natural logarithms).
 */
const TIMES_USUAL = 8;
const MIN_USUAL = 0.02;
const UNKNOWN_FAR = Math.log(2);

/**
 * Moves are counted by how far they went, in steps of a tenth from 1/10,000 on: their median is known to a twentieth.
 */
const STEPS = 128;
const stepOf = (move: number) =>
  Math.min(STEPS - 1, Math.max(0, Math.floor(Math.log(move / 1e-4) / Math.log(1.1))));
const moveAt = (step: number) => 1e-4 * 1.1 ** (step + 0.5);

/** What answers of the last hour have shown. */
export interface HourOfMoves {
  readonly answers: number;
  readonly implausible: number;
  readonly lost: number;
  readonly moves: number;
  /** Median; null without any. */
  readonly move: number | null;
}

/**
 * Whether this is more than chance, or an ordinary market, would bring. `going`: whether it goes on, which less
 * tells. Pure.
 */
export function isMassMove(
  { answers, implausible, lost, moves, move }: HourOfMoves,
  usual: number | null,
  going: boolean,
): MassMove['kind'] | null {
  if (answers < ENOUGH) return null;
  const share = going ? 0.5 : 1;
  if (implausible > share * IMPLAUSIBLE_PART * answers) return 'implausible';
  if (lost > share * LOST_PART * answers) return 'lost';
  const far = usual === null ? UNKNOWN_FAR : TIMES_USUAL * Math.max(MIN_USUAL, usual);
  const isFar = moves >= (going ? SOME : ENOUGH) && (move ?? 0) > (going ? far / 2 : far);
  return isFar ? 'far' : null;
}

interface Slice {
  at: number;
  answers: number;
  implausible: number;
  lost: number;
  moves: number;
  readonly steps: Uint32Array;
}

/** What one process has seen of the moves of the last hour. */
export class MoveCounts {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #slices: Slice[] = [];
  #learnedAt: number;
  #going = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#learnedAt = clock.monotonic();
  }

  note(judged: readonly SkuJudgement[]): void {
    const samples = judged.flatMap(({ sample }) => (sample === null ? [] : [sample]));
    if (samples.length === 0) return;
    const slice = this.#slice();
    for (const { odd, lost, move } of samples) {
      slice.answers += 1;
      slice.implausible += Number(odd);
      slice.lost += Number(lost);
      if (move === null) continue;
      slice.moves += 1;
      slice.steps[stepOf(move)]! += 1;
    }
  }

  #slice(): Slice {
    const at = Math.floor(this.#clock.monotonic() / SLICE_MS);
    const last = this.#slices.at(-1);
    if (last?.at === at) return last;
    this.#slices = this.#slices.filter((slice) => slice.at > at - SLICES);
    const slice = { at, answers: 0, implausible: 0, lost: 0, moves: 0, steps: new Uint32Array(STEPS) };
    this.#slices.push(slice);
    return slice;
  }

  hour(): HourOfMoves {
    const from = Math.floor(this.#clock.monotonic() / SLICE_MS) - SLICES;
    const slices = this.#slices.filter(({ at }) => at > from);
    const sum = (of: (slice: Slice) => number) => slices.reduce((total, slice) => total + of(slice), 0);
    const moves = sum((slice) => slice.moves);
    let [step, seen] = [0, sum(({ steps }) => steps[0] ?? 0)];
    while (seen * 2 < moves) {
      step += 1;
      const at = step;
      seen += sum(({ steps }) => steps[at] ?? 0);
    }
    return {
      answers: sum((slice) => slice.answers),
      implausible: sum((slice) => slice.implausible),
      lost: sum((slice) => slice.lost),
      moves,
      move: moves === 0 ? null : moveAt(step),
    };
  }

  /** Whether moves in masses go on, as Postgres says: what was counted before that began, or ended, has led to it. */
  follow(going: boolean): void {
    if (going !== this.#going) this.#slices = [];
    this.#going = going;
  }

  /** Once an hour with enough moves: how far they went, for what is usual. */
  usualMove(): number | null {
    const now = this.#clock.monotonic();
    if (now - this.#learnedAt < WINDOW_MS) return null;
    this.#learnedAt = now;
    const { moves, move } = this.hour();
    return moves >= ENOUGH ? move : null;
  }
}

/** Prices move implausibly in masses. `implausible`: of so many answers, or those that lost all prices (`lost`). */
export interface MassMove {
  readonly since: Date;
  readonly kind: 'implausible' | 'lost' | 'far';
  readonly answers: number;
  readonly implausible: number;
  readonly move: number | null;
}

/** Moves in masses that have begun, with what shows them, or ended after so many seconds. */
export type MassMoved =
  | ({ readonly event: 'began'; readonly skus: number } & Omit<MassMove, 'since'>)
  | { readonly event: 'ended'; readonly seconds: number };

/**
 * Counts what an answer has shown of moves, and begins or ends the time in which each is doubted; once an hour,
 * learns what is usual. Outside of the answer's transaction, as every lesson.
 */
export async function followMoves(
  sql: Sql,
  counts: AnswerObservers['moves'],
  judged: readonly SkuJudgement[],
  { since, usual }: KnownMassMove,
): Promise<MassMoved | null> {
  counts.follow(since !== null);
  counts.note(judged);
  const hour = counts.hour();
  const kind = isMassMove(hour, usual, since !== null);
  if (since === null && kind !== null) return await begin(sql, kind, hour);
  if (since !== null && kind === null && hour.answers >= ENOUGH) return await end(sql);
  const learned = kind === null && since === null ? counts.usualMove() : null;
  // In a day or so, what has become usual is known.
  if (learned !== null)
    await sql`
      update catalog_internal.mass_move set usual = coalesce(usual + (${learned}::real - usual) / 12, ${learned}::real)
      where ${unlocked(sql)}`;
  return null;
}

/**
 * SQL: nobody holds the row. A connection that has fallen silent may, and holds up no answer; the next one tries again.
 */
const unlocked = (sql: Sql) => sql`id in (select id from catalog_internal.mass_move for update skip locked)`;

async function begin(sql: Sql, kind: MassMove['kind'], hourOfMoves: HourOfMoves): Promise<MassMoved | null> {
  const { answers, move } = hourOfMoves;
  const implausible = kind === 'lost' ? hourOfMoves.lost : hourOfMoves.implausible;
  // Before it is said, so that what fails here is tried again by the next answer; and once more for what moved
  // meanwhile.
  const skus = await doubtMoved(sql);
  const begun = await sql`
    update catalog_internal.mass_move
    set since = clock_timestamp(), kind = ${kind}, answers = ${answers}, implausible = ${implausible}, move = ${move}
    where since is null and ${unlocked(sql)}`;
  if (begun.count === 0) return null;
  return { event: 'began', kind, skus: skus + (await doubtMoved(sql)), answers, implausible, move };
}

/** SKUs that are doubted in one transaction, so that nobody waits long for the rows of the ledger. */
const PIECE = 5000;

/** Doubts every SKU that has moved within the hour, and has it asked again. Returns how many. */
async function doubtMoved(sql: Sql): Promise<number> {
  let skus = 0;
  for (let after: string | null = ''; after !== null;) {
    const [piece] = await doubtPiece(sql, after);
    skus += piece.skus;
    after = piece.last;
  }
  return skus;
}

/**
 * The next SKUs after `after`, locked in order of sku, as everyone locks the ledger. `last` is the last of them; null
 * where there was none.
 */
const doubtPiece = (sql: Sql, after: string) => sql<[{ last: string | null; skus: number }]>`
  with moved as materialized (
    select distinct on (sku, size) sku, size, old_price from catalog.price_history
    where observed_at > clock_timestamp() - make_interval(secs => ${WINDOW_MS / 1000}) and sku > ${after} order by sku, size, id
  ),
  piece as materialized (
    select d.sku, d.doubt is null as is_new from catalog_internal.due d
    where d.sku in (select distinct sku from moved order by sku limit ${PIECE}) order by d.sku for update of d
  ),
  before as (
    select p.sku, jsonb_object_agg(p.size, coalesce(m.old_price, p.price))
      filter (where coalesce(m.old_price, p.price) is not null) as prices
    from piece join catalog.prices p using (sku) left join moved m using (sku, size) where is_new group by p.sku
  ),
  doubted as (
    update catalog_internal.due d set doubt = 'mass-move', doubted_at = s.asked_at, believed = coalesce(b.prices, '{}'),
      oddity = null, generation = generation + 1,
      due_at = case when d.outside_due_at is null then least(d.due_at, clock_timestamp()) else d.due_at end,
      outside_due_at = case when d.outside_due_at is not null then least(d.outside_due_at, clock_timestamp()) end,
      held_until = coalesce(d.held_until, s.asked_at + make_interval(mins => ${APART_MINUTES})),
      reason = case when coalesce(d.outside_due_at, d.due_at) <= clock_timestamp() then d.reason else 'doubted' end,
      lane = case when d.outside_due_at is not null or d.due_at <= clock_timestamp() then d.lane
        else catalog_internal.lane_of('doubted') end
    from before b join catalog.skus s using (sku) where d.sku = b.sku and s.asked_at is not null
    returning d.outside_due_at is null as is_inside
  )
  select (select max(sku) from piece) as last, (select count(*) filter (where is_inside)::int from doubted) as skus`;

/**
 * Has SKUs asked again that have lost all their prices since an hour before `since`: the partner may have been wrong.
 */
async function askLost(sql: Sql, since: Date): Promise<void> {
  for (let after: string | null = ''; after !== null;) {
    const [piece]: [{ last: string | null }] = await sql`
      with lost as materialized (
        select distinct sku from catalog.price_history
        where observed_at > ${since}::timestamptz - make_interval(secs => ${WINDOW_MS / 1000})
          and new_price is null
          and sku > ${after}
        order by sku limit ${PIECE}
      ),
      marked as (
        select catalog_internal.mark_due(array_agg(sku order by sku), 'doubted') from lost l
        where not exists (select from catalog.prices p where p.sku = l.sku and p.price is not null)
          and exists (select from catalog.skus s where s.sku = l.sku and s.state <> 'removed')
      )
      select (select max(sku) from lost) as last, (select count(*) from marked)`;
    after = piece.last;
  }
}

async function end(sql: Sql): Promise<MassMoved | null> {
  const [going] = await sql<
    { since: Date }[]
  >`select since from catalog_internal.mass_move where since is not null and kind = 'lost'`;
  // Before it is said, as what begins it.
  if (going !== undefined) await askLost(sql, going.since);
  const [ended] = await sql<{ seconds: number }[]>`
    with before as (select since from catalog_internal.mass_move where since is not null for update skip locked)
    update catalog_internal.mass_move m set since = null, kind = null, answers = null, implausible = null, move = null
    from before returning extract(epoch from clock_timestamp() - before.since)::float8 as seconds`;
  return ended === undefined ? null : { event: 'ended', seconds: Math.round(ended.seconds) };
}

/** Doubted SKUs, and moves in masses where they go on. */
export interface Doubts {
  readonly implausible: number;
  readonly massMoved: number;
  /** One of them, doubted most recently. */
  readonly last: string | null;
  readonly massMove: MassMove | null;
}

export async function readDoubts(sql: Sql): Promise<Doubts> {
  const [row] = await sql<
    [MassMoveRow & { implausibleSkus: number; movedSkus: number; last: string | null }]
  >`
    select m.since, m.kind, m.answers, m.implausible, m.move, d.*
    from catalog_internal.mass_move m cross join (
      select (count(*) filter (where doubt = 'implausible'))::int as "implausibleSkus",
        (count(*) filter (where doubt = 'mass-move'))::int as "movedSkus", (array_agg(sku order by doubted_at desc, sku))[1] as last
      from catalog_internal.due due
      -- What has no price any longer is doubted only where it comes back.
      where doubt is not null and outside_due_at is null
        and exists (select from catalog.prices p where p.sku = due.sku and p.price is not null)
    ) d`;
  const { implausibleSkus, movedSkus, last, since, kind, answers, implausible, move } = row;
  const massMove =
    since === null || kind === null
      ? null
      : { since, kind, answers: answers ?? 0, implausible: implausible ?? 0, move };
  return { implausible: implausibleSkus, massMoved: movedSkus, last, massMove };
}

type MassMoveRow = { readonly [Member in keyof MassMove]: MassMove[Member] | null };

/**
 * Ends doubts: the seller says that these prices are the market's; null: all of them, and that prices move so in
 * masses. Their second answers are not waited for. What is doubted from then on is doubted again. Returns of how many
 * SKUs.
 */
export async function acceptDoubted(sql: Sql, skus: readonly string[] | null): Promise<number> {
  if (skus === null)
    await sql`
      update catalog_internal.mass_move set since = null, kind = null, answers = null, implausible = null, move = null
      where since is not null`;
  const accepted = await sql`
    with doubted as (
      select sku, reason = 'doubted' and claim is null as waits from catalog_internal.due
      where doubt is not null and (${skus === null} or sku = any(${[...(skus ?? [])]}))
      order by sku for update
    )
    update catalog_internal.due d set doubt = null, oddity = null, doubted_at = null, believed = null,
      held_until = case when waits then null else d.held_until end,
      due_at = case when waits and d.outside_due_at is null then n.due_at else d.due_at end,
      outside_due_at = case when waits and d.outside_due_at is not null then n.due_at else d.outside_due_at end,
      reason = case when waits then n.reason else d.reason end,
      lane = case when waits and d.outside_due_at is null then catalog_internal.lane_of(n.reason) else d.lane end
    from doubted join catalog.skus s using (sku) cross join catalog_internal.settings g
    cross join lateral (
      select case when s.price_source = 'live' then 'live' when not s.in_manifest then 'unlisted' else 'sweep' end as reason,
        now() + make_interval(secs => case when s.price_source = 'live' or not s.in_manifest then g.live_interval
          else catalog_internal.snapshot_target(g) end) as due_at
    ) n
    where d.sku = doubted.sku`;
  return accepted.count;
}
