import { scanning, type Sql, transaction } from '../connection/db.ts';

/*
 * Checks whether prices are right, by asking about SKUs drawn at random. What is believed of each is kept, and each
 * is marked for a refresh, which a daemon makes within its pace like any other. The first answer after that shows
 * whether the belief was right.
 */

/**
 * Draws priced SKUs in scope uniformly at random; also returns how many they were drawn from. `seed`: an integer;
 * the same one draws the same SKUs of a catalog.
 */
export async function drawSample(
  sql: Sql,
  { skus, seed }: { readonly skus: number; readonly seed: number },
): Promise<{ readonly skus: readonly string[]; readonly population: number }> {
  const [drawn] = await scanning(sql<[{ skus: string[]; population: number }]>`
    with priced as (
      select s.sku from catalog.skus s where s.state = 'priced'
        and not exists (select from catalog_internal.due d where d.sku = s.sku and d.outside_due_at is not null)
    )
    select (select count(*)::int from priced) as population,
      array(select sku from priced order by hashtextextended(sku, ${seed}::bigint), sku limit ${skus}) as skus`);
  return drawn;
}

/** What was believed of a SKU at the moment it was marked. */
export interface HeldSku {
  readonly sku: string;
  readonly priceSource: string | null;
  /** As in catalog.calibration. */
  readonly cohort: string;
  /** Probability that all of its prices are right: at that moment, and a minute later. */
  readonly pRight: number;
  readonly pRightSoon: number;
  readonly actionable: boolean;
  readonly doubt: string | null;
  readonly owedReason: string | null;
  /** When the partner was last asked, in seconds since 1970, as text: exact to the microsecond. Null if never. */
  readonly askedAt: string | null;
  readonly ageSeconds: number;
}

export interface MarkedSkus {
  readonly at: Date;
  /** Position in catalog.price_history. */
  readonly position: string;
  readonly held: readonly HeldSku[];
}

/**
 * Reads what is believed of SKUs, and marks them due for a refresh. SKUs without a probability of being right are
 * left out.
 */
export async function markForVerification(sql: Sql, skus: readonly string[]): Promise<MarkedSkus> {
  return await transaction(sql, async (tx) => {
    const held = await tx<HeldSku[]>`
      select s.sku, s.price_source as "priceSource", c.cohort,
        catalog_internal.p_right(h.by_rate, h.reported, false, c.minutes, l, e) as "pRight",
        catalog_internal.p_right(h.by_rate, h.reported, false, c.minutes + 1, l, e) as "pRightSoon",
        t.actionable, t.doubt, t.owed_reason as "owedReason",
        extract(epoch from s.asked_at)::text as "askedAt", (c.minutes * 60)::float8 as "ageSeconds"
      from catalog.skus s join catalog.sku_trust t using (sku) join catalog_internal.due d using (sku)
      left join catalog_internal.live_rates l using (sku) cross join catalog_internal.price_beliefs() e
      cross join lateral (
        select catalog_internal.cohort_of(s.price_source, s.in_manifest and d.missed_moves is null, d.live,
            catalog_internal.is_reported(d)) as cohort,
          greatest(0, extract(epoch from now() - s.priced_at)::float8 / 60) as minutes
      ) c
      cross join lateral (
        select c.cohort in ('live', 'unlisted') as by_rate, 
          case when c.cohort = 'reported' then true when d.again_at is null then false end as reported
      ) h
      where s.sku = any(${skus as string[]}) and s.state = 'priced' and t.p_right is not null
      order by s.sku`;
    const [{ at, position }] = await tx<[{ at: Date; position: string }]>`
      select now() as at, coalesce((select max(id) from catalog.price_history), 0)::text as position`;
    await tx`select catalog_internal.mark_due(${held.map(({ sku }) => sku)}::text[], 'refresh')`;
    return { at, position, held };
  });
}

export interface AnsweredSku {
  readonly sku: string;
  readonly answeredAt: Date;
  /** Sizes that had a price, and now have another or none. */
  readonly wrong: readonly WrongPrice[];
}

export interface WrongPrice {
  readonly size: string;
  readonly held: number;
  readonly partner: number | null;
}

/**
 * Reads which of the marked SKUs have been answered since. The others wait, `postponed` of them after a deferral or
 * an error.
 */
export async function readVerified(
  sql: Sql,
  { position, held }: MarkedSkus,
): Promise<{ readonly answered: readonly AnsweredSku[]; readonly postponed: number }> {
  const skus = held.map(({ sku }) => sku);
  const [row] = await sql<[{ answered: AnsweredSku[]; postponed: number }]>`
    with marked as (
      select s.sku, s.asked_at, extract(epoch from s.asked_at)::text is distinct from m.asked_at as is_answered
      from unnest(${skus}::text[], ${held.map(({ askedAt }) => askedAt)}::text[]) as m(sku, asked_at) join catalog.skus s using (sku)
    )
    select coalesce(json_agg(json_build_object('sku', m.sku, 'answeredAt', m.asked_at, 'wrong', coalesce(w.wrong, '[]'))
        order by m.sku) filter (where m.is_answered), '[]') as answered,
      (count(*) filter (where not m.is_answered and d.claim is null and d.held_until > clock_timestamp()))::int as postponed
    from marked m join catalog_internal.due d using (sku)
    left join lateral (
      select json_agg(json_build_object('size', size, 'held', old_price, 'partner', new_price) order by size) as wrong
      from (
        select distinct on (size) size, old_price, new_price from catalog.price_history
        where sku = m.sku and id > ${position}::bigint order by size, id
      ) first where old_price is not null
    ) w on m.is_answered`;
  return {
    postponed: row.postponed,
    answered: row.answered.map((answer) => ({ ...answer, answeredAt: new Date(answer.answeredAt) })),
  };
}
