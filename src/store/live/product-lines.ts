import { type Queryable, scanning, type Sql, unplanned } from '../connection/db.ts';
import { movable } from '../ledger/due.ts';
import type { HeldLine, Line, LineName, Releases, Wholesale } from './product-line-state.ts';
import type { LiveCandidate } from './refresh.ts';

/*
 * Lines of live SKUs in Postgres: their state, and the due times of SKUs whose line moves. Rows locked by others are
 * skipped instead of waited for: the next call weighs again what is not stored now.
 */

const minutesOf = (sql: Queryable, at: string) => sql`(extract(epoch from ${sql.unsafe(at)}) / 60)::float8`;
const instantOf = (sql: Sql, minutes: number | null) =>
  sql`to_timestamp(${minutes === null ? null : minutes * 60}::float8)`;

/** SQL: a row `l` of catalog_internal.live_lines as a Line; null if there is none. */
export const lineColumns = (sql: Queryable) => sql`
  case when l.line is not null then json_build_object('step', l.step, 'phase', l.phase, 'evidence', l.evidence,
    'weighedAt', ${minutesOf(sql, 'l.weighed_at')}, 'since', ${minutesOf(sql, 'l.since')}, 'answers', l.answers, 'moved', l.moved,
    'hits', l.hits, 'misses', l.misses) end`;

/** SQL: the row of catalog_internal.releases as Releases. */
export const releasesRow = (sql: Sql) => sql`
  select json_build_object('threshold', threshold, 'wholesaleRate', wholesale_rate, 'early', early,
    'earlyAt', ${minutesOf(sql, 'early_at')}) from catalog_internal.releases`;

/** A line's next state, and the step that it was read with; 0 if it did not exist. */
export interface LineChange extends LineName {
  readonly from: number;
  readonly to: Line;
}

/**
 * SQL: parts of a WITH that store lines, unless another call has changed them meanwhile or is about to. `lined`
 * contains the ids of the stored lines.
 */
export function storingLines(sql: Sql, changes: readonly LineChange[]) {
  const all = (of: (change: LineChange) => number | string | null, type: string) =>
    unplanned(sql, changes.map(of), `${type}[]`);
  const floats = (of: (line: Line) => number | null) => all(({ to }) => of(to), 'float8');
  const counts = (of: (line: Line) => number) => all(({ to }) => of(to), 'int');
  return sql`
    new_lines as materialized (
      select line, brand, model, was, step, phase, evidence, to_timestamp(weighed_at * 60) as weighed_at, to_timestamp(since * 60) as since,
        answers, moved, hits, misses
      from unnest(${all(({ id }) => id, 'bigint')}, ${all(({ brand }) => brand, 'text')}, ${all(({ model }) => model, 'text')},
        ${all(({ from }) => from, 'int')}, ${counts(({ step }) => step)}, ${all(({ to }) => to.phase, 'text')},
        ${floats(({ evidence }) => evidence)}, ${floats(({ weighedAt }) => weighedAt)}, ${floats(({ since }) => since)},
        ${counts(({ answers }) => answers)}, ${counts(({ moved }) => moved)}, ${floats(({ hits }) => hits)},
        ${floats(({ misses }) => misses)})
        as n(line, brand, model, was, step, phase, evidence, weighed_at, since, answers, moved, hits, misses)
    ),
    free_lines as materialized (
      select l.line from catalog_internal.live_lines l join new_lines n on n.line = l.line and n.was = l.step
      order by l.line for update of l skip locked
    ),
    changed_lines as (
      update catalog_internal.live_lines l set step = n.step, phase = n.phase, evidence = n.evidence, weighed_at = n.weighed_at,
        since = n.since, answers = n.answers, moved = n.moved, hits = n.hits, misses = n.misses
      from new_lines n join free_lines using (line) where l.line = n.line
      returning l.line
    ),
    added_lines as (
      insert into catalog_internal.live_lines (line, brand, model, step, phase, evidence, weighed_at, since, answers, moved, hits, misses)
      select line, brand, model, step, phase, evidence, weighed_at, since, answers, moved, hits, misses
      from new_lines where was = 0 order by line
      on conflict (line) do nothing
      returning line
    ),
    lined as (select line from changed_lines union all select line from added_lines)`;
}

/** SQL: the ids of the lines that storingLines stored. */
export const storedLines = (sql: Sql) => sql`array(select line::text from lined)`;

/** Stores lines in a statement of their own. Returns the ids of those that no other call has changed. */
export async function storeLineChanges(sql: Sql, changes: readonly LineChange[]): Promise<readonly string[]> {
  const [row] = await sql<[{ lines: string[] }]>`
    with ${storingLines(sql, changes)} select ${storedLines(sql)} as lines`;
  return row.lines;
}

/** Reads the present state of lines, without those about which nothing is known. */
export async function readLines(sql: Sql, ids: readonly string[]): Promise<readonly HeldLine[]> {
  return await sql<HeldLine[]>`
    select l.line::text as id, l.brand, l.model, ${lineColumns(sql)} as state
    from catalog_internal.live_lines l where l.line = any(${ids as string[]}::bigint[])`;
}

/** A SKU of a line that is in the order of live refreshes and may be refreshed sooner. */
export interface HeldMember extends LiveCandidate {
  readonly minutes: number;
  /** Minutes until its next refresh is due. */
  readonly dueIn: number;
  readonly generation: number;
  /** Whether it is refreshed early because its line moves, or was suspected to. */
  readonly pulled: boolean;
  /** With a probability of 1 − e^−hintHazard hints say that it has moved; null if there are none. */
  readonly hintHazard: number | null;
}

