import { type Sql, transaction } from '../connection/db.ts';
import { APART_MINUTES, faultOf, HOUR_MINUTES, type KnownMassMove } from './doubts.ts';
import { FAULT_KINDS, GOING_SKUS } from './move-counts.ts';
import type { FaultOfMany, Oddity } from './plausibility.ts';

/*
 * SKUs that have moved as many do and no market does, in another unit or to one price for all sizes. Each of them
 * keeps that as its oddity, so that it waits until it is as before whatever others do; and only they tell whether the
 * fault is over, as a partner may have it for some SKUs alone.
 */

/** SKUs that are doubted in one transaction, so that nobody waits long for the rows of the ledger. */
export const PIECE = 5000;

/** SKUs that are asked, once an hour at most, for whether the fault goes on. */
const SAMPLE = 20;

const OF_MANY: readonly FaultOfMany[] = ['unit-of-many', 'one-price-of-many'];

/** Writes of doubted SKUs that they are of the fault that goes on: most were doubted before it was known. */
export async function keepFaults(sql: Sql): Promise<void> {
  const [fault] = await sql<Pick<KnownMassMove, 'kind' | 'factor'>[]>`
    select kind, factor from catalog_internal.mass_move where since is not null and kind = any(${[...FAULT_KINDS]})`;
  if (fault === undefined) return;
  for (let after: string | null = ''; after !== null;) after = await keepPiece(sql, fault, after);
}

/** The next SKUs after `after`, in everyone's order. Returns the last of them; null where there was none. */
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
    // Read by a statement of its own, so that prices are those of the answers that were waited for.
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

const LOSSES: readonly Oddity[] = ['no-prices', 'few-sizes'];

interface DoubtedPrices {
  readonly sku: string;
  readonly believed: Readonly<Record<string, number>> | null;
  readonly prices: Readonly<Record<string, number>>;
}

/**
 * Whether the fault that goes on is over, where the answers of all SKUs are as usual: hardly one of its own was
 * answered with it within the hour, and several (`repaired`) are as before, or hardly one is left. Where too little is
 * known of them, some are asked.
 */
export async function isFaultOver(sql: Sql, repaired: number): Promise<boolean> {
  const held = sql`
    from catalog_internal.due d join catalog.skus s using (sku)
    where d.doubt is not null and d.oddity = any(${[...OF_MANY]}) and d.outside_due_at is null and s.state = 'priced'`;
  const recently = sql`s.asked_at > clock_timestamp() - make_interval(mins => ${HOUR_MINUTES})`;
  const [{ recent, left }] = await sql<[{ recent: number; left: number }]>`
    select (select count(*) from (select ${held} and ${recently} limit ${GOING_SKUS}) r)::int as recent,
      (select count(*) from (select ${held} limit ${GOING_SKUS}) l)::int as left`;
  if (recent >= GOING_SKUS) return false;
  if (repaired >= GOING_SKUS || left < GOING_SKUS) return true;
  await sql`
    select catalog_internal.mark_due(array_agg(sku order by sku), 'doubted') from (
      select d.sku ${held} and not ${recently} and d.due_at > clock_timestamp() order by s.asked_at, d.sku limit ${SAMPLE}
    ) sample`;
  return false;
}

/** Has doubted SKUs asked again that no second answer is waited for any longer: the fault is over. */
export async function askDoubted(sql: Sql): Promise<void> {
  for (let after: string | null = ''; after !== null;) {
    const [piece]: [{ last: string | null }] = await sql`
      with doubted as materialized (
        select sku from catalog_internal.due
        where doubt is not null and doubted_at < clock_timestamp() - make_interval(mins => ${APART_MINUTES})
          and due_at > clock_timestamp() and sku > ${after}
        order by sku limit ${PIECE}
      ),
      marked as (select catalog_internal.mark_due(array_agg(sku order by sku), 'doubted') from doubted)
      -- The second is read so that it runs: Postgres leaves out a SELECT in WITH that nobody reads.
      select (select max(sku) from doubted) as last, (select count(*) from marked)`;
    after = piece.last;
  }
}
