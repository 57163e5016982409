import { type Config, loadConfig } from '../../src/config/config.ts';
import type { SETTINGS } from '../../src/config/settings.ts';
import { paceLimits, sendsPerMinute } from '../../src/pace/policy.ts';
import type { SyncSettings } from '../../src/sync/settings.ts';

export type SettingsEnv = { readonly [Name in keyof typeof SETTINGS]?: string };

/**
 * Returns a configuration as read from the environment: `env` contains what a test is about, and everything else
 * has its default. Includes what the daemon derives from it for sync.
 */
export function settingsWith(env: SettingsEnv = {}): Config & SyncSettings {
  const config = loadConfig(
    {
      PARTNER_BASE_URL: 'https://partner.example',
      PARTNER_API_KEY: 'key',
      PARTNER_SECRET: 'secret',
      ...env,
    },
    (path) => {
      throw new Error(`no file ${path} in this test`);
    },
  );
  return { ...config, callsPerMinute: sendsPerMinute(paceLimits(config)) };
}
