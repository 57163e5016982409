import type { Queryable, Tx } from '../connection/db.ts';

/*
 * While the delta is known to report nothing, findings of refreshes of snapshot-priced SKUs say nothing about what a
 * working delta leaves unreported, which p_right relies on (store/trust/beliefs.ts). They count as long as the outage
 * is not known, or the delta is distrusted, because then they may be the only sign that prices are wrong. Once the
 * outage is known, and over, they are set apart: the cohorts `unreported` keep the record of what was claimed and
 * found. The same holds while prices move in masses: if the price routes were wrong, no delta had anything to report.
 */

/** SQL: since when the delta has led nowhere. $1: whether it is enough that it is distrusted. */
const LED_NOWHERE_SINCE = `
  select case
    when delta_doubt = 'behind' or delta_doubt = 'distrusted' and $1::boolean
      or delta_doubt = 'suspected' and behind_since < now() - late.after then token_at
    when catalog_fault is not null or read_at < now() - late.after then read_at
  end as since
  from catalog_internal.sync, catalog_internal.settings g,
    make_interval(secs => catalog_internal.delta_late_after(g)) as late(after),
    coalesce(delta_checked_at, manifest_applied_at) as read_at`;

/** SQL that sets apart the counts of whole hours, including that of `since`. Locks rows in everyone's order. */
const settingApart = (since: string) => `
  with taken as materialized (
    select h.* from catalog_internal.calibration_hours h
    where hour >= (select date_trunc('hour', since) from (${since}) outage)
      and cohort in ('snapshot', 'snapshot sizes', 'reported', 'reported sizes')
    order by hour, cohort, bin for update
  ),
  gone as (
    delete from catalog_internal.calibration_hours h using taken t
    where h.hour = t.hour and h.cohort = t.cohort and h.bin = t.bin
  )
  insert into catalog_internal.calibration_hours as h (hour, cohort, bin, looks, "right", claimed, minutes, missed)
  select hour, case when cohort like '% sizes' then 'unreported sizes' else 'unreported' end as apart, bin, sum(looks),
    sum("right"), sum(claimed), sum(minutes), sum(missed)
  from taken group by hour, apart, bin
  order by hour, apart, bin
  on conflict (hour, cohort, bin) do update set looks = h.looks + excluded.looks, "right" = h."right" + excluded."right",
    claimed = h.claimed + excluded.claimed, minutes = h.minutes + excluded.minutes, missed = h.missed + excluded.missed`;

/** SQL that sets apart what was found since the outage of the delta began; to run before the token moves. */
export const SET_APART_UNREPORTED = settingApart(LED_NOWHERE_SINCE);

/** Sets apart what was found while the delta led nowhere; to be called before it moves the token. */
export async function setApartUnreported(tx: Tx): Promise<void> {
  await tx.unsafe(SET_APART_UNREPORTED, [true]);
}

const SET_APART_SINCE = settingApart('select $1::timestamptz as since');

/** Sets apart what was found since the given time. */
export async function setApartSince(sql: Queryable, since: Date): Promise<void> {
  await sql.unsafe(SET_APART_SINCE, [since]);
}
