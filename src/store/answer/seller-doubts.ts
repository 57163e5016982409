import { inPieces } from '../../lib/pieces.ts';
import { notingUnseenClock } from '../clock.ts';
import { type Queryable, scanning, type Sql, type Tx } from '../connection/db.ts';
import { SNAPSHOT_REASON } from '../ledger/due.ts';
import type { Doubt } from './doubts.ts';
import { PIECE } from './fault-doubts.ts';
import type { MassMove } from './mass-move.ts';
import { noMassMoveSql } from './mass-moves.ts';
import { forgetOddMoves } from './odd-moves.ts';

/* Doubts as sellers see them, and how sellers end them. */

/** How many SKUs are doubted, and the present mass move. */
export interface Doubts {
  readonly implausible: number;
  readonly massMoved: number;
  /** The most recently doubted SKU. */
  readonly last: string | null;
  readonly massMove: MassMove | null;
}

/**
 * SQL: whether a doubted row of the ledger counts. If its SKU no longer has a price, it is doubted only in case it
 * comes back, and does not count, unless the loss itself is doubted. OFFSET makes Postgres find each SKU by its key,
 * instead of reading all prices for a few doubts.
 */
const isShown = (sql: Queryable) => sql`
  due.outside_due_at is null and (due.oddity in ('no-prices', 'few-sizes')
    or exists (select from catalog.prices p where p.sku = due.sku and p.price is not null offset 0))`;

/** Most doubted SKUs that each reading counts; if there are more, only a count of the catalog says how many. */
const COUNTED_AT_ONCE = 1000;

/** Counts all doubted SKUs with a price; it reads as many rows, and as many prices, as are doubted. */
export async function countDoubts(tx: Tx): Promise<Readonly<Record<Doubt, number>>> {
  const [row] = await scanning(tx<[Record<Doubt, number>]>`
    select (count(*) filter (where doubt = 'implausible'))::int as implausible,
      (count(*) filter (where doubt = 'mass-move'))::int as "mass-move"
    from catalog_internal.due due where doubt is not null and ${isShown(tx)}`);
  return row;
}

/**
 * Reads the present mass move, and how many SKUs with a price are doubted now. Only the COUNTED_AT_ONCE newest doubts
 * are counted: if there may be more (`areAll` false), the counts are lower bounds.
 */
export async function readDoubts(sql: Queryable): Promise<Doubts & { readonly areAll: boolean }> {
  const [row] = await sql<
    [MassMoveRow & { implausibleSkus: number; movedSkus: number; last: string | null; areAll: boolean }]
  >`
    with newest as materialized (
      select sku, doubt, oddity, doubted_at, outside_due_at from catalog_internal.due where doubt is not null
      order by doubted_at desc limit ${COUNTED_AT_ONCE}
    )
    select m.since, m.kind, m.answers, m.implausible, m.move, m.factor, d.*,
      (select count(*) from newest) < ${COUNTED_AT_ONCE} as "areAll"
    from catalog_internal.mass_move m cross join (
      select (count(*) filter (where doubt = 'implausible'))::int as "implausibleSkus",
        (count(*) filter (where doubt = 'mass-move'))::int as "movedSkus", (array_agg(sku order by doubted_at desc, sku))[1] as last
      from newest due where ${isShown(sql)}
    ) d`;
  const { implausibleSkus, movedSkus, last, areAll, since, kind, answers, implausible, move, factor } = row;
  const massMove =
    since === null || kind === null
      ? null
      : { since, kind, answers: answers ?? 0, implausible: implausible ?? 0, move, factor };
  return { implausible: implausibleSkus, massMoved: movedSkus, last, massMove, areAll };
}

/** Returns what was read, with the numbers of the last full count if those are higher. Pure. */
export function withCounted(
  { areAll, ...read }: Awaited<ReturnType<typeof readDoubts>>,
  counted: Readonly<Record<Doubt, number>> | null,
): Doubts {
  if (areAll || counted === null) return read;
  const { implausible, massMoved } = read;
  return {
    ...read,
    implausible: Math.max(implausible, counted.implausible),
    massMoved: Math.max(massMoved, counted['mass-move']),
  };
}

