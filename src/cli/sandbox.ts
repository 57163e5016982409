import { readFileSync } from 'node:fs';
import { systemClock } from '../lib/clock.ts';
import { formatDuration, parseDuration } from '../lib/duration.ts';
import { errorCode } from '../lib/errors.ts';
import {
  controlLines,
  LONGEST_MS,
  LONGEST_TIMER_MS,
  readOwnSkus,
  routeLines,
  type SandboxOptions,
  startSandbox,
} from '../sandbox/index.ts';
import { type Command, EXIT, numberOption, problemsIn, UsageError } from './command.ts';
import { stopSignal } from './process.ts';

const YES_OR_NO = ['yes', 'no'];

export const sandbox: Command = {
  summary: 'run a local server that behaves like the partner API',
  usage:
    'sandbox [--port 8080] [--skus 5000] [--seed 1] [--orders 250] [--log]\n' +
    'sandbox --now 2026-01-01T00:00:00Z [--catalog file.ndjson] [--control-token <value>]',
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
    [
      'catalog-mirror sandbox --now 2026-01-01T00:00:00Z --log',
      'the same bytes in each run: time moves only by POST /sandbox/clock; stderr has each request',
    ],
    [
      'catalog-mirror sandbox --host 0.0.0.0 --control-token "$CONTROL_TOKEN"',
      'for other machines and containers; whoever has the token controls it',
    ],
    ['catalog-mirror sandbox --auto-confirm', 'orders that move on without your confirmation'],
    ['catalog-mirror sandbox --rate-limit 20', 'a low rate limit, to test how a client handles it'],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: {
    host: { type: 'string' },
    port: { type: 'string' },
    'public-url': { type: 'string' },
    'control-token': { type: 'string' },
    log: { type: 'boolean' },
    now: { type: 'string' },
    catalog: { type: 'string' },
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
    'hint-recall': { type: 'string' },
    'hint-precision': { type: 'string' },
    orders: { type: 'string' },
    listings: { type: 'string' },
    vacation: { type: 'boolean' },
    'seller-shipping': { type: 'string' },
    'confirm-delay': { type: 'string' },
    'confirm-deadline': { type: 'string' },
    'auto-confirm': { type: 'boolean' },
    'api-key': { type: 'string' },
    secret: { type: 'string' },
    latency: { type: 'string' },
    'extra-fields': { type: 'boolean' },
    'bulk-key': { type: 'string' },
  },
  optionHelp: {
    host: 'address to listen on (127.0.0.1)',
    port: 'port; 0: any free port (8080)',
    'public-url': "address in presigned URLs (each request's Host header)",
    'control-token':
      'bearer token that opens the control routes to other machines, 16 characters or more (this machine only, no token)',
    log: 'write a line to stderr for each request',
    now: 'time at which the clock stands until POST /sandbox/clock moves it (the clock runs)',
    catalog: 'file with SKUs of your own, one JSON object a line',
    skus: 'generated SKUs in the first manifest (5000; with --catalog 0)',
    'live-share': 'share of SKUs that are live-priced (0.05)',
    'mislisted-share': 'share of SKUs listed as snapshot that use live budget (0)',
    'refused-share': 'share of SKUs with which a bulk call answers 400 as a whole (0)',
    'bulk-limit': 'SKUs in a bulk call; more answer 504 (100)',
    ambiguous: "answer in ways that the partner's rules allow and that are easily misread",
    seed: 'seed of the catalog and the market (1)',
    'rate-limit': 'requests allowed in any rolling minute (200)',
    'live-budget': 'live computations in one bulk call (5)',
    'live-ceiling': 'live computations in any rolling minute (unlimited)',
    'market-interval':
      'time between market changes: prices, sales, orders; 0: only by POST /sandbox/step (5s)',
    'snapshot-interval': 'time between catalog snapshots; 0: only by POST /sandbox/snapshots (1m)',
    'hint-recall': 'part of the moves of live SKUs that GET /sandbox/hints tells of (0.5)',
    'hint-precision': 'part of what it tells that is true, from 0.01 on (0.5)',
    orders: 'orders of the account at start (250)',
    listings: 'live listings of the account at start (600)',
    vacation: 'put the account in vacation mode: no ask listing is created',
    'seller-shipping': 'whether the fee of a confirmation is deducted (yes)',
    'confirm-delay': 'time from a confirmation to the status change (5s)',
    'confirm-deadline': 'time after which an unconfirmed order fails; 0: it waits (1h)',
    'auto-confirm': 'let orders move on without a confirmation',
    'api-key': 'accepted api_key (sandbox-key)',
    secret: 'accepted secret (sandbox-secret)',
    latency: 'delay before every response (0s)',
    'extra-fields':
      'add members to every body that the partner does not document, the tracking number among them',
    'bulk-key': 'name of the list in a bulk body (skus)',
  },
  moreHelp: [
    '',
    'Routes (GET / lists them in a browser, each with a working curl command):',
    ...routeLines().map((line) => `  ${line}`),
    '',
    'Control routes (not part of the partner API, without its credential, not counted):',
    ...controlLines().map((line) => `  ${line}`),
  ],
  choices: { 'seller-shipping': YES_OR_NO },
  positionals: false,
  problemsOf: problemsIn(({ values, given }) => optionsOf(values, given)),
  endsUnread: () => true,
  async run({ values, given, print }) {
    const options = optionsOf(values, given);
    const log = values['log'] === true ? (line: string) => void process.stderr.write(`${line}\n`) : null;
    const server = await startSandbox({ ...options, log }).catch((error: unknown) => {
      throw errorCode(error) === 'EADDRINUSE' ? new PortTaken(options.port ?? 0, error) : error;
    });
    const stop = stopSignal(systemClock);
    print(`sandbox listens on ${server.url}`);
    print(
      `  PARTNER_BASE_URL=${server.url} PARTNER_API_KEY=${server.apiKey} PARTNER_SECRET=${server.secret}`,
    );
    print(`  routes: ${server.url}/`);
    if (typeof options.startAt === 'number')
      print(`  the clock stands; POST ${server.url}/sandbox/clock moves it`);
    await stop.promise;
    await server.close();
    stop.dispose();
    return EXIT.ok;
  },
};

