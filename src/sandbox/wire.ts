import type { Dialect } from './options.ts';
import type { Details, Sizes } from './skus.ts';
import type { CatalogCode, Delta, Snapshot } from './snapshots.ts';
import type { ManifestLine } from './world.ts';

export type Json = Record<string, unknown>;

/** What became of the SKUs of one bulk call. `bodies` are single-lookup bodies by SKU. */
export interface BulkOutcome {
  bodies: Map<string, Json>;
  notFound: string[];
  deferred: string[];
  errors: string[];
  requested: number;
  deduped: number;
}

const MESSAGES: Record<CatalogCode | '0009', string> = {
  '0009': 'SKU not found',
  '0010': 'Snapshot expired or chain broken, fetch a fresh manifest',
  '0011': 'since is required',
  '0012': 'No catalog snapshot built yet',
  '0013': 'Change set too large, fetch a fresh manifest',
  '0014': 'Catalog snapshot is stale, use the price endpoints',
};

/** Creates the error body of pricing and catalog endpoints (partner rules 7.2). */
export function codeBody(code: CatalogCode | '0009'): Json {
  return { message: MESSAGES[code], code };
}

/** The service's own 500 (partner rules 7.2): the key is `errorMessage`. */
export const SERVICE_ERROR: Json = { errorMessage: 'Internal Server Error' };
/** 504: the gateway before the service has given up. */
export const GATEWAY_TIMEOUT: Json = { message: 'Endpoint request timed out' };

/** Creates the lowest-price record (partner rules 2.4). */
export function recordBody(dialect: Dialect, sizes: Sizes, details: Details): Json {
  const entries: [string, unknown][] = [...sizes].map(([size, price]) => [size, entry(dialect, price)]);
  return {
    message: 'success',
    code: '0000',
    size_map: Object.fromEntries([...entries, ['size_type', details.sizeType]]),
    product: { ...details.product, ...extra(dialect, { release_year: 2026 }) },
    ...extra(dialect, { region: 'TH' }),
  };
}

/** Creates the bulk answer (partner rules 2.5). */
export function bulkBody(dialect: Dialect, outcome: BulkOutcome): Json {
  const list = (skus: string[]): unknown[] => elements(dialect, dialect.elements, skus);
  const count = (value: number): number | string => (dialect.counts === 'string' ? String(value) : value);
  return {
    results: Object.fromEntries(outcome.bodies),
    not_found: list(outcome.notFound),
    deferred: list(outcome.deferred),
    errors: list(outcome.errors),
    requested: count(outcome.requested),
    deduped: count(outcome.deduped),
    ...extra(dialect, { region: 'TH' }),
  };
}

/** Creates the manifest response (partner rules 2.7). */
export function manifestBody(dialect: Dialect, snapshot: Snapshot, url: string, expiresAt: number): Json {
  return {
    ...(dialect.otherIdField === null ? {} : { [dialect.otherIdField]: `not-${snapshot.id}` }),
    [dialect.snapshotIdField]: snapshot.id,
    [dialect.urlField]: url,
    url_expires_at: new Date(expiresAt).toISOString(),
    generated_at: new Date(snapshot.generatedAt).toISOString(),
    sku_count: snapshot.skuCount,
    live_priced_sku_count: snapshot.liveCount,
    ...extra(dialect, { format: 'ndjson+gzip', schema_version: 1 }),
  };
}

/** Creates the delta response (partner rules 2.8). */
export function deltaBody(dialect: Dialect, delta: Delta): Json {
  const list = (skus: string[]): unknown[] => elements(dialect, dialect.changedElements, skus);
  return {
    changed: list(delta.changed),
    removed: list(delta.removed),
    now_live: list(delta.nowLive),
    to_snapshot: delta.toSnapshot,
    ...extra(dialect, { schema_version: 1 }),
  };
}

/** Creates one line of the manifest file, including its newline. */
export function manifestLine(dialect: Dialect, line: Record<keyof ManifestLine, unknown>): string {
  return `${JSON.stringify({ ...line, ...extra(dialect, { rank: String(line.sku).length }) })}\n`;
}

function entry(dialect: Dialect, price: number | null): unknown {
  if (dialect.entries === 'object') {
    const retail = dialect.retailField === null ? {} : { [dialect.retailField]: (price ?? 3200) + 390 };
    return { ...retail, [dialect.priceField]: price, ...extra(dialect, { listings: 3 }) };
  }
  return dialect.entries === 'string' && price !== null ? String(price) : price;
}

function elements(dialect: Dialect, kind: 'string' | 'object', skus: string[]): unknown[] {
  if (kind === 'string') return skus;
  return skus.map((sku) => ({ [dialect.skuField]: sku, ...extra(dialect, { note: 'n/a' }) }));
}

/** Returns undocumented members if the dialect sends such. */
export function extra(dialect: Dialect, members: Json): Json {
  return dialect.extraFields ? members : {};
}