type MassMoveRow = { readonly [Member in keyof MassMove]: MassMove[Member] | null };

/**
 * Ends doubts, because the seller says that these prices are the market's. `skus` null: all doubts, and the mass move;
 * its common factor, if any, is accepted for a week. Second answers are not awaited; if the partner has deferred one,
 * its SKU continues to wait. Later oddities are doubted again. Returns how many SKUs' doubts ended.
 */
export async function acceptDoubted(sql: Sql, skus: readonly string[] | null): Promise<number> {
  const [{ said }] = await sql<[{ said: string }]>`select clock_timestamp()::text as said`;
  if (skus === null) {
    await sql`
      update catalog_internal.mass_move set ${noMassMoveSql(sql)},
        accepted = coalesce(factor, accepted),
        accepted_at = case when factor is null then accepted_at else clock_timestamp() end
      where since is not null`;
    await forgetOddMoves(sql, null);
  }
  let accepted = 0;
  await inPieces(async (after) => {
    const piece = await acceptPiece(sql, skus, { said, after });
    accepted += piece.skus;
    return piece.last;
  });
  await notingUnseenClock(sql);
  return accepted;
}

/**
 * Ends the next doubts after `after`, in order of sku, as everyone goes through the ledger. Leaves out doubts that
 * began after `said`, unless a clock that was ahead has dated them; and, with `skus` null, all of them once a mass
 * move has begun since. `last` is the last SKU; null if there was none.
 */
async function acceptPiece(
  sql: Sql,
  skus: readonly string[] | null,
  { said, after }: { readonly said: string; readonly after: string },
): Promise<{ readonly last: string | null; readonly skus: number }> {
  const accepted = await sql<{ sku: string }[]>`
    with doubted as (
      select sku, reason = 'doubted' and claim is null as waits, missed_moves > 0 as missed, live and live_left > 0 as seems_live,
        again_at
      from catalog_internal.due
      where doubt is not null and sku > ${after} and (${skus === null} or sku = any(${[...(skus ?? [])]}))
        and (doubted_at is null or doubted_at <= ${said}::timestamptz or doubted_at > clock_timestamp())
        and (${skus !== null} or not exists (select from catalog_internal.mass_move where since > ${said}::timestamptz))
      order by sku limit ${PIECE} for update
    )
    update catalog_internal.due d set doubt = null, oddity = null, doubted_at = null, believed = null,
      held_until = case when waits and d.deferrals = 0 then null else d.held_until end,
      due_at = case when waits and d.outside_due_at is null then n.due_at else d.due_at end,
      outside_due_at = case when waits and d.outside_due_at is not null then n.due_at else d.outside_due_at end,
      reason = case when waits then n.reason else d.reason end,
      lane = case when waits and d.outside_due_at is null then catalog_internal.lane_of(n.reason) else d.lane end
    from doubted join catalog.skus s using (sku) cross join catalog_internal.settings g
    cross join lateral (
      -- As nextTurn (answer/writes.ts), with what the doubted answer has left.
      select turn.reason, turn.due_at
      from (select now() + make_interval(secs => g.live_interval) as soon) as at
        cross join lateral (values
          (1, s.price_source = 'live', 'live', at.soon),
          (2, not s.in_manifest, 'unlisted', at.soon),
          (3, doubted.missed, 'missed', at.soon),
          (4, doubted.seems_live, 'live', at.soon),
          (5, doubted.again_at is not null, 'again', doubted.again_at),
          (6, true, ${sql.unsafe(SNAPSHOT_REASON)}, now() + make_interval(secs => catalog_internal.snapshot_target(g)))
        ) as turn (place, applies, reason, due_at)
      where turn.applies order by least(turn.place, 3), turn.due_at, turn.place limit 1
    ) n
    where d.sku = doubted.sku returning d.sku`;
  const last = accepted.reduce<string | null>(
    (far, { sku }) => (far === null || sku > far ? sku : far),
    null,
  );
  return { last, skus: accepted.count };
}
