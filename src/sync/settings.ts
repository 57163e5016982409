import type { Config } from '../config/config.ts';

/** What sync uses of the configuration. Credentials are the client's. */
export interface SyncSettings extends Pick<Config, 'bulk' | 'intervals' | 'catalog'> {
  readonly partner: Pick<Config['partner'], 'baseUrl' | 'filesOrigins' | 'downloadTimeoutMs' | 'proxy'>;
  /** Requests a minute at the mirror's full pace. */
  readonly callsPerMinute: number;
}
