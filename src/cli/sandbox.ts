import { parseDuration } from '../lib/duration.ts';
import { routeLines, type SandboxOptions, startSandbox } from '../sandbox/index.ts';
import { type Command, EXIT, numberOption, UsageError } from './command.ts';
import { stopSignal } from './process.ts';

const YES_OR_NO = ['yes', 'no'];

export const sandbox: Command = {
  summary: 'run a local server that behaves like the partner API',
  usage: 'sandbox [--port 8080] [--skus 5000] [--live-share 0.05] [--seed 1] [--orders 250] [--vacation]',
  examples: [
    ['catalog-mirror sandbox', 'a whole partner account on http://127.0.0.1:8080; open it to see the routes'],
    ['catalog-mirror sandbox --port 0 --seed 7', 'on any free port, with another catalog'],
    [
      'catalog-mirror sandbox --orders 5000 --listings 0 --market-interval 1s',
      'many orders that progress fast, no listings',
    ],
    [
      'catalog-mirror sandbox --vacation --seller-shipping no --confirm-delay 1m',
      'an account on vacation without seller shipping, with slow confirmations',
    ],
    [
      'catalog-mirror sandbox --ambiguous --skus 1000',
      'answers that allow more than one reading; the catalog that they tell of is the same',
    ],
    ['catalog-mirror sandbox --rate-limit 20', 'a low rate limit, to test how a client handles it'],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: {
    host: { type: 'string' },
    port: { type: 'string' },
    skus: { type: 'string' },
    'live-share': { type: 'string' },
    'mislisted-share': { type: 'string' },
    'refused-share': { type: 'string' },
    'bulk-limit': { type: 'string' },
    ambiguous: { type: 'boolean' },
    seed: { type: 'string' },
    'rate-limit': { type: 'string' },
    'live-budget': { type: 'string' },
    'live-ceiling': { type: 'string' },
    'market-interval': { type: 'string' },
    'snapshot-interval': { type: 'string' },
    orders: { type: 'string' },
    listings: { type: 'string' },
    vacation: { type: 'boolean' },
    'seller-shipping': { type: 'string' },
    'confirm-delay': { type: 'string' },
    'api-key': { type: 'string' },
    secret: { type: 'string' },
    latency: { type: 'string' },
  },
  optionHelp: {
    host: 'address to listen on (127.0.0.1)',
    port: 'port; 0: any free port (8080)',
    skus: 'SKUs in the first manifest (5000)',
    'live-share': 'share of SKUs that are live-priced (0.05)',
    'mislisted-share': 'share of SKUs listed as snapshot that use live budget (0)',
    'refused-share': 'share of SKUs with which a bulk call answers 400 as a whole (0)',
    'bulk-limit': 'SKUs in a bulk call; more answer 504 (100)',
    ambiguous: "answer in ways that the partner's rules allow and that are easily misread",
    seed: 'seed of the catalog and the market (1)',
    'rate-limit': 'requests allowed in any rolling minute (200)',
    'live-budget': 'live computations in one bulk call (5)',
    'live-ceiling': 'live computations in any rolling minute (unlimited)',
    'market-interval': 'time between market changes: prices, sales, orders (5s)',
    'snapshot-interval': 'time between catalog snapshots (1m)',
    orders: 'orders of the account at start (250)',
    listings: 'live listings of the account at start (600)',
    vacation: 'put the account in vacation mode: no ask listing is created',
    'seller-shipping': 'whether the fee of a confirmation is deducted (yes)',
    'confirm-delay': 'time from a confirmation to the status change (5s)',
    'api-key': 'accepted api_key (sandbox-key)',
    secret: 'accepted secret (sandbox-secret)',
    latency: 'delay before every response (0s)',
  },
  moreHelp: [
    '',
    'Routes (GET / lists them in a browser, each with a working curl command):',
    ...routeLines().map((line) => `  ${line}`),
  ],
  choices: { 'seller-shipping': YES_OR_NO },
  positionals: false,
  async run({ values, print }) {
    const server = await startSandbox(optionsOf(values));
    const stop = stopSignal();
    print(`sandbox listens on ${server.url}`);
    print(
      `  PARTNER_BASE_URL=${server.url} PARTNER_API_KEY=${server.apiKey} PARTNER_SECRET=${server.secret}`,
    );
    print(`  routes: ${server.url}/`);
    await stop.promise;
    await server.close();
    stop.dispose();
    return EXIT.ok;
  },
};

/** The sandbox's options from the command line; throws UsageError naming every one that does not fit. */
export function optionsOf(values: Readonly<Record<string, string | boolean | undefined>>): SandboxOptions {
  const problems: string[] = [];
  const whole = (name: string, fallback: number, min: number, max: number) =>
    numberOption(values, name, fallback, { min, max }, problems);
  const part = (name: string, fallback: number) =>
    numberOption(values, name, fallback, { min: 0, max: 1, whole: false }, problems);
  const duration = (name: string, fallback: number) => {
    const given = values[name];
    const ms = given === undefined ? fallback : parseDuration(String(given));
    if (ms === null) problems.push(`--${name}: expected a duration such as 500ms, 5s or 1m`);
    return ms ?? fallback;
  };
  const text = (name: string, fallback: string) => String(values[name] ?? fallback);
  const options: SandboxOptions = {
    host: text('host', '127.0.0.1'),
    port: whole('port', 8080, 0, 65_535),
    skus: whole('skus', 5000, 1, 10_000_000),
    liveShare: part('live-share', 0.05),
    mislistedShare: part('mislisted-share', 0),
    refusedShare: part('refused-share', 0),
    bulkLimit: whole('bulk-limit', 100, 1, 100),
    ambiguous: values['ambiguous'] === true,
    seed: whole('seed', 1, 0, 2 ** 31),
    rateLimit: whole('rate-limit', 200, 1, 1_000_000),
    liveBudget: whole('live-budget', 5, 0, 100),
    liveCeilingPerMinute:
      values['live-ceiling'] === undefined ? null : whole('live-ceiling', 0, 0, 1_000_000),
    marketIntervalMs: duration('market-interval', 5000),
    snapshotIntervalMs: duration('snapshot-interval', 60_000),
    orders: whole('orders', 250, 0, 1_000_000),
    listings: whole('listings', 600, 0, 1_000_000),
    vacation: values['vacation'] === true,
    sellerShipping: yesOrNo(values, 'seller-shipping', true, problems),
    confirmDelayMs: duration('confirm-delay', 5000),
    apiKey: text('api-key', 'sandbox-key'),
    secret: text('secret', 'sandbox-secret'),
    latencyMs: duration('latency', 0),
  };
  if (problems.length > 0) throw new UsageError(problems);
  return options;
}

function yesOrNo(
  values: Readonly<Record<string, string | boolean | undefined>>,
  name: string,
  fallback: boolean,
  problems: string[],
): boolean {
  const given = values[name] ?? (fallback ? 'yes' : 'no');
  if (!YES_OR_NO.includes(String(given))) problems.push(`--${name}: expected ${YES_OR_NO.join(' or ')}`);
  return given === 'yes';
}
