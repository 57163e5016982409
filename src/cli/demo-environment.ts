import { resolve } from 'node:path';
import type { Environment } from '../config/environment.ts';
import { SETTINGS } from '../config/settings.ts';

/** Short intervals, so that the market visibly moves. The environment takes precedence over them. */
const DEMO_SETTINGS: Readonly<Record<string, string>> = {
  PARTNER_RATE_SHARE: '0.95',
  DELTA_INTERVAL: '5s',
  LIVE_INTERVAL: '2m',
  DEFERRED_INTERVAL: '10s',
  CATALOG_CHECK_INTERVAL: '5m',
  LOG_LEVEL: 'warn',
};

/**
 * Settings, by their place in the configuration, that a demo ignores: how the account's partner speaks and how much it
 * may be asked (a sandbox has other names and limits, and no proxy before it), where the daemon's queues and traces are
 * (a demo's workers would join those of production), and receivers, which a demo does not have.
 */
const OF_PRODUCTION = ['partner', 'rate', 'queues', 'traces', 'webhook', 'catalog.scope'];
const IGNORED: ReadonlySet<string> = new Set(
  Object.entries(SETTINGS).flatMap(([name, { path }]) =>
    OF_PRODUCTION.some((place) => path === place || path.startsWith(`${place}.`))
      ? [name, `${name}_FILE`, name.toLowerCase()]
      : [],
  ),
);

/** The demo's own market. */
interface DemoPartner {
  readonly url: string;
  readonly apiKey: string;
  readonly secret: string;
}

/** Derives the demo's environment from the shell's, which may be one of production. Pure. */
export function demoEnvironment(env: Environment, partner: DemoPartner): Environment {
  const isEmpty = (name: string) => (env[name] ?? '').trim() === '';
  const own = Object.entries(env).filter(
    // An empty variable counts as unset.
    ([name]) => !IGNORED.has(name) && !(Object.hasOwn(DEMO_SETTINGS, name) && isEmpty(name)),
  );
  return {
    ...DEMO_SETTINGS,
    ...Object.fromEntries(own),
    PARTNER_BASE_URL: partner.url,
    PARTNER_API_KEY: partner.apiKey,
    PARTNER_SECRET: partner.secret,
  };
}

/** The first query of the README. */
const QUERY = "SELECT size, price FROM catalog.current_prices WHERE sku = 'DD1391-100' AND actionable";

/** The addresses of the running demo. */
interface DemoAddresses {
  readonly httpPort: number;
  readonly databaseUrl: string;
}

const isSet = (env: Environment, name: string): boolean => (env[name] ?? '') !== '';
/** Returns whether the demo uses a database that was given to it. */
export const ownsDatabase = (env: Environment): boolean =>
  isSet(env, 'DATABASE_URL') || isSet(env, 'DATABASE_URL_FILE');

/** Returns how to call the program in another terminal, the way it was called in this one. */
function programIn(env: Environment): string {
  const dataDir = env['DATA_DIR'] ?? '';
  const settings =
    dataDir === '' || ownsDatabase(env) ? '' : `DATA_DIR='${resolve(dataDir).replaceAll("'", `'\\''`)}' `;
  const script = env['npm_lifecycle_event'] ?? '';
  const program = script === 'npx' ? 'npx catalog-mirror' : script === '' ? 'catalog-mirror' : 'npm start --';
  return `${settings}${program}`;
}

/** Returns the argument for psql in a shell. A configured URL may contain a password, which the demo must not print. */
function psqlTarget(env: Environment, databaseUrl: string): string {
  if (isSet(env, 'DATABASE_URL')) return '"$DATABASE_URL"';
  return isSet(env, 'DATABASE_URL_FILE') ? '"$(cat "$DATABASE_URL_FILE")"' : `'${databaseUrl}'`;
}

/** Lists every way to view the running demo, one per line. */
export function accessLines({ httpPort, databaseUrl }: DemoAddresses, env: Environment): string[] {
  const page = `http://127.0.0.1:${httpPort}`;
  const program = programIn(env);
  return [
    `  page      ${page}/`,
    `  metrics   ${page}/metrics`,
    `  psql      psql ${psqlTarget(env, databaseUrl)}`,
    '  and in another terminal, without psql:',
    `    ${program} sql "${QUERY}"`,
    `    ${program} status --watch`,
  ];
}

/** Says what is left of a stopped demo, and how to view it again. `dataDir` is the folder of its Postgres. */
export function keptLines(dataDir: string, env: Environment): string[] {
  const program = programIn(env);
  if (ownsDatabase(env)) return ['stopped; the mirror is kept in the database of DATABASE_URL'];
  return [
    `stopped; the mirror is kept in ${resolve(dataDir)} until the next demo starts with an empty one`,
    'look at it again:',
    `  ${program} sql "SELECT * FROM catalog.price_history ORDER BY id DESC LIMIT 20"`,
    `  ${program} status`,
  ];
}