/** Another program, or another sandbox, uses the port. */
class PortTaken extends Error {
  override readonly name = 'PortTaken';
  readonly kind = 'port-taken';
  readonly hint = 'use --port with another one; 0 takes any free one';

  constructor(port: number, cause: unknown) {
    super(`port ${port} is taken`, { cause });
  }
}

type Values = Readonly<Record<string, string | boolean | undefined>>;

/** Reads the sandbox's options from the command line; throws UsageError naming every invalid one. */
export function optionsOf(
  values: Values,
  given: ReadonlySet<string> = new Set(Object.keys(values)),
): SandboxOptions {
  const { options, problems } = readOptions(values, given);
  if (problems.length > 0) throw new UsageError(problems);
  return options;
}

function readOptions(
  values: Values,
  given: ReadonlySet<string>,
): { options: SandboxOptions; problems: string[] } {
  const problems: string[] = [];
  const whole = (name: string, fallback: number, min: number, max: number) =>
    numberOption(values, name, fallback, { min, max }, problems);
  const part = (name: string, fallback: number, min = 0) =>
    numberOption(values, name, fallback, { min, max: 1, whole: false }, problems);
  const duration = (name: string, fallback: number, most = LONGEST_MS) =>
    durationOf(values[name], name, fallback, most, problems);
  // With a stopped clock, nothing happens by timers.
  const longest = given.has('now') ? LONGEST_MS : LONGEST_TIMER_MS;
  const text = (name: string, fallback: string) => String(values[name] ?? fallback);
  const catalog = ownSkus(values['catalog'], problems);
  const deadlineMs = duration('confirm-deadline', 3_600_000);
  const options: SandboxOptions = {
    host: text('host', '127.0.0.1'),
    port: whole('port', 8080, 0, 65_535),
    publicUrl: publicUrl(values['public-url'], problems),
    controlToken: controlToken(values['control-token'], problems),
    startAt: moment(values['now'], problems),
    catalog,
    skus: given.has('catalog') ? whole('skus', 0, 0, 10_000_000) : whole('skus', 5000, 1, 10_000_000),
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
    marketIntervalMs: duration('market-interval', 5000, longest),
    snapshotIntervalMs: duration('snapshot-interval', 60_000, longest),
    hintRecall: part('hint-recall', 0.5),
    hintPrecision: part('hint-precision', 0.5, 0.01),
    orders: whole('orders', 250, 0, 1_000_000),
    listings: whole('listings', 600, 0, 1_000_000),
    vacation: values['vacation'] === true,
    sellerShipping: yesOrNo(values, 'seller-shipping', true, problems),
    confirmDelayMs: duration('confirm-delay', 5000),
    confirmDeadlineMs: deadlineMs === 0 ? null : deadlineMs,
    autoConfirm: values['auto-confirm'] === true,
    apiKey: text('api-key', 'sandbox-key'),
    secret: text('secret', 'sandbox-secret'),
    latencyMs: duration('latency', 0, LONGEST_TIMER_MS),
    dialect: { extraFields: values['extra-fields'] === true, bulkBodyKey: text('bulk-key', 'skus') },
  };
  return { options, problems };
}

