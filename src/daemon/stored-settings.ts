import type { Config } from '../config/config.ts';
import { paceLimits } from '../pace/policy.ts';
import type { Sql } from '../store/connection/db.ts';
import { storeScopeMode } from '../store/sellers/scope.ts';
import { isStartedLast, readDaemons } from '../store/setup/instance.ts';
import { otherSettings, type SqlSettings, storeSettings } from '../store/setup/sql-settings.ts';
import type { Log } from '../telemetry/log/logger.ts';

/*
 * The settings that SQL uses are stored once for all daemons on a database: those of the running daemon that was
 * started last.
 */

export interface OwnSettings {
  readonly config: SqlSettings & Pick<Config, 'catalog'>;
  readonly sql: Sql;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** The number of this daemon (instance.ts). */
  readonly number: string;
}

/** Stores the settings of a daemon that is about to work, and logs in what other running daemons differ. */
export async function storeOwnSettings(own: OwnSettings): Promise<void> {
  const { config, sql, log } = own;
  const settings = await otherSettings(sql, config, paceLimits(config));
  if (settings.length > 0 && (await readDaemons(sql)).daemons > 1)
    log.warn({ event: 'settings.differ', settings, effective: 'own' });
  await storeSettings(sql, config, paceLimits(config));
  await storeScope(own);
}

async function storeScope({ config, sql, log }: OwnSettings): Promise<void> {
  const { scope } = config.catalog;
  if (await storeScopeMode(sql, scope === 'scope')) log.info({ event: 'scope.mode', scope });
}

/**
 * Returns a function that compares the stored settings with those of this daemon; call it again and again. While a
 * daemon that was started later is running, it reports once that they differ; when that daemon is gone, it stores
 * its own again. Only what two consecutive calls find counts, because a daemon that has lost its connection is
 * missing for some seconds.
 */
export function createSettingsWatch(own: OwnSettings): () => Promise<void> {
  const { config, sql, log, number } = own;
  let before: { readonly settings: string; readonly isLast: boolean } | null = null;
  let told = '';
  return async () => {
    const names = await otherSettings(sql, config, paceLimits(config));
    const isLast = await isStartedLast(sql, number);
    const settings = names.join(', ');
    const isSame = before?.settings === settings && before.isLast === isLast;
    before = { settings, isLast };
    if (names.length === 0) told = '';
    if (!isSame) return;
    if (isLast) {
      if (names.length > 0) {
        await storeSettings(sql, config, paceLimits(config));
        log.info({ event: 'settings.restored', settings: names });
      }
      await storeScope(own);
    } else if (settings !== told) {
      told = settings;
      log.warn({ event: 'settings.differ', settings: names, effective: 'other' });
    }
  };
}
