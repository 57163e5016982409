import { type Config, loadConfig } from '../../src/config/config.ts';
import type { SETTINGS } from '../../src/config/settings.ts';
import { paceLimits, sendsPerMinute } from '../../src/pace/policy.ts';
import type { SyncSettings } from '../../src/sync/settings.ts';

export type SettingsEnv = { readonly [Name in keyof typeof SETTINGS]?: string };

/**
 * A configuration as the environment has it: what a test is about is given in `env`, everything else has its default.
 * With what the daemon derives from it for sync.
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
