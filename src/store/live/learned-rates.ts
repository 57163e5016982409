import { scanning, type Sql } from '../connection/db.ts';
import { promisedMinutes } from './live.ts';
import { RATES_START_AS } from './rate-prior.ts';

/**
 * Live SKUs alike in rate and weight, and the part of them whose own refreshes say more of their rate than those of
 * all others.
 */
export interface LearnedRates {
  readonly groups: readonly {
    readonly count: number;
    readonly lambda: number;
    readonly weight: number;
    readonly promised: number | null;
  }[];
  readonly knownPart: number;
}

const { alpha: ALPHA, beta: BETA } = RATES_START_AS;

/** The same groups by what is believed of rates (catalog_internal.p_right), for estimates. */
export async function readLearnedRates(sql: Sql): Promise<LearnedRates> {
  const [row] = await scanning(sql<[LearnedRates]>`
    with skus as (
      select coalesce(r.alpha, ${ALPHA}) / (coalesce(r.beta, ${BETA})
          + coalesce(r.prior_part, least(1, r.beta / ${BETA})) * (b.live_prior_minutes - ${BETA})) as lambda,
        coalesce(w.weight, 1)::float8 as weight,
        coalesce(r.long_beta, r.beta, 0) > 2 * ${BETA}::float8 or coalesce(r.long_alpha, r.alpha, 0) > 2 as known,
        ${promisedMinutes(sql)} as promised
      from catalog_internal.due d join catalog.skus s using (sku) cross join catalog_internal.beliefs b
      left join catalog_internal.live_rates r using (sku) left join catalog_internal.watched w using (sku)
      where d.live and d.outside_due_at is null and s.state = 'priced'
    ),
    alike as (
      select count(*)::int as count, avg(lambda) as lambda, avg(weight) as weight, count(*) filter (where known) as known,
        count(promised) / sum(1 / promised) as promised
      from skus group by round(log(2, lambda::numeric) * 2), round(log(2, weight::numeric) * 2), round(log(2, promised::numeric) * 2)
    )
    select coalesce(json_agg(json_build_object('count', count, 'lambda', lambda, 'weight', weight, 'promised', promised)), '[]') as groups,
      coalesce(sum(known) / sum(count), 0)::float8 as "knownPart"
    from alike`);
  return row;
}
