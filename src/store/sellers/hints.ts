import type { Clock } from '../../lib/clock.ts';
import { type Sql, transaction, type Tx } from '../connection/db.ts';
import { isLockNotAvailable } from '../connection/locks.ts';
import { movable } from '../ledger/due.ts';
import {
  HintBase,
  type HintRecord,
  type HintTest,
  MAX_TESTED,
  NOTHING_SHOWN,
  plusShown,
  shownByPrediction,
  type ShownOfSource,
  type PredictionTest,
  type WaitingHint,
} from '../live/hint-state.ts';
import { fadedSql } from '../live/rate-prior.ts';
import type { LiveCandidate } from '../live/refresh.ts';

/*
 * Hints in Postgres (catalog.hint): read in pieces, kept until their SKU is refreshed, and weighed then. SKUs that
 * are locked or being asked for are left for the next piece, so that a hint that comes while an answer is under way
 * does not count as earlier than the answer. If somebody locks hints or their tables, calls do not wait, but
 * continue without hints.
 */

/** SQL: whether there are hints to be read. */
export const HINTS_CAME = 'catalog_internal.hints_came()';

/** Bounds waits for locks that the check of the tables does not show. */
const LOCK_TIMEOUT_MS = 200;

/**
 * Takes the lock for reading or counting hints, until the end of the transaction. Returns false if another session
 * has it, or keeps hints locked.
 */
async function lockHints(tx: Tx): Promise<boolean> {
  const [row] = await tx<[{ locked: boolean }]>`
    select catalog_internal.lock_hint_sources() as locked, set_config('lock_timeout', ${`${LOCK_TIMEOUT_MS}ms`}, true),
      -- Of a table of few rows on many pages an index seems to cost more than to read all of it for each hint.
      set_config('enable_seqscan', 'off', true)`;
  return row.locked;
}

/** Runs `work` on hints in one transaction. Does nothing and returns null while another session keeps hints locked. */
export async function withHints<T>(sql: Sql, work: (tx: Tx) => Promise<T>): Promise<T | null> {
  return await transaction(sql, async (tx) => ((await lockHints(tx)) ? await work(tx) : null)).catch(
    (error: unknown) => {
      if (isLockNotAvailable(error)) return null;
      throw error;
    },
  );
}

export interface KnownSource extends HintRecord {
  readonly source: string;
  /** How many of its hints wait for the refresh of their SKU. */
  readonly waiting: number;
}

/** A hint that was read; `sku` is null if it says nothing about a live SKU in scope since its last refresh. */
export interface ReadHint {
  readonly source: string;
  readonly hintedAt: string;
  readonly sku: string | null;
}

export interface HintedSku extends LiveCandidate {
  readonly minutes: number;
  /** Minutes until its next refresh is due. */
  readonly dueIn: number;
  /** Whether it is due only by the order of live refreshes. */
  readonly movable: boolean;
  readonly hints: readonly WaitingHint[];
}

/** Hints that were read together, with their SKUs and sources. */
export interface HintPiece {
  readonly hints: readonly ReadHint[];
  readonly skus: readonly HintedSku[];
  readonly sources: readonly KnownSource[];
}

/** SQL: the columns of a HintRecord, from a row `s` of catalog_internal.hint_sources; of UNTESTED if there is none. */
export const hintRecordColumns = (tx: Tx) => tx`
  coalesce(s.tested, 0) as tested, coalesce(s.expected, 0) as expected, coalesce(s.unmoved, 0) as unmoved,
  coalesce(s.moves, 0) as moves, coalesce(s.followed, 0) as followed, coalesce(s.stayed, 0) as stayed,
  coalesce(s.undone, 0) as undone`;