export interface HeldMembers {
  readonly members: readonly HeldMember[];
  readonly releases: Releases;
  /** The database's time, in minutes. */
  readonly now: number;
}

/** If a line has more SKUs, those due soonest are read. */
const MAX_MEMBERS = 2000;

/** Reads the SKUs of a line that may be refreshed sooner, in order of their due times, at most MAX_MEMBERS. */
export async function readMembers(sql: Sql, line: string): Promise<HeldMembers> {
  const [row] = await scanning(sql<[HeldMembers]>`
    select ${minutesOf(sql, 'clock_timestamp()')} as now, (${releasesRow(sql)}) as releases, (
      select coalesce(json_agg(json_build_object('sku', sku, 'weight', weight, 'alpha', alpha, 'beta', beta, 'minutes', minutes,
        'dueIn', due_in, 'generation', generation, 'pulled', pulled, 'hintHazard', hint_hazard)), '[]')
      from (
        select d.sku, coalesce(w.weight, 1)::float8 as weight, r.alpha, r.beta, d.generation, r.hazard is not null as pulled, r.hint_hazard,
          (extract(epoch from clock_timestamp() - s.asked_at) / 60)::float8 as minutes,
          (extract(epoch from d.due_at - clock_timestamp()) / 60)::float8 as due_in
        from catalog_internal.live_rates r join catalog_internal.due d using (sku) join catalog.skus s using (sku)
        left join catalog_internal.watched w using (sku)
        where r.line = ${line}::bigint and ${movable(sql, 'd')}
          and s.state = 'priced' and s.price_source = 'live' and s.asked_at is not null
          and isfinite(d.due_at)
        order by d.due_at limit ${MAX_MEMBERS}
      ) member
    ) as members`);
  return row;
}

/** A SKU whose next refresh is due `inMinutes` from now (null: when it already was), with or without a hazard. */
export interface MovedMember {
  readonly sku: string;
  readonly generation: number;
  readonly inMinutes: number | null;
  /** Null if its line does not move. */
  readonly hazard: number | null;
}

/** What became of suspicions, and what is then known about all lines. */
export interface TransitionCounts {
  readonly suspected: number;
  readonly confirmed: number;
  readonly dismissed: number;
  readonly threshold: number;
  readonly early: number;
  readonly earlyAt: number;
}

/**
 * Moves due times of SKUs in the order of live refreshes, except SKUs that were marked, claimed or locked meanwhile,
 * and counts what became of their line. A SKU with a hazard never becomes due later than it was. Returns how many
 * were moved.
 */
export async function moveMembers(
  sql: Sql,
  members: readonly MovedMember[],
  counted: TransitionCounts,
): Promise<number> {
  const { suspected, confirmed, dismissed, threshold, early, earlyAt } = counted;
  const [row] = await sql<[{ moved: number }]>`
    with wanted as (
      select * from unnest(${members.map(({ sku }) => sku)}::text[], ${members.map(({ generation }) => generation)}::int[],
        ${members.map(({ inMinutes }) => inMinutes)}::float8[], ${members.map(({ hazard }) => hazard)}::float8[])
        as w(sku, generation, in_minutes, hazard)
    ),
    locked as materialized (
      select d.sku, w.in_minutes, w.hazard from catalog_internal.due d join wanted w using (sku, generation)
      where ${movable(sql, 'd')} order by d.sku for update of d skip locked
    ),
    moved as (
      update catalog_internal.due d set due_at = least(case when l.hazard is not null then d.due_at end,
        clock_timestamp() + make_interval(secs => l.in_minutes * 60))
      from locked l where d.sku = l.sku and l.in_minutes is not null returning d.sku
    ),
    boosted as (
      update catalog_internal.live_rates r set hazard = l.hazard from locked l where r.sku = l.sku
    ),
    counted as (
      update catalog_internal.releases set threshold = ${threshold}, early = ${early}, early_at = ${instantOf(sql, earlyAt)},
        suspected = suspected + ${suspected}::int, confirmed = confirmed + ${confirmed}::int, dismissed = dismissed + ${dismissed}::int,
        refreshes = refreshes + (select count(*) from locked where hazard is not null and in_minutes is not null)
      where id in (select id from catalog_internal.releases for update skip locked)
    )
    select count(*)::int as moved from moved`;
  return row.moved;
}

/** Counts the wholesale moves that live SKUs made by themselves, and in how many minutes. */
export async function readWholesale(sql: Sql): Promise<Wholesale> {
  const [row] = await scanning(sql<[Wholesale]>`
    select coalesce(sum(wholesale_moves), 0)::float8 as moves, coalesce(sum(wholesale_minutes), 0)::float8 as minutes
    from catalog_internal.live_rates`);
  return row;
}

/** Stores how often a SKU moves wholesale by itself, and deletes lines of which nothing was refreshed for a week. */
export async function storeWholesaleRate(sql: Sql, rate: number): Promise<void> {
  await sql`
    with forgotten as (
      delete from catalog_internal.live_lines where ctid = any(array(
        select ctid from catalog_internal.live_lines
        where weighed_at not between clock_timestamp() - interval '7 days'
          and clock_timestamp() + interval '7 days'
        for update skip locked))
    )
    update catalog_internal.releases set wholesale_rate = ${rate}
    where id in (select id from catalog_internal.releases for update skip locked)`;
}
