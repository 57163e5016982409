import { expect, test } from 'vitest';
import { paceLimits } from '../../src/pace/policy.ts';
import { readTargets, storeSettings } from '../../src/store/setup/sql-settings.ts';
import { settingsWith } from '../support/settings.ts';
import { useStore } from './support.ts';

const store = useStore();

/** Each value is used only once, and none is the default. */
const ODD = settingsWith({
  LIVE_INTERVAL: '11m',
  SWEEP_INTERVAL: '13h',
  METADATA_INTERVAL: '17h',
  CATALOG_STALE_AFTER: '19h',
  DELTA_INTERVAL: '23m',
  PARTNER_RATE_LIMIT: '310',
  PARTNER_RATE_WINDOW: '29s',
  PARTNER_RATE_SHARE: '0.5',
  PARTNER_RATE_FLOOR: '0.1',
  BULK_MAX_SKUS: '37',
  BULK_LIVE_BUDGET: '7',
  ACTIONABLE_CONFIDENCE: '0.83',
});

test('SQL uses the configured settings, in its own units', async () => {
  await storeSettings(store.sql, ODD, paceLimits(ODD));
  const [{ stored }] = await store.sql<[{ stored: Record<string, number> }]>`
    select to_jsonb(s) as stored from catalog_internal.settings s`;
  const MINUTE = 60;
  const HOUR = 60 * MINUTE;
  expect(stored).toEqual({
    id: true,
    live_interval: 11 * MINUTE,
    sweep_interval: 13 * HOUR,
    metadata_interval: 17 * HOUR,
    catalog_stale_after: 19 * HOUR,
    delta_interval: 23 * MINUTE,
    rate_limit: 310,
    rate_window: 29,
    rate_share: 155,
    rate_floor: 31,
    bulk_max_skus: 37,
    bulk_live_budget: 7,
    actionable_confidence: 0.83,
  });
  expect(await readTargets(store.sql)).toEqual({
    liveSeconds: 11 * MINUTE,
    snapshotSeconds: 13 * HOUR,
    metadataSeconds: 17 * HOUR,
    deltaIntervalSeconds: 23 * MINUTE,
    deltaLateAfterSeconds: 46 * MINUTE,
  });
});

test.each([
  ['7d', '0s', 7 * 86_400],
  ['6h', '1d', 6 * 3600],
  ['7d', '1d', 86_400],
])(
  'METADATA_INTERVAL %s and SWEEP_INTERVAL %s: a price is refreshed within %i seconds',
  async (metadata, sweep, seconds) => {
    const settings = settingsWith({ METADATA_INTERVAL: metadata, SWEEP_INTERVAL: sweep });
    await storeSettings(store.sql, settings, paceLimits(settings));
    expect(await readTargets(store.sql)).toMatchObject({ snapshotSeconds: seconds });
  },
);

test('the delta is late after two of its intervals, and after half an hour at least', async () => {
  for (const [interval, seconds] of [
    ['5m', 1800],
    ['15m', 1800],
    ['16m', 1920],
  ] as const) {
    const settings = settingsWith({ DELTA_INTERVAL: interval });
    await storeSettings(store.sql, settings, paceLimits(settings));
    expect(await readTargets(store.sql)).toMatchObject({ deltaLateAfterSeconds: seconds });
  }
});