/** Reads and deletes at most `limit` hints; their SKUs stay locked in the ledger until the transaction ends. */
export async function takeHints(tx: Tx, limit: number): Promise<HintPiece> {
  const [row] = await tx<[HintPiece]>`
    with piece as materialized (
      select h.id, h.sku from catalog_internal.hints h
      where not exists (select from catalog_internal.due d where d.sku = h.sku and d.claim is not null offset 0)
      order by h.id limit ${limit} for update skip locked
    ),
    locked as materialized (
      select d.* from (select distinct sku from piece order by sku) p
      cross join lateral (select * from catalog_internal.due d where d.sku = p.sku and d.claim is null for update skip locked) d
    ),
    taken as (
      delete from catalog_internal.hints h using piece p
      where h.id = p.id and (exists (select from locked l where l.sku = p.sku)
        or not exists (select from catalog_internal.due d where d.sku = p.sku offset 0))
      returning h.sku, h.source, h.hinted_at
    ),
    live as materialized (
      select s.sku, s.asked_at, l.due_at, (${movable(tx, 'l')} and isfinite(l.due_at)) as movable
      from locked l cross join lateral (select * from catalog.skus s where s.sku = l.sku offset 0) s
      where s.price_source = 'live' and s.state = 'priced' and s.asked_at is not null and l.outside_due_at is null
    ),
    named as (
      select t.source, t.hinted_at, case when t.hinted_at > l.asked_at then t.sku end as sku
      from taken t left join live l using (sku)
    )
    select (select coalesce(json_agg(json_build_object('source', source, 'hintedAt', hinted_at, 'sku', sku)
         order by hinted_at), '[]') from named) as hints,
      (select coalesce(json_agg(json_build_object('sku', l.sku, 'weight', coalesce(w.weight, 1)::float8, 'alpha', r.alpha, 'beta', r.beta,
         'minutes', (extract(epoch from clock_timestamp() - l.asked_at) / 60)::float8,
         'dueIn', case when l.movable then (extract(epoch from l.due_at - clock_timestamp()) / 60)::float8 else 0 end, 'movable', l.movable,
         'hints', (select coalesce(json_agg(json_build_object('source', q.source, 'hazard', q.hazard, 'undone', q.undone)), '[]')
           from catalog_internal.waiting_hints q where q.sku = l.sku))), '[]')
       from live l left join lateral (select r.alpha, r.beta from catalog_internal.live_rates r where r.sku = l.sku offset 0) r on true
       left join lateral (select w.weight from catalog_internal.watched w where w.sku = l.sku offset 0) w on true
       where l.sku in (select sku from named)) as skus,
      (select coalesce(json_agg(json_build_object('source', source, 'tested', tested, 'expected', expected,
         'unmoved', unmoved, 'moves', moves,
         'followed', followed, 'stayed', stayed, 'undone', undone, 'waiting', waiting)), '[]')
       from (
         select source, ${hintRecordColumns(tx)}, coalesce(w.waiting, 0) as waiting
         from catalog_internal.hint_sources s
         full join (select source, count(*) as waiting from catalog_internal.waiting_hints group by source) w using (source)
       ) s) as sources`;
  return row;
}

export interface TakenHints {
  /** Hints that wait for the refresh of their SKU. */
  readonly waiting: readonly (WaitingHint & { readonly sku: string; readonly hintedAt: string })[];
  /** SKUs with the hazard of all their hints; `inMinutes` is null if they are refreshed no sooner. */
  readonly skus: readonly {
    readonly sku: string;
    readonly hazard: number;
    readonly inMinutes: number | null;
  }[];
  readonly sources: readonly {
    readonly source: string;
    readonly hints: number;
    readonly pulled: number;
    readonly lastHint: string;
  }[];
  /** How many refreshes a minute come early, as of `earlyAt`, in minutes since 1970. */
  readonly early: number;
  readonly earlyAt: number;
}

