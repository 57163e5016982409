import type { Doubt } from '../answer/doubts.ts';
import { countDoubts } from '../answer/seller-doubts.ts';
import { allSent, scanning, type Sql, type Tx } from '../connection/db.ts';
import { IS_SCOPED } from '../sellers/scope.ts';

/** Upper bounds of the age distributions, in seconds: from a minute to a month. */
export const AGE_BUCKETS = [
  60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000,
];

/**
 * SKUs of one state and price source with prices of similar age. Ages are in seconds; a bucket is the number of
 * bounds below the age.
 */
interface Group {
  readonly state: string;
  readonly priceSource: 'snapshot' | 'live' | 'unknown';
  /** Null if the SKUs are not priced. */
  readonly bucket: number | null;
  readonly count: number;
  readonly sum: number;
  readonly oldest: number;
  readonly withinTarget: number;
}

type BySource = readonly { readonly priceSource: string; readonly count: number }[];

/**
 * Counts the whole catalog in scope, however long that takes. The transaction must read as of one moment (one
 * snapshot of the database). `monotonic` returns milliseconds.
 */
export async function scanCatalog(
  tx: Tx,
  monotonic: () => number = () => performance.now(),
): Promise<CatalogCounts> {
  const begunAt = monotonic();
  // Some hundred thousand moments are hashed: with the server's own 4 MB that goes through files, and JIT
  // compilation takes longer than counting.
  await tx`select set_config('work_mem', '64MB', true), set_config('jit', 'off', true)`;
  const [{ scoped }] = await tx<[{ scoped: boolean }]>`select ${tx.unsafe(IS_SCOPED)} as scoped`;
  const [[begun], groups, ledger, trust, outOfScope, doubted, [ended]] = await allSent([
    tx<[{ at: Date; ofManifest: string | null }]>`
      select now() as at, manifest_applied_at::text as "ofManifest" from catalog_internal.sync`,
    countSkus(tx, scoped),
    countLedger(tx),
    countTrusted(tx, scoped),
    scoped ? countOutside(tx) : null,
    countDoubts(tx),
    tx<[{ ms: number }]>`select (extract(epoch from clock_timestamp() - now()) * 1000)::float8 as ms`,
  ]);
  const of = (kind: LedgerCount['kind']) => ledger.filter((row) => row.kind === kind);
  const [deferred] = of('deferred');
  const [unanswered] = of('unanswered');
  return {
    countedAt: begun.at,
    // The machine may sleep meanwhile, or Postgres's clock be set: after a count of days the next would come weeks
    // later.
    countedInMs: Math.min(ended.ms, monotonic() - begunAt),
    ofManifest: begun.ofManifest,
    ...countsOf(
      groups,
      of('stale').map(({ label, count }) => ({ priceSource: label, count })),
    ),
    outOfScope,
    unanswered: unanswered?.count ?? 0,
    trust,
    failing: of('failing')
      .toSorted((a, b) => b.count - a.count)
      .map(({ label, count, oldest, error }) => ({
        sku: label,
        failures: count,
        oldestAgeSeconds: oldest,
        error,
      })),
    due: of('due').map(({ label, count, oldest }) => ({ reason: label, count, oldestAgeSeconds: oldest })),
    doubted,
    liveDeferred: of('live-deferred').length > 0,
    deferredSkus: deferred?.count ?? 0,
    oldestDeferredAgeSeconds: deferred?.oldest ?? 0,
  };
}

/**
 * SQL: whether no delta reports the moves of a row of catalog.skus, so that its prices have the target age of live
 * ones.
 */
const unreported = (tx: Tx) => tx`(price_source is not distinct from 'live' or not in_manifest)`;

/** SQL: the target ages of prices by class, in seconds. */
const targets = (tx: Tx) => tx`
  select live_interval as live, catalog_internal.snapshot_target(s) as snapshot from catalog_internal.settings s`;

/**
 * SKUs of one call share their moment, so they are grouped by it first, and ages are computed for a hundredth of the
 * rows.
 */
async function countSkus(tx: Tx, scoped: boolean): Promise<Group[]> {
  const inside = scoped
    ? tx`where not exists (select from catalog_internal.due d where d.sku = skus.sku and d.outside_due_at is not null)`
    : tx``;
  return await scanning(tx<Group[]>`
    with moments as materialized (
      select state, price_source, ${unreported(tx)} as unreported, case when state = 'priced' then priced_at end as priced_at,
        count(*) as n
      from catalog.skus ${inside} group by 1, 2, 3, 4
    ),
    aged as (
      select state, price_source, n, greatest(0, extract(epoch from now() - priced_at))::float8 as age,
        case when unreported then target.live else target.snapshot end as target
      from moments cross join (${targets(tx)}) target
    )
    select state, coalesce(price_source, 'unknown') as "priceSource",
      width_bucket(age, ${[0, ...AGE_BUCKETS.map((le) => le + 1e-9)]}::float8[]) as bucket,
      sum(n)::int as count, coalesce(sum(n * age), 0)::float8 as sum, coalesce(max(age), 0) as oldest,
      coalesce(sum(n) filter (where age <= target), 0)::int as "withinTarget"
    from aged group by 1, 2, 3`);
}

