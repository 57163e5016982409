import type { Config } from '../../config/config.ts';
import type { Sql } from '../connection/db.ts';

export type SqlSettings = Pick<Config, 'intervals' | 'catalog' | 'rate' | 'bulk'>;
/** The mirror's share of the account's limit, and its guaranteed minimum, in requests a window. */
type MirrorShare = { readonly maxPerWindow: number; readonly account: { readonly floor: number } };

/** The settings that SQL uses: columns of catalog_internal.settings, and the variables that they come from. */
const STORED = {
  live_interval: 'LIVE_INTERVAL',
  sweep_interval: 'SWEEP_INTERVAL',
  metadata_interval: 'METADATA_INTERVAL',
  catalog_stale_after: 'CATALOG_STALE_AFTER',
  delta_interval: 'DELTA_INTERVAL',
  rate_limit: 'PARTNER_RATE_LIMIT',
  rate_window: 'PARTNER_RATE_WINDOW',
  rate_share: 'PARTNER_RATE_SHARE',
  rate_floor: 'PARTNER_RATE_FLOOR',
  bulk_max_skus: 'BULK_MAX_SKUS',
  bulk_live_budget: 'BULK_LIVE_BUDGET',
  actionable_confidence: 'ACTIONABLE_CONFIDENCE',
} as const;
type StoredSettings = Readonly<Record<keyof typeof STORED, number>>;

/** Converts times to seconds, and expresses the mirror's parts of the account's limit in requests a window. */
function storedForm({ intervals, catalog, rate, bulk }: SqlSettings, mirror: MirrorShare): StoredSettings {
  return {
    live_interval: intervals.liveMs / 1000,
    sweep_interval: intervals.sweepMs / 1000,
    metadata_interval: intervals.metadataMs / 1000,
    catalog_stale_after: catalog.staleAfterMs / 1000,
    delta_interval: intervals.deltaMs / 1000,
    rate_limit: rate.limit,
    rate_window: rate.windowMs / 1000,
    rate_share: mirror.maxPerWindow,
    rate_floor: mirror.account.floor,
    bulk_max_skus: bulk.maxSkus,
    bulk_live_budget: bulk.liveBudget,
    actionable_confidence: catalog.actionableConfidence,
  };
}

export async function storeSettings(sql: Sql, settings: SqlSettings, mirror: MirrorShare): Promise<void> {
  await sql`update catalog_internal.settings set ${sql(storedForm(settings, mirror))}`;
}

/** Returns the variables of those settings that SQL uses and that are stored with other values than these. */
export async function otherSettings(
  sql: Sql,
  settings: SqlSettings,
  mirror: MirrorShare,
): Promise<readonly string[]> {
  const [stored] = await sql<StoredSettings[]>`select * from catalog_internal.settings`;
  if (stored === undefined) return [];
  const own = storedForm(settings, mirror);
  const others = (Object.keys(STORED) as (keyof typeof STORED)[]).filter((key) => own[key] !== stored[key]);
  // If the limit differs, its parts differ as a consequence.
  const told = own.rate_limit === stored.rate_limit ? others : others.filter((key) => !PARTS.has(key));
  return told.map((key) => STORED[key]);
}

const PARTS: ReadonlySet<keyof typeof STORED> = new Set(['rate_share', 'rate_floor']);

/** The targets by which SQL judges ages, in seconds, as configured in the daemon that was started last. */
export interface Targets {
  readonly liveSeconds: number;
  /** Without sweeps this is METADATA_INTERVAL, because a metadata refresh also brings a price. */
  readonly snapshotSeconds: number;
  readonly metadataSeconds: number;
  readonly deltaIntervalSeconds: number;
  /** The time without a checked delta after which it is late. */
  readonly deltaLateAfterSeconds: number;
}

export async function readTargets(sql: Sql): Promise<Targets> {
  const [row] = await sql<[Targets]>`
    select live_interval as "liveSeconds", metadata_interval as "metadataSeconds", delta_interval as "deltaIntervalSeconds",
      catalog_internal.snapshot_target(s) as "snapshotSeconds", catalog_internal.delta_late_after(s) as "deltaLateAfterSeconds"
    from catalog_internal.settings s`;
  return row;
}

/** How many requests the daemon started last may send, and what it puts into a bulk call. */
export interface DaemonSettings {
  readonly maxPerWindow: number;
  readonly windowMs: number;
  readonly account: { readonly limit: number; readonly floor: number };
  readonly bulkMaxSkus: number;
  readonly liveBudget: number;
}

export async function readDaemonSettings(sql: Sql): Promise<DaemonSettings | null> {
  const [row] = await sql<DaemonSettings[]>`
    select rate_share as "maxPerWindow", (rate_window * 1000)::float8 as "windowMs",
      json_build_object('limit', rate_limit, 'floor', rate_floor) as account,
      bulk_max_skus as "bulkMaxSkus", bulk_live_budget as "liveBudget"
    from catalog_internal.settings`;
  return row ?? null;
}

/** The refresh intervals of the daemon started last, in milliseconds. */
export type DaemonIntervals = Pick<Config['intervals'], 'liveMs' | 'sweepMs' | 'metadataMs' | 'deltaMs'>;

export async function readDaemonIntervals(sql: Sql): Promise<DaemonIntervals | null> {
  const [row] = await sql<DaemonIntervals[]>`
    select live_interval * 1000 as "liveMs", sweep_interval * 1000 as "sweepMs", metadata_interval * 1000 as "metadataMs",
      delta_interval * 1000 as "deltaMs"
    from catalog_internal.settings`;
  return row ?? null;
}