/** Stores what follows from a piece, in the transaction that took it. */
export async function storeHints(
  tx: Tx,
  { waiting, skus, sources, early, earlyAt }: TakenHints,
): Promise<void> {
  await tx`
    with kept as (
      insert into catalog_internal.waiting_hints (sku, source, hinted_at, hazard, undone)
      select * from unnest(${waiting.map(({ sku }) => sku)}::text[], ${waiting.map(({ source }) => source)}::text[],
        ${waiting.map(({ hintedAt }) => hintedAt)}::timestamptz[], ${waiting.map(({ hazard }) => hazard)}::float8[],
        ${waiting.map(({ undone }) => undone)}::float8[]) as n(sku, source, hinted_at, hazard, undone)
      order by sku, source on conflict (sku, source) do nothing
    ),
    hinted as materialized (
      select * from unnest(${skus.map(({ sku }) => sku)}::text[], ${skus.map(({ hazard }) => hazard)}::float8[],
        ${skus.map(({ inMinutes }) => inMinutes)}::float8[]) as h(sku, hazard, in_minutes)
    ),
    moved as (
      update catalog_internal.due d set due_at = least(d.due_at, clock_timestamp() + make_interval(secs => h.in_minutes * 60))
      from (
        select at.ctid as row_at, h.in_minutes from hinted h
        cross join lateral (select ctid from catalog_internal.due d where d.sku = h.sku offset 0) at
        where h.in_minutes is not null offset 0
      ) h where d.ctid = h.row_at
    ),
    believed as (
      update catalog_internal.live_rates r set hint_hazard = (select h.hazard from hinted h where h.sku = r.sku)
      where r.sku = any(${skus.map(({ sku }) => sku)}::text[])
    ),
    counted as (
      insert into catalog_internal.hint_sources as s (source, hints, pulled, last_hint)
      select * from unnest(${sources.map(({ source }) => source)}::text[], ${sources.map(({ hints }) => hints)}::bigint[],
        ${sources.map(({ pulled }) => pulled)}::bigint[], ${sources.map(({ lastHint }) => lastHint)}::timestamptz[])
        as n(source, hints, pulled, last_hint)
      order by source
      on conflict (source) do update set hints = s.hints + excluded.hints, pulled = s.pulled + excluded.pulled,
        last_hint = greatest(s.last_hint, excluded.last_hint)
    )
    update catalog_internal.releases set early = ${early}, early_at = to_timestamp(${earlyAt * 60}::float8)
    where id in (select id from catalog_internal.releases where ${skus.some(({ inMinutes }) => inMinutes !== null)}
      for update skip locked)`;
}

/** Hints that wait for a refresh, by SKU; null while another session keeps them locked. */
export type HintsAt = Readonly<Record<string, readonly WaitingHint[]>>;

/**
 * Returns a statement that reads the hints that wait for refreshes of these SKUs. If it could read them, their table
 * stays available to this transaction until it ends.
 */
export const hintsAt = (tx: Tx, skus: readonly string[]) =>
  tx<[{ hints: HintsAt | null }]>`select catalog_internal.hints_at(${skus as string[]}) as hints`;

/** Returns the hints at a SKU, which may have the name of a property of every object; null if there are none. */
export const hintsOf = (hints: HintsAt | null, sku: string): readonly WaitingHint[] | null =>
  hints !== null && Object.hasOwn(hints, sku) ? (hints[sku] ?? null) : null;

/** Deletes the hints at refreshed SKUs (hintsAt). Rows that others have locked are left to pruneHints. */
export async function forgetHints(tx: Tx, skus: readonly string[]): Promise<void> {
  if (skus.length === 0) return;
  await tx`
    delete from catalog_internal.waiting_hints where ctid = any(array(
      select ctid from catalog_internal.waiting_hints where sku = any(${skus as string[]}) for update skip locked))`;
}

/** Deletes hints that are older than their SKU's last refresh, whose SKU is out of scope, or that are a week old. */
export async function pruneHints(sql: Sql): Promise<void> {
  await withHints(sql, forgetOldHints);
}

export async function forgetOldHints(tx: Tx): Promise<void> {
  await tx`
    delete from catalog_internal.waiting_hints where ctid = any(array(
      select q.ctid from catalog_internal.waiting_hints q
      left join lateral (select s.asked_at from catalog.skus s where s.sku = q.sku offset 0) s on true
      left join lateral (select d.outside_due_at from catalog_internal.due d where d.sku = q.sku offset 0) d on true
      where s.asked_at >= q.hinted_at or d.outside_due_at is not null
        or q.hinted_at not between clock_timestamp() - interval '7 days' and clock_timestamp() + interval '7 days'
      for update of q skip locked))`;
}