/** A SKU that is due again after an error. */
export interface FailingSku {
  readonly sku: string;
  readonly failures: number;
  readonly oldestAgeSeconds: number;
  /** Why its last answer was an error; null if an older daemon did not store that. */
  readonly error: string | null;
}

interface LedgerCount {
  readonly kind: 'due' | 'deferred' | 'live-deferred' | 'failing' | 'stale' | 'unanswered';
  /** For `failing`: why the last answer was an error. */
  readonly error: string | null;
  /** A reason for `due`, a price source for `stale`, the SKU for `failing`. */
  readonly label: string;
  /** SKUs; for `failing`, the failures of the SKU. */
  readonly count: number;
  readonly oldest: number;
}

/** How many SKUs in errors are named. */
const NAMED_FAILING = 5;

/**
 * Counts the due ledger in one scan. due: due now, by reason; SKUs that were deferred or wait for a second answer
 * count once their wait is over. deferred: waiting or due again; live-deferred: live ones that wait. failing: the
 * SKUs in errors that have failed most often. stale: prices within their class's target that are stale all the same
 * (as in catalog.current_prices), because a re-price is due, or because the SKU is refreshed as a live one and the
 * price is older than that allows. unanswered: never priced, and failed when asked.
 */
async function countLedger(tx: Tx): Promise<LedgerCount[]> {
  return await scanning(tx<LedgerCount[]>`
    with ledger as materialized (
      select sku, reason, live, due_at, deferrals, failures, last_error, catalog_internal.put_off_by(d) as put_off,
        catalog_internal.is_waiting(d) as waits, coalesce(held_until > now(), false) as held
      from catalog_internal.due d where due_at <= now() or outside_due_at is null and (deferrals > 0 or live and reason = 'live')
    )
    select 'due' as kind, coalesce(put_off, reason) as label,
      count(*)::int as count, extract(epoch from now() - min(greatest(due_at, 'epoch')))::float8 as oldest, null as error
    from ledger where due_at <= now() and not waits group by label
    union all
    select 'deferred', '', count(*)::int, coalesce(extract(epoch from now() - min(greatest(due_at, 'epoch'))), 0)::float8, null
    from ledger where deferrals > 0
    union all
    select 'live-deferred', '', count(*)::int, 0, null
    from ledger where deferrals > 0 and live and held having count(*) > 0
    union all
    (
      select 'failing', sku, failures, extract(epoch from now() - greatest(due_at, 'epoch'))::float8, last_error
      from ledger where due_at <= now() and put_off = 'error' order by failures desc, due_at, sku limit ${NAMED_FAILING}
    )
    union all
    select 'stale', coalesce(s.price_source, 'unknown'), count(*)::int, 0, null
    from (${targets(tx)}) target, ledger d join catalog.skus s using (sku)
    where s.state = 'priced'
      and extract(epoch from now() - s.priced_at) <= case when ${unreported(tx)} then target.live else target.snapshot end
      and (d.due_at <= now() and d.reason not in ('metadata', 'again')
        or d.live and d.reason = 'live' and extract(epoch from now() - s.priced_at) > target.live)
    group by s.price_source
    union all
    select 'unanswered', '', count(*)::int, 0, null
    from ledger d join catalog.skus s using (sku) where s.state = 'pending' and d.failures > 0 and d.due_at <= now()
    order by kind, label`);
}

/** Sums up what the view says about each priced SKU, by price source. */
async function countTrusted(tx: Tx, scoped: boolean): Promise<CatalogCounts['trust']> {
  const inside = scoped ? tx`and doubt is distinct from 'out_of_scope'` : tx``;
  return await scanning(tx<CatalogCounts['trust'][number][]>`
    select coalesce(price_source, 'unknown') as "priceSource", (count(*) filter (where actionable))::int as actionable,
      coalesce(sum(p_right), 0)::float8 as "expectedRight"
    from catalog.sku_trust where state = 'priced' ${inside} group by 1 order by 1`);
}

async function countOutside(tx: Tx): Promise<number> {
  const [row] = await scanning(tx<[{ skus: number }]>`
    select count(*)::int as skus from catalog_internal.due where outside_due_at is not null`);
  return row.skus;
}

type SkuCounts = Pick<
  CatalogCounts,
  'skus' | 'priceAge' | 'freshSkus' | 'metadataAge' | 'oldestMetadataAgeSeconds'
>;

/**
 * Sums groups up for display. A record contains both prices and metadata, so the metadata of a priced SKU is as old
 * as its prices. Fresh are SKUs within their target that are not among the stale. Pure.
 */
