import { describe, expect, test } from 'vitest';
import type { MirrorStats } from '../../src/status/status.ts';
import type { Metric } from '../../src/telemetry/metrics/declaration.ts';
import { createMetrics, METRICS } from '../../src/telemetry/metrics/metrics.ts';
import { ages, NOW, own, scrapeOf, STATS } from './stats.ts';

const UNKNOWN = { waitedMs: undefined, skus: undefined, status: null, date: null };
const create = () => createMetrics({ version: '1.2.3', mirror: 'a "shop"' });

/** Returns the types of our own metrics in Prometheus text, by name. */
function declared(text: string) {
  const types = new Map<string, string>();
  for (const [, name, type] of text.matchAll(/^# TYPE (catalog_mirror_\w+) (\w+)$/gm))
    types.set(name ?? '', type ?? '');
  return types;
}

test('names, units and help follow the rules that `promtool check metrics` applies', async () => {
  const text = await create().text();
  const types = declared(text);
  expect(types.size).toBeGreaterThan(25);
  for (const [name, type] of types) {
    expect(name).toMatch(/^[a-z][a-z0-9_]*$/);
    expect(name.endsWith('_total')).toBe(type === 'counter');
    expect(name).not.toMatch(/_(?:count|sum|bucket)$|__/);
    expect(name).not.toMatch(/_(?:gauge|counter|histogram|summary)(?:_|$)/);
    expect(name).not.toMatch(
      /_(?:milli|micro|nano|kilo)?(?:ms|s|sec|min|minutes|hours|days|milliseconds|kb|mb)(?:_|$)/,
    );
    expect(text).toMatch(new RegExp(`^# HELP ${name} [A-Z0-9a-z].{10,}$`, 'm'));
  }
});

test('known label sets exist before anything happens', async () => {
  const lines = own(await create().text());
  expect(lines).toEqual(
    expect.arrayContaining([
      'catalog_mirror_bulk_skus_total{outcome="resolved"} 0',
      'catalog_mirror_bulk_skus_total{outcome="not_found"} 0',
      'catalog_mirror_bulk_skus_total{outcome="deferred"} 0',
      'catalog_mirror_bulk_skus_total{outcome="error"} 0',
      'catalog_mirror_manifest_lines_total{outcome="rejected"} 0',
      'catalog_mirror_manifest_rejected_lines_total{reason="bad-sku"} 0',
      'catalog_mirror_partner_requests_total{route="bulk",outcome="ok"} 0',
      'catalog_mirror_partner_request_duration_seconds_count{route="delta"} 0',
      'catalog_mirror_syncs_total{kind="delta",outcome="ok"} 0',
      ...['snapshot-expired', 'since-missing', 'delta-too-large'].map(
        (outcome) => `catalog_mirror_syncs_total{kind="delta",outcome="${outcome}"} 0`,
      ),
      'catalog_mirror_price_changes_total 0',
      'catalog_mirror_unpriced_entries_total 0',
      'catalog_mirror_mirror_stats_available 0',
      `catalog_mirror_build_info{version="1.2.3",node="${process.versions.node}",mirror="a \\"shop\\""} 1`,
    ]),
  );
});

test('a metric that may have no series has no label sets that are filled with 0', () => {
  const said = Object.entries<Metric>(METRICS).filter(([, { help }]) => /no series/i.test(help));
  expect(said.length).toBeGreaterThan(5);
  expect(said.filter(([, { labels }]) => labels.sets.length > 0).map(([name]) => name)).toEqual([]);
});

describe('the metrics of the mirror at scrape time', () => {
  async function filled(stats: Partial<MirrorStats> = {}) {
    const metrics = create();
    metrics.setMirror(scrapeOf({ ...STATS, ...stats }));
    return own(await metrics.text());
  }

  test('show what was read, and 0 for label sets without rows', async () => {
    expect(await filled()).toEqual(
      expect.arrayContaining([
        'catalog_mirror_snapshot_generated_timestamp_seconds 1795132800.25',
        'catalog_mirror_manifest_applied_timestamp_seconds 1795136400',
        'catalog_mirror_catalog_state{state="ok"} 0',
        'catalog_mirror_catalog_state{state="stale"} 1',
        'catalog_mirror_skus{state="priced",price_source="live"} 7',
        'catalog_mirror_skus{state="removed",price_source="unknown"} 0',
        'catalog_mirror_fresh_skus{price_source="live"} 5',
        'catalog_mirror_fresh_skus{price_source="snapshot"} 0',
        'catalog_mirror_oldest_price_age_seconds{price_source="live"} 900',
        'catalog_mirror_price_age_target_seconds{price_source="live"} 1800',
        'catalog_mirror_price_age_target_seconds{price_source="snapshot"} 86400',
        'catalog_mirror_oldest_metadata_age_seconds 1234',
        'catalog_mirror_due_skus{reason="changed"} 3',
        'catalog_mirror_due_skus{reason="watched"} 1',
        'catalog_mirror_due_skus{reason="deferred"} 0',
        'catalog_mirror_oldest_due_age_seconds{reason="changed"} 42',
        'catalog_mirror_deferred_skus 2',
        'catalog_mirror_oldest_deferred_age_seconds 30',
        'catalog_mirror_request_ceiling_per_minute 60',
        'catalog_mirror_requests_in_window 17',
        'catalog_mirror_live_budget_per_call 5',
        'catalog_mirror_delta_reports_total{outcome="confirmed"} 90',
        'catalog_mirror_delta_reports_total{outcome="unchanged"} 10',
        'catalog_mirror_moves_seen_first_total{reported="later"} 4',
        'catalog_mirror_moves_seen_first_total{reported="never"} 1',
        'catalog_mirror_moves_seen_first_seconds_total 3600.5',
        'catalog_mirror_unreported_moves 3',
        'catalog_mirror_hints_total{source="orders"} 400',
        'catalog_mirror_hint_refreshes_total{source="orders"} 120',
        'catalog_mirror_hint_precision_ratio{source="orders"} 0.52',
        'catalog_mirror_hint_recall_ratio{source="orders"} 0.48',
        'catalog_mirror_waiting_hints{source="orders"} 9',
        'catalog_mirror_unread_hints 12',
        'catalog_mirror_sql_refreshes_total 50',
        'catalog_mirror_sql_refreshes_refused_total 2',
        'catalog_mirror_backing_off 1',
        'catalog_mirror_mirror_stats_available 1',
      ]),
    );
  });

  test('contain each series once', async () => {
    const names = (await filled()).map((line) => line.replace(/ \S+$/, ''));
    expect(names).toEqual([...new Set(names)]);
  });

  test('omit an unknown time, because 0 would be 1970', async () => {
    expect((await filled()).filter((line) => line.includes('delta_checked'))).toEqual([]);
  });

  test('show a back-off that is over as 0', async () => {
    const pace = { ...STATS.pace, backingOffUntil: new Date(NOW) };
    expect(await filled({ pace })).toContain('catalog_mirror_backing_off 0');
  });

  test('show ages as a whole histogram: ascending cumulative buckets, +Inf, sum and count', async () => {
    const lines = await filled();
    expect(lines.filter((line) => /price_age_seconds_\w+\{price_source="live"/.test(line))).toEqual([
      'catalog_mirror_price_age_seconds_bucket{price_source="live",le="60"} 1',
      'catalog_mirror_price_age_seconds_bucket{price_source="live",le="300"} 4',
      'catalog_mirror_price_age_seconds_bucket{price_source="live",le="+Inf"} 6',
      'catalog_mirror_price_age_seconds_sum{price_source="live"} 4200.5',
      'catalog_mirror_price_age_seconds_count{price_source="live"} 6',
    ]);
    expect(lines).toContain('catalog_mirror_price_age_seconds_count{price_source="snapshot"} 0');
    expect(lines.filter((line) => line.startsWith('catalog_mirror_metadata_age'))).toEqual([
      'catalog_mirror_metadata_age_seconds_bucket{le="60"} 1',
      'catalog_mirror_metadata_age_seconds_bucket{le="300"} 4',
      'catalog_mirror_metadata_age_seconds_bucket{le="+Inf"} 6',
      'catalog_mirror_metadata_age_seconds_sum 4200.5',
      'catalog_mirror_metadata_age_seconds_count 6',
    ]);
  });

  test('contain +Inf only once if it was given as a bucket', async () => {
    const withInfinity = { ...ages, buckets: [...ages.buckets, { le: Infinity, count: 6 }] };
    const lines = await filled({ metadataAge: withInfinity });
    expect(lines.filter((line) => /metadata_age.*Inf/.test(line))).toHaveLength(1);
  });

  test('drop the series of an earlier reading', async () => {
    const metrics = create();
    metrics.setMirror(scrapeOf(STATS));
    metrics.setMirror(scrapeOf({ ...STATS, due: [] }));
    expect(await metrics.text()).not.toContain('reason="watched"');
    metrics.setMirror(scrapeOf({ ...STATS, hints: { unread: 0, sources: [] } }));
    expect(await metrics.text()).not.toContain('source="orders"');
    metrics.setMirror(scrapeOf(null));
    const lines = own(await metrics.text());
    expect(lines.filter((line) => /_skus\{reason|_age_seconds|timestamp|mirror_skus/.test(line))).toEqual([]);
    expect(lines).toContain('catalog_mirror_mirror_stats_available 0');
  });
});

test('two daemons in one process have separate metrics', async () => {
  const [first, second] = [create(), create()];
  first.count({ event: 'request.ended', route: 'bulk', outcome: 'ok', ms: 5, ...UNKNOWN });
  expect(await first.text()).toContain('catalog_mirror_partner_requests_total{route="bulk",outcome="ok"} 1');
  expect(await second.text()).toContain('catalog_mirror_partner_requests_total{route="bulk",outcome="ok"} 0');
});

test('an incident and the learned ceiling are shown, and an unknown wait has no series', async () => {
  const metrics = create();
  metrics.setMirror(scrapeOf(STATS));
  const lines = own(await metrics.text());
  expect(lines).toEqual(
    expect.arrayContaining([
      'catalog_mirror_incident{because="deferrals"} 1',
      'catalog_mirror_incident{because="live-count"} 0',
      'catalog_mirror_live_ceiling_per_minute 196',
      'catalog_mirror_live_computations_last_minute 12',
    ]),
  );
  expect(lines.filter((line) => line.startsWith('catalog_mirror_live_longest_wait_seconds'))).toEqual([]);
});
