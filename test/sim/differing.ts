import type { Sql } from '../../src/store/connection/db.ts';
import { storeSettings } from '../../src/store/setup/sql-settings.ts';
import { type SettingsEnv, settingsWith } from '../support/settings.ts';
import { type Draw, pick } from './faults.ts';

/** What daemons on one database may have for themselves, or as the last to start for all. */
const VALUES = {
  LIVE_INTERVAL: ['5m', '30m'],
  LIVE_POLICY: ['index', 'round-robin'],
  SWEEP_INTERVAL: ['0', '2h', '24h'],
  SWEEP_MIN_AGE: ['30m', '6h'],
  METADATA_INTERVAL: ['1d', '7d'],
  MANIFEST_INTERVAL: ['1h', '7d'],
  CATALOG_CHECK_INTERVAL: ['5m', '1h'],
  CATALOG_STALE_AFTER: ['1h', '24h'],
  ERROR_INTERVAL: ['10s', '1m', '10m'],
  BULK_LIVE_BUDGET: ['1', '3'],
  BULK_MAX_SKUS: ['4', '20', '100'],
  ACTIONABLE_CONFIDENCE: ['0.5', '0.95'],
} as const satisfies Record<string, readonly string[]>;

/** Settings of a daemon that has others than the defaults here and there. */
export function drawSettings(draw: Draw): SettingsEnv {
  const drawn = Object.entries(VALUES).flatMap(([name, values]) =>
    draw(3) === 0 ? [[name, pick<string>(values, draw)]] : [],
  );
  return Object.fromEntries(drawn) as SettingsEnv;
}

/** As a daemon does at its start: what SQL goes by is from now on as this one has it. */
export async function putInForce(sql: Sql, env: SettingsEnv): Promise<void> {
  const { maxPerWindow, account } = { maxPerWindow: 120, account: { floor: 40 } };
  await storeSettings(sql, settingsWith(env), { maxPerWindow, account });
}