function countsOf(groups: readonly Group[], staleWithinTarget: BySource): SkuCounts {
  const priced = groups.filter(({ state }) => state === 'priced');
  const sources = [...Map.groupBy(priced, ({ priceSource }) => priceSource)].toSorted(([a], [b]) =>
    a.localeCompare(b),
  );
  const oldest = (rows: readonly Group[]) => rows.reduce((most, row) => Math.max(most, row.oldest), 0);
  const stale = new Map(staleWithinTarget.map(({ priceSource, count }) => [priceSource, count]));
  return {
    skus: [...Map.groupBy(groups, ({ state, priceSource }) => `${state} ${priceSource}`).values()].flatMap(
      (rows) => rows.slice(0, 1).map((row) => ({ ...labelsOf(row), count: total(rows, (r) => r.count) })),
    ),
    priceAge: sources.map(([priceSource, rows]) => ({
      priceSource,
      ages: distribution(rows),
      oldestSeconds: oldest(rows),
    })),
    freshSkus: sources.map(([priceSource, rows]) => ({
      priceSource,
      count: total(rows, (r) => r.withinTarget) - (stale.get(priceSource) ?? 0),
    })),
    metadataAge: distribution(priced),
    oldestMetadataAgeSeconds: oldest(priced),
  };
}

const labelsOf = ({ state, priceSource }: Group) => ({ state, priceSource });

const total = (groups: readonly Group[], of: (group: Group) => number) =>
  groups.reduce((sum, group) => sum + of(group), 0);

function distribution(priced: readonly Group[]): AgeDistribution {
  const within = (bucket: number) => priced.filter((group) => (group.bucket ?? 0) <= bucket);
  return {
    buckets: AGE_BUCKETS.map((le, i) => ({ le, count: total(within(i + 1), (group) => group.count) })),
    count: total(priced, (group) => group.count),
    sumSeconds: total(priced, (group) => group.sum),
  };
}

/** The size of the mirrored catalog, and what has been learned about the partner's limits on live computations. */
export interface CatalogSize {
  readonly skus: number;
  readonly live: number;
  /** Live SKUs a call; null if nothing has been learned yet. */
  readonly liveBudget: number | null;
  /** Live computations a minute; null until a ceiling has been met. */
  readonly liveCeiling: number | null;
}

/** Counts the SKUs that are refreshed, without those that are gone or out of scope. */
export async function readCatalogSize(sql: Sql): Promise<CatalogSize> {
  const inside = sql`
    and not exists (select from catalog_internal.due d where d.sku = s.sku and d.outside_due_at is not null)`;
  const [row] = await sql<[CatalogSize]>`
    select k.skus, k.live, s.live_budget::float8 as "liveBudget", c.per_minute as "liveCeiling"
    from catalog_internal.sync s, catalog_internal.live_ceiling c, (
      select count(*)::int as skus, count(*) filter (where price_source = 'live')::int as live
      from catalog.skus s where state in ('pending', 'priced') ${inside}
    ) k`;
  return row;
}

/**
 * A present distribution over SKUs. `le` are upper bounds in seconds, `count` is cumulative (Prometheus histogram
 * form).
 */
export interface AgeDistribution {
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
  readonly count: number;
  readonly sumSeconds: number;
}

/** Counts that need a scan of the catalog, all as of one moment. Ages are in seconds. */
export interface CatalogCounts {
  readonly countedAt: Date;
  readonly countedInMs: number;
  /**
   * When the manifest that the counted catalog reflects was applied, as the database writes it; null before the
   * first. It is dated by the beginning of a transaction that takes minutes, so comparing it with `countedAt` does
   * not tell whether it was counted.
   */
  readonly ofManifest: string | null;
  /**
   * SKUs that are out of scope, which nothing else here counts; null if everything is in scope
   * (MIRROR_SCOPE=catalog).
   */
  readonly outOfScope: number | null;
  /** Pending SKUs that were asked for and failed. Asking for them again is no part of a fill. */
  readonly unanswered: number;
  readonly skus: readonly { state: string; priceSource: 'snapshot' | 'live' | 'unknown'; count: number }[];
  readonly priceAge: readonly { priceSource: string; ages: AgeDistribution; oldestSeconds: number }[];
  readonly freshSkus: readonly { priceSource: string; count: number }[];
  /**
   * For priced SKUs: how many are actionable as a whole, and how many are right by their probabilities (the sum of
   * p_right).
   */
  readonly trust: readonly { priceSource: string; actionable: number; expectedRight: number }[];
  readonly metadataAge: AgeDistribution;
  readonly oldestMetadataAgeSeconds: number;
  /** SKUs that are due after an error; those that have failed most often come first. */
  readonly failing: readonly FailingSku[];
  readonly due: readonly { reason: string; count: number; oldestAgeSeconds: number }[];
  /** SKUs whose prices wait for a second answer, by doubt. */
  readonly doubted: Readonly<Record<Doubt, number>>;
  /** Whether a live SKU waits because the partner has deferred it. */
  readonly liveDeferred: boolean;
  readonly deferredSkus: number;
  readonly oldestDeferredAgeSeconds: number;
}
