import { readDeltaAudit } from './audit.ts';
import type { Queryable, Sql } from './db.ts';
import { readLivePlan } from './live.ts';
import { readPace } from './pace.ts';
import type { AgeDistribution, MirrorStats } from './stats-types.ts';
import { readSyncState } from './sync-state.ts';
import { readTasks } from './tasks.ts';

/** Upper bounds of the age distributions, in seconds: from a minute to a month. */
export const AGE_BUCKETS = [
  60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000,
];

interface AgeRow {
  readonly priceSource: string;
  readonly counts: number[];
  readonly count: number;
  readonly sum: number;
  readonly oldest: number;
  readonly fresh: number;
}

/** Everything that metrics and `status` show of the mirror, read from Postgres in one moment. */
export async function readStats(
  sql: Sql,
  options: { readonly windowMs: number; readonly liveBudget: number; readonly paceOf: PaceReader },
): Promise<MirrorStats> {
  const [state, skus, prices, [metadata], due, [deferred], pace, deltaAudit, plan, tasks] = await Promise.all(
    [
      readSyncState(sql),
      sql<{ state: string; priceSource: 'snapshot' | 'live' | 'unknown'; count: number }[]>`
      select state, coalesce(price_source, 'unknown') as "priceSource", count(*)::int as count
      from catalog.skus group by 1, 2`,
      readPriceAges(sql),
      readMetadataAges(sql),
      readDue(sql),
      sql<[{ count: number; oldest: number }]>`
      select count(*)::int as count, coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as oldest
      from catalog_internal.due where deferrals > 0`,
      readPace(sql, options.windowMs),
      readDeltaAudit(sql),
      readLivePlan(sql),
      readTasks(sql),
    ],
  );
  return {
    snapshotId: state.snapshotId,
    snapshotGeneratedAt: state.snapshotGeneratedAt,
    manifestAppliedAt: state.manifestAppliedAt,
    deltaCheckedAt: state.deltaCheckedAt,
    catalogState: state.catalogState,
    skus,
    priceAge: prices.map((row) => ({
      priceSource: row.priceSource,
      ages: distribution(row),
      oldestSeconds: row.oldest,
    })),
    freshSkus: prices.map(({ priceSource, fresh }) => ({ priceSource, count: fresh })),
    metadataAge: distribution(metadata),
    oldestMetadataAgeSeconds: metadata.oldest,
    due,
    deferredSkus: deferred.count,
    oldestDeferredAgeSeconds: deferred.oldest,
    pace: options.paceOf(pace),
    liveBudgetPerCall: Math.floor(state.liveBudget ?? options.liveBudget),
    deltaAudit,
    tasks,
    live: {
      computedPerMinute: plan.computed,
      ceilingPerMinute: plan.ceilingPerMinute,
      longestWaitSeconds: plan.mostMinutes === null ? null : plan.mostMinutes * 60,
    },
    incident:
      plan.incident === null
        ? null
        : { since: new Date(plan.incident.since), because: plan.incident.because },
  };
}

/** Turns the stored pace into what is shown of it; the arithmetic is the pacer's. */
export type PaceReader = (view: Awaited<ReturnType<typeof readPace>>) => MirrorStats['pace'];

/** `counts` per bucket, not cumulative, one more than there are bounds. */
function distribution(row: Pick<AgeRow, 'counts' | 'count' | 'sum'>): AgeDistribution {
  let below = 0;
  const buckets = AGE_BUCKETS.map((le, i) => {
    below += row.counts[i] ?? 0;
    return { le, count: below };
  });
  return { buckets, count: row.count, sumSeconds: row.sum };
}

async function readPriceAges(sql: Queryable): Promise<AgeRow[]> {
  return await sql<AgeRow[]>`
    with aged as (
      select coalesce(s.price_source, 'unknown') as price_source,
        greatest(0, extract(epoch from now() - s.priced_at))::float8 as age,
        coalesce(d.due_at > now(), false) as fresh
      from catalog.skus s left join catalog_internal.due d using (sku)
      where s.state = 'priced'
    ),
    bucketed as (
      select price_source, width_bucket(age, ${[0, ...AGE_BUCKETS.map((le) => le + 1e-9)]}::float8[]) as bucket,
        count(*)::int as n, sum(age) as age, max(age) as oldest, (count(*) filter (where fresh))::int as fresh
      from aged group by 1, 2
    )
    select price_source as "priceSource",
      array(select coalesce(sum(b.n), 0)::int from generate_series(1, ${AGE_BUCKETS.length + 1}::int) as g(bucket)
            left join bucketed b on b.bucket = g.bucket and b.price_source = t.price_source
            group by g.bucket order by g.bucket) as counts,
      sum(n)::int as count, sum(age)::float8 as sum, max(oldest)::float8 as oldest, sum(fresh)::int as fresh
    from bucketed t group by price_source`;
}

async function readMetadataAges(sql: Queryable): Promise<[AgeRow]> {
  return await sql<[AgeRow]>`
    with bucketed as (
      select width_bucket(greatest(0, extract(epoch from now() - refreshed_at))::float8,
          ${[0, ...AGE_BUCKETS.map((le) => le + 1e-9)]}::float8[]) as bucket,
        count(*)::int as n, sum(extract(epoch from now() - refreshed_at)) as age,
        max(extract(epoch from now() - refreshed_at)) as oldest
      from catalog.products p join catalog.skus s using (sku)
      where s.state = 'priced'
      group by 1
    )
    select array(select coalesce(sum(b.n), 0)::int from generate_series(1, ${AGE_BUCKETS.length + 1}::int) as g(bucket)
        left join bucketed b using (bucket) group by g.bucket order by g.bucket) as counts,
      coalesce(sum(n), 0)::int as count, coalesce(sum(age), 0)::float8 as sum, coalesce(max(oldest), 0)::float8 as oldest
    from bucketed`;
}

async function readDue(sql: Queryable): Promise<MirrorStats['due']> {
  return await sql<{ reason: string; count: number; oldestAgeSeconds: number }[]>`
    select case when deferrals > 0 then 'deferred' when failures > 0 then 'error' else reason end as reason,
      count(*)::int as count, extract(epoch from now() - min(due_at))::float8 as "oldestAgeSeconds"
    from catalog_internal.due
    where due_at <= now() and (deferrals = 0 or held_until is null or claim is not null or held_until <= now())
    group by 1 order by 1`;
}