/** What one process has counted and not written yet, and loses when it dies: at most ten seconds' worth. */
export class HintCounts {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #everyMs: number;
  readonly #base = new HintBase();
  #shown = new Map<string, ShownOfSource>();
  #moves = 0;
  #writtenAt: number;

  constructor(clock: Pick<Clock, 'monotonic'>, everyMs = 10_000) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#writtenAt = clock.monotonic();
  }

  /**
   * Counts tests of hints. `moves`: how many refreshes of live SKUs found a move; `predictionTests`: what became of
   * moves that sources had told of.
   */
  note(tests: readonly HintTest[], moves: number, predictionTests: readonly PredictionTest[] = []): void {
    this.#moves += moves;
    for (const { source, expected, moved } of this.#base.weigh(tests))
      this.#add(source, { tested: 1, expected, unmoved: Number(!moved) });
    for (const test of predictionTests) this.#add(test.source, shownByPrediction(test));
  }

  /** Takes back what could not be written. */
  giveBack({ shown, moves }: ShownOfHints): void {
    this.#moves += moves;
    for (const { source, ...numbers } of shown) this.#add(source, numbers);
  }

  #add(source: string, numbers: Partial<ShownOfSource>): void {
    this.#shown.set(source, plusShown(this.#shown.get(source) ?? NOTHING_SHOWN, numbers));
  }

  /** Returns what is to be written now; null if nothing is, or not yet. */
  take(): ShownOfHints | null {
    const now = this.#clock.monotonic();
    if (now - this.#writtenAt < this.#everyMs || (this.#moves === 0 && this.#shown.size === 0)) return null;
    this.#writtenAt = now;
    const taken = { shown: [...this.#shown].map(([source, of]) => ({ source, ...of })), moves: this.#moves };
    this.#shown = new Map();
    this.#moves = 0;
    return taken;
  }
}

/** What refreshes have shown about sources, and how many found a move, to be stored. */
export interface ShownOfHints {
  readonly shown: readonly (ShownOfSource & { readonly source: string })[];
  readonly moves: number;
}

/**
 * Adds what refreshes have shown about sources (learnHints of sync/live/hints.ts). Returns false while they are
 * locked.
 */
export async function storeHintTests(sql: Sql, { shown, moves }: ShownOfHints): Promise<boolean> {
  const stored = await withHints(sql, async (tx) => {
    return await tx`
      with shown as (
        select * from unnest(${shown.map(({ source }) => source)}::text[], ${shown.map(({ tested }) => tested)}::float8[],
          ${shown.map(({ expected }) => expected)}::float8[], ${shown.map(({ unmoved }) => unmoved)}::float8[],
          ${shown.map(({ followed }) => followed)}::float8[], ${shown.map(({ stayed }) => stayed)}::float8[],
          ${shown.map(({ undone }) => undone)}::float8[])
          as n(source, tested, expected, unmoved, followed, stayed, undone)
      ),
      summed as (
        select l.source, l.tested + coalesce(n.tested, 0) as tested, l.expected + coalesce(n.expected, 0) as expected,
          l.unmoved + coalesce(n.unmoved, 0) as unmoved, l.moves + ${moves}::float8 as moves,
          l.followed + coalesce(n.followed, 0) as followed,
          l.stayed + coalesce(n.stayed, 0) as stayed, l.undone + coalesce(n.undone, 0) as undone
        from catalog_internal.hint_sources l left join shown n using (source)
      )
      update catalog_internal.hint_sources s set tested = n.tested * f.part, expected = ${fadedSql(tx, 'n.expected * f.part')},
        unmoved = ${fadedSql(tx, 'n.unmoved * f.part')}, moves = ${fadedSql(tx, 'n.moves * f.part')},
        followed = ${fadedSql(tx, 'n.followed * f.part')},
        stayed = ${fadedSql(tx, 'n.stayed * f.part')}, undone = ${fadedSql(tx, 'n.undone * f.part')}
      from summed n
      cross join lateral (select ${MAX_TESTED}::float8 / greatest(${MAX_TESTED}::float8, n.tested) as part) f
      where s.source = n.source`;
  });
  return stored !== null;
}
