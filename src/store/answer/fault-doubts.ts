import { inPieces } from '../../lib/pieces.ts';
import { type Sql, transaction } from '../connection/db.ts';
import { faultOf, saysFault } from './doubts.ts';
import { GOING_SKUS } from './hour-of-moves.ts';
import { APART_MINUTES, HOUR_MINUTES, type KnownMassMove, FAULT_KINDS } from './mass-move.ts';
import { commonFactor } from './move-counts.ts';
import { factorOf, type FaultOfMany, isOfSomeSizes, LOSSES, OF_MANY } from './plausibility.ts';

/*
 * SKUs that have moved as many do and as no market does: into another unit, or to one price for all sizes. Each keeps
 * the fault as its oddity, so that it stays doubted until its prices are as before, whatever other SKUs do. Only these
 * SKUs show whether the fault is over, because the partner may have it for some SKUs only.
 */

/** SKUs doubted in one transaction, so that nobody waits long for the rows of the ledger. */
export const PIECE = 5000;

/** How many SKUs are asked at a time, each at most once an hour, to see whether the fault goes on. */
const SAMPLE = 20;

/** Stores the present fault as the oddity of doubted SKUs that have it: most were doubted before it was known. */
export async function keepFaults(sql: Sql): Promise<void> {
  const [fault] = await sql<Pick<KnownMassMove, 'kind' | 'factor'>[]>`
    select kind, factor from catalog_internal.mass_move where since is not null and kind = any(${[...FAULT_KINDS]})`;
  if (fault === undefined) return;
  await inPieces((after) => keepPiece(sql, fault, after));
}

/** Handles the next SKUs after `after`, in everyone's order. Returns the last of them, or null if none is left. */
async function keepPiece(
  sql: Sql,
  fault: Pick<KnownMassMove, 'kind' | 'factor'>,
  after: string,
): Promise<string | null> {
  return await transaction(sql, async (tx) => {
    const piece = await tx<{ sku: string }[]>`
      select sku from catalog_internal.due
      where doubt is not null and sku > ${after} and (oddity is null or oddity <> all(${[...OF_MANY, ...LOSSES]}))
      order by sku limit ${PIECE} for update`;
    const last = piece.at(-1)?.sku ?? null;
    if (last === null) return null;
    // Read by a separate statement, so that prices include those of the answers that were waited for.
    const doubted = await tx<DoubtedPrices[]>`
      select d.sku, d.believed, jsonb_object_agg(p.size, p.price) as prices
      from catalog_internal.due d join catalog.prices p using (sku)
      where d.sku = any(${piece.map(({ sku }) => sku)}) and p.price is not null
      group by d.sku`;
    const found = doubted.flatMap(({ sku, believed, prices }) => {
      const oddity = faultOf(new Map(Object.entries(believed ?? {})), new Map(Object.entries(prices)), fault);
      return oddity === null ? [] : [{ sku, oddity }];
    });
    if (found.length > 0)
      await tx`
        update catalog_internal.due d set oddity = n.oddity
        from unnest(${found.map(({ sku }) => sku)}::text[], ${found.map(({ oddity }) => oddity)}::text[]) as n(sku, oddity)
        where d.sku = n.sku`;
    return last;
  });
}

interface DoubtedPrices {
  readonly sku: string;
  readonly believed: Readonly<Record<string, number>> | null;
  readonly prices: Readonly<Record<string, number>>;
}

/** SKUs of the fault, answered within the hour, that are read to see whether they still have it. */
const SEEN = 100;

export interface FaultyPrices extends DoubtedPrices {
  readonly oddity: FaultOfMany;
}

/** The state of a fault that has been going on. `asked`: too little is known, so some of its SKUs are asked. */
export type FaultState = 'over' | 'lasts' | 'asked';

/**
 * Counts the SKUs that still have the fault. Once others are `repaired`, SKUs with only some sizes far off do not
 * count, unless several have one factor: single sizes jump in an ordinary market, too. Pure.
 */
