import type { Sql } from '../../src/store/connection/db.ts';
import { storeSettings } from '../../src/store/setup/sql-settings.ts';
import { type SettingsEnv, settingsWith } from '../support/settings.ts';
import { type Draw, pick } from './faults.ts';

/** Settings in which daemons on one database may differ, or which the last one to start sets for all. */
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

/** Draws settings of a daemon, some of which differ from the defaults. */
export function drawSettings(draw: Draw): SettingsEnv {
  const drawn = Object.entries(VALUES).flatMap(([name, values]) =>
    draw(3) === 0 ? [[name, pick<string>(values, draw)]] : [],
  );
  return Object.fromEntries(drawn) as SettingsEnv;
}

/** Stores settings like a daemon at its start, so that SQL uses them from now on. */
export async function putInForce(sql: Sql, env: SettingsEnv): Promise<void> {
  const { maxPerWindow, account } = { maxPerWindow: 120, account: { floor: 40 } };
  await storeSettings(sql, settingsWith(env), { maxPerWindow, account });
}