type Value = string | boolean | undefined;

/** Reads a duration of at most `most` milliseconds, or returns the default. */
function durationOf(given: Value, name: string, fallback: number, most: number, problems: string[]): number {
  const ms = given === undefined ? fallback : parseDuration(String(given));
  if (ms !== null && ms <= most) return ms;
  problems.push(`--${name}: expected a duration such as 500ms, 5s or 1m, at most ${formatDuration(most)}`);
  return fallback;
}

function publicUrl(given: Value, problems: string[]): string | null {
  if (given === undefined) return null;
  const url = URL.parse(String(given));
  const fits = url !== null && /^https?:$/.test(url.protocol) && url.username + url.search + url.hash === '';
  if (!fits)
    problems.push('--public-url: expected an http:// or https:// URL without user, query or fragment');
  return url?.href.replace(/\/+$/, '') ?? null;
}

function controlToken(given: Value, problems: string[]): string | null {
  if (given === undefined) return null;
  if (!/^[\x21-\x7e]{16,200}$/.test(String(given)))
    problems.push('--control-token: expected 16 to 200 ASCII characters without a space');
  return String(given);
}

function moment(given: Value, problems: string[]): number | null {
  if (given === undefined) return null;
  const at = /T.*(?:Z|[+-]\d\d:\d\d)$/.test(String(given)) ? Date.parse(String(given)) : Number.NaN;
  if (!(at >= 0)) problems.push('--now: expected a time with its zone, such as 2026-01-01T00:00:00Z');
  return at;
}

function ownSkus(given: Value, problems: string[]): SandboxOptions['catalog'] {
  if (given === undefined) return [];
  const file = String(given);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    problems.push(`--catalog: ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`);
    return [];
  }
  const { skus, problems: wrong } = readOwnSkus(text);
  problems.push(...wrong.map((problem) => `--catalog: ${file}: ${problem}`));
  return skus;
}

function yesOrNo(values: Values, name: string, fallback: boolean, problems: string[]): boolean {
  const given = values[name] ?? (fallback ? 'yes' : 'no');
  if (!YES_OR_NO.includes(String(given))) problems.push(`--${name}: expected ${YES_OR_NO.join(' or ')}`);
  return given === 'yes';
}