export function countStill(answered: readonly FaultyPrices[], repaired: number): number {
  const still = answered
    .map(({ oddity, believed, prices }) => {
      const now = new Map(Object.entries(prices));
      return { oddity, believed: new Map(Object.entries(believed ?? {})), before: now, now };
    })
    .filter(({ oddity, ...prices }) => saysFault(oddity, prices));
  const ofSome = still.filter(
    ({ oddity, believed, now }) => oddity === 'unit-of-many' && isOfSomeSizes(believed, now),
  );
  const factors = ofSome.map(({ believed, now }) => factorOf(believed, now) ?? 0);
  const isLeft = repaired >= GOING_SKUS && commonFactor(factors) === null;
  return still.length - (isLeft ? ofSome.length : 0);
}

/**
 * Decides whether the present fault is over, once the answers of all SKUs are as usual. It is over if fewer than
 * GOING_SKUS of its own SKUs were answered with it within the hour, and either that many are as before (`repaired`) or
 * fewer than that may still have it. If too little is known, some of its SKUs are asked again. A SKU without prices
 * shows nothing. Neither does one that is deferred or in errors: it keeps a fault of some (`kind`) going, but not one
 * for which all other SKUs wait.
 */
export async function stateOfFault(
  sql: Sql,
  repaired: number,
  kind: KnownMassMove['kind'],
): Promise<FaultState> {
  const ofFault = sql`
    from catalog_internal.due d join catalog.skus s using (sku)
    where d.doubt is not null and d.oddity = any(${[...OF_MANY]}) and d.outside_due_at is null and s.state = 'priced'
      and exists (select from catalog.prices p where p.sku = d.sku and p.price is not null)`;
  const isAnswered = sql`d.failures = 0 and d.deferrals = 0`;
  const held = sql`${ofFault} and ${isAnswered}`;
  const recently = sql`s.asked_at > clock_timestamp() - make_interval(mins => ${HOUR_MINUTES})`;
  const recent = await sql<FaultyPrices[]>`
    select r.*, (select jsonb_object_agg(p.size, p.price) from catalog.prices p where p.sku = r.sku and p.price is not null) as prices
    from (select d.sku, d.oddity, d.believed ${held} and ${recently} limit ${SEEN}) r`;
  const still = countStill(recent, repaired);
  if (still >= GOING_SKUS) return 'lasts';
  if (repaired >= GOING_SKUS) return 'over';
  // If no other SKU waits for the end of the fault, counting SKUs without an answer as unseen delays nothing.
  const isUnseen =
    kind === 'factor-of-some'
      ? sql`${ofFault} and not (${isAnswered} and ${recently})`
      : sql`${held} and not ${recently}`;
  const [{ unseen }] = await sql<[{ unseen: number }]>`
    select count(*)::int as unseen from (select ${isUnseen} limit ${GOING_SKUS}) l`;
  if (still + unseen < GOING_SKUS) return 'over';
  await sql`
    select catalog_internal.mark_due(array_agg(sku order by sku), 'doubted') from (
      select d.sku ${held} and not ${recently} and d.due_at > clock_timestamp() order by s.asked_at, d.sku limit ${SAMPLE}
    ) sample`;
  return 'asked';
}

/** Marks doubted SKUs due that no longer await a second answer, because the fault is over. */
export async function askDoubted(sql: Sql): Promise<void> {
  await inPieces(async (after) => {
    const [{ last }] = await sql<[{ last: string | null }]>`
      with doubted as materialized (
        select sku from catalog_internal.due
        where doubt is not null and doubted_at < clock_timestamp() - make_interval(mins => ${APART_MINUTES})
          and due_at > clock_timestamp() and sku > ${after}
        order by sku limit ${PIECE}
      ),
      marked as (select catalog_internal.mark_due(array_agg(sku order by sku), 'doubted') from doubted)
      -- The second is read so that it runs: Postgres leaves out a SELECT in WITH that nobody reads.
      select (select max(sku) from doubted) as last, (select count(*) from marked)`;
    return last;
  });
}
