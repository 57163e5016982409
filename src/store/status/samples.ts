import type { Sql } from '../connection/db.ts';

/** What a sample contains about prices of one cohort; null if the catalog was not counted. Ages are in seconds. */
export interface CohortSample {
  readonly priced: number | null;
  readonly fresh: number | null;
  readonly p50: number | null;
  readonly p95: number | null;
}

/** What the status showed at one moment. Requests are counted over a window of the rate limit. */
export interface NewSample {
  readonly state: string;
  readonly backingOff: boolean;
  readonly incident: boolean;
  readonly requests: number;
  readonly otherRequests: number;
  readonly ceiling: number;
  readonly requestLimit: number;
  readonly skus: number | null;
  readonly pending: number | null;
  readonly due: number | null;
  readonly snapshot: CohortSample;
  readonly live: CohortSample;
}

/** A stored sample, for the minute that begins at `minute`, with price changes a minute since the previous one. */
export interface Sample extends NewSample {
  readonly minute: Date;
  readonly priceChanges: number | null;
}

/** Reads whether the present minute has its sample, and whether requests are being rejected. */
export async function readPresent(
  sql: Sql,
): Promise<{ readonly sampled: boolean; readonly refused: boolean }> {
  const [row] = await sql<[{ sampled: boolean; refused: boolean }]>`
    select exists (
      select from catalog_internal.samples where minute = date_trunc('minute', clock_timestamp())
    ) as sampled, exists (select from catalog_internal.pace where refusal is not null) as refused`;
  return row;
}

/**
 * Stores a sample for the present minute, unless another daemon was faster. Deletes samples of future minutes: a
 * clock that has been set back since took them, and their real time is unknown. Price changes are counted here by
 * position, which is in commit order: none is counted twice, and only those since the previous sample are read.
 */
export async function writeSample(sql: Sql, sample: NewSample): Promise<void> {
  const { snapshot, live } = sample;
  await sql`
    with present as materialized (select date_trunc('minute', clock_timestamp()) as minute),
    ahead as (delete from catalog_internal.samples s using present where s.minute > present.minute),
    before as materialized (
      select s.price_position as position, extract(epoch from present.minute - s.minute)::float8 / 60 as minutes
      from catalog_internal.samples s, present
      where s.minute < present.minute and s.minute >= present.minute - interval '3 minutes'
      order by s.minute desc limit 1
    ),
    newest as materialized (
      select coalesce((select id from catalog.price_history order by id desc limit 1), 0) as position
    )
    insert into catalog_internal.samples (
      minute, state, backing_off, incident, requests, other_requests,
      ceiling, request_limit, skus, pending, due,
      snapshot_priced, snapshot_fresh, snapshot_p50, snapshot_p95,
      live_priced, live_fresh, live_p50, live_p95,
      price_changes,
      price_position
    )
    select present.minute, ${sample.state}, ${sample.backingOff}, ${sample.incident}, ${sample.requests}, ${sample.otherRequests},
      ${sample.ceiling}, ${sample.requestLimit}, ${sample.skus}, ${sample.pending}, ${sample.due},
      ${snapshot.priced}, ${snapshot.fresh}, ${snapshot.p50}, ${snapshot.p95},
      ${live.priced}, ${live.fresh}, ${live.p50}, ${live.p95},
      (select (
         select count(*) from catalog.price_history h where h.id > before.position and h.id <= newest.position
       ) / before.minutes from before),
      newest.position
    from present, newest
    on conflict (minute) do nothing`;
}

/** Reads the samples of the last `spanMs`, oldest first. */
export async function readSamples(sql: Sql, spanMs: number): Promise<Sample[]> {
  const rows = await sql<Row[]>`
    select minute, state, backing_off as "backingOff", incident, requests, other_requests as "otherRequests", ceiling,
      request_limit as "requestLimit", skus, pending, due,
      snapshot_priced as "snapshotPriced", snapshot_fresh as "snapshotFresh", snapshot_p50 as "snapshotP50", snapshot_p95 as "snapshotP95",
      live_priced as "livePriced", live_fresh as "liveFresh", live_p50 as "liveP50", live_p95 as "liveP95",
      price_changes as "priceChanges"
    from catalog_internal.samples
    where minute between clock_timestamp() - make_interval(secs => ${spanMs / 1000}) and clock_timestamp()
    order by minute`;
  return rows.map(
    ({
      snapshotPriced,
      snapshotFresh,
      snapshotP50,
      snapshotP95,
      livePriced,
      liveFresh,
      liveP50,
      liveP95,
      ...row
    }) => ({
      ...row,
      snapshot: { priced: snapshotPriced, fresh: snapshotFresh, p50: snapshotP50, p95: snapshotP95 },
      live: { priced: livePriced, fresh: liveFresh, p50: liveP50, p95: liveP95 },
    }),
  );
}

type Cohort<Name extends string> = {
  readonly [K in keyof CohortSample as `${Name}${Capitalize<K>}`]: CohortSample[K];
};
type Row = Omit<Sample, 'snapshot' | 'live'> & Cohort<'snapshot'> & Cohort<'live'>;

/** Deletes samples older than `olderThanMs`. */
export async function pruneSamples(
  sql: Sql,
  { olderThanMs }: { readonly olderThanMs: number },
): Promise<void> {
  await sql`
    delete from catalog_internal.samples where minute < clock_timestamp() - make_interval(secs => ${olderThanMs / 1000})`;
}
