import type { Environment } from '../../config/environment.ts';
import { SETTINGS } from '../../config/settings.ts';

/** Short intervals, so that the market visibly moves. The environment takes precedence. */
const DEMO_SETTINGS: Readonly<Record<string, string>> = {
  PARTNER_RATE_SHARE: '0.95',
  DELTA_INTERVAL: '5s',
  LIVE_INTERVAL: '2m',
  DEFERRED_INTERVAL: '10s',
  CATALOG_CHECK_INTERVAL: '5m',
  LOG_LEVEL: 'warn',
};

/**
 * By their place in the configuration: what says how the account's partner speaks and how much it may be asked (a
 * sandbox has other names, limits and no proxy before it), where the daemon's queues and traces are (a demo's workers
 * would join those of production), and receivers, which a demo has none of.
 */
const OF_PRODUCTION = ['partner', 'rate', 'queues', 'traces', 'webhook', 'catalog.scope'];
const IGNORED: ReadonlySet<string> = new Set(
  Object.entries(SETTINGS).flatMap(([name, { path }]) =>
    OF_PRODUCTION.some((place) => path === place || path.startsWith(`${place}.`))
      ? [name, `${name}_FILE`, name.toLowerCase()]
      : [],
  ),
);

/** A market of the demo's own. */
export interface DemoPartner {
  readonly url: string;
  readonly apiKey: string;
  readonly secret: string;
}

/** The environment that a demo is configured by, from the shell's, which may be one of production. Pure. */
export function demoEnvironment(env: Environment, partner: DemoPartner): Environment {
  const own = Object.entries(env).filter(([name]) => !IGNORED.has(name));
  return {
    ...DEMO_SETTINGS,
    ...Object.fromEntries(own),
    PARTNER_BASE_URL: partner.url,
    PARTNER_API_KEY: partner.apiKey,
    PARTNER_SECRET: partner.secret,
  };
}
