import { loadConfig, type MirrorConfig, processSources } from '../config/config.ts';
import { formatAge, formatDuration, parseDuration } from '../lib/duration.ts';
import { paceLimits, sendsPerMinute } from '../pace/policy.ts';
import { readCatalogSize } from '../store/catalog-counts.ts';
import { type Capacity, type CapacityInput, capacityOf, type ClassCapacity } from '../sync/live/capacity.ts';
import { MOST_UNDER_WAY } from '../sync/reprice/slice.ts';
import { type Command, type CommandArgs, EXIT, numberOption, UsageError } from './command.ts';
import { withMirror } from './mirror.ts';
import { NoMirror } from './no-mirror.ts';

const MORE_REQUESTS = 10;
const SNAPSHOT_MINUTES = 360;
const SECOND_MS = 1000;
const MINUTE_MS = 60_000;

export const plan: Command = {
  summary: 'estimate load time, price age and freshness for a request budget',
  usage: 'plan [--skus N --live-share 0.05] [--requests N] [--answer-time 10s] [--json]',
  examples: [
    ['catalog-mirror plan', 'for the mirrored catalog'],
    ['catalog-mirror plan --skus 500000', 'for a catalog of this size, before the first sync'],
    ['catalog-mirror plan --skus 500000 --requests 60', 'with 60 requests a minute'],
    ['catalog-mirror plan --skus 500000 --answer-time 10s', 'where the partner takes ten seconds to answer'],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: {
    skus: { type: 'string' },
    'live-share': { type: 'string' },
    requests: { type: 'string' },
    'answer-time': { type: 'string' },
    'live-ceiling': { type: 'string' },
    'live-moves-every': { type: 'string' },
    'snapshot-moves-every': { type: 'string' },
    json: { type: 'boolean' },
  },
  optionHelp: {
    skus: 'number of SKUs (default: those in the mirror)',
    'live-share': 'share of SKUs that are live-priced (default: as in the mirror, or 0.05 with --skus)',
    requests: "requests per minute (default: the mirror's share by PARTNER_RATE_*)",
    'answer-time':
      'how long the partner takes to answer a bulk call, such as 6s: how many are under way, and if that limits them',
    'live-ceiling':
      'live computations per minute that the partner allows (default: as learned, else unlimited)',
    'live-moves-every': 'how often the price of the median live SKU changes (default 6h)',
    'snapshot-moves-every': 'how often the price of the median snapshot-priced SKU changes (default 3d)',
    json: 'print JSON',
  },
  positionals: false,
  async run({ values, print }) {
    const asked = readOptions(values);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    const input = await inputOf(asked, config);
    const [now, more] = [0, MORE_REQUESTS].map((extra) =>
      capacityOf({ ...input, requestsPerMinute: input.requestsPerMinute + extra }),
    ) as [Capacity, Capacity];
    print(
      values['json'] === true
        ? JSON.stringify({ input, now, withTenMore: more })
        : planScreen(input, now, more),
    );
    return EXIT.ok;
  },
};

interface Asked {
  /** Null: not given. */
  readonly skus: number | null;
  readonly liveShare: number | null;
  readonly requests: number | null;
  readonly answerSeconds: number | null;
  readonly liveCeiling: number | null;
  readonly liveMovesEvery: number;
  readonly snapshotMovesEvery: number;
}

function readOptions(values: CommandArgs['values']): Asked {
  const problems: string[] = [];
  const number = (name: string, range: { min: number; max: number; whole?: boolean }) =>
    values[name] === undefined ? null : numberOption(values, name, 0, range, problems);
  const duration = (name: string, text: string, examples: string) => {
    const ms = parseDuration(text);
    if (ms === null || ms <= 0) problems.push(`--${name}: expected a duration such as ${examples}`);
    return ms ?? 0;
  };
  const minutes = (name: string, fallback: string) =>
    duration(name, String(values[name] ?? fallback), '90m, 6h or 3d') / MINUTE_MS;
  const answerTime = values['answer-time'];
  const asked = {
    skus: number('skus', { min: 1, max: 1e9 }),
    liveShare: number('live-share', { min: 0, max: 1, whole: false }),
    requests: number('requests', { min: 1, max: 100_000, whole: false }),
    answerSeconds:
      answerTime === undefined
        ? null
        : duration('answer-time', String(answerTime), '500ms, 6s or 1m') / SECOND_MS,
    liveCeiling: number('live-ceiling', { min: 1, max: 1e6, whole: false }),
    liveMovesEvery: minutes('live-moves-every', '6h'),
    snapshotMovesEvery: minutes('snapshot-moves-every', '3d'),
  };
  if (problems.length > 0) throw new UsageError(problems);
  return asked;
}

const PASS_SKUS = 'pass --skus with the size of the catalog that you expect';

function withoutMirror(error: unknown): never {
  throw error instanceof NoMirror ? new UsageError([error.message, PASS_SKUS]) : error;
}

async function inputOf(asked: Asked, config: MirrorConfig): Promise<CapacityInput> {
  const { bulk, intervals } = config;
  const known =
    asked.skus === null
      ? await withMirror(config, readCatalogSize).catch(withoutMirror)
      : {
          skus: asked.skus,
          live: asked.skus * (asked.liveShare ?? 0.05),
          liveBudget: null,
          liveCeiling: null,
        };
  if (known.skus === 0) throw new UsageError([`the mirror is empty: ${PASS_SKUS}`]);
  return {
    skus: known.skus,
    liveShare: asked.liveShare ?? known.live / known.skus,
    requestsPerMinute: asked.requests ?? sendsPerMinute(paceLimits(config)),
    answerSeconds: asked.answerSeconds,
    mostUnderWay: MOST_UNDER_WAY,
    bulkMaxSkus: bulk.maxSkus,
    liveBudget: Math.max(1, Math.floor(known.liveBudget ?? bulk.liveBudget)),
    liveCeiling: asked.liveCeiling ?? known.liveCeiling,
    livePolicy: intervals.livePolicy,
    liveMinutes: intervals.liveMs / MINUTE_MS,
    sweepMinutes: intervals.sweepMs / MINUTE_MS,
    sweepMinAgeMinutes: intervals.sweepMinAgeMs / MINUTE_MS,
    metadataMinutes: intervals.metadataMs / MINUTE_MS,
    deltaMinutes: intervals.deltaMs / MINUTE_MS,
    snapshotMinutes: SNAPSHOT_MINUTES,
    liveMovesEvery: asked.liveMovesEvery,
    snapshotMovesEvery: asked.snapshotMovesEvery,
  };
}

/** The plan as text: the input, its estimates, and beside them those for ten more requests a minute. */
export function planScreen(input: CapacityInput, now: Capacity, more: Capacity): string {
  const count = (n: number) => Math.round(n).toLocaleString('en-US');
  const age = (minutes: number) => formatAge(minutes * 60);
  const part = (value: number) => `${(value * 100).toFixed(2)} %`;
  const row = (what: string, value: (capacity: Capacity) => string) =>
    `${what.padEnd(38)}${value(now).padStart(12)}${value(more).padStart(16)}`;
  const klass = (name: string, of: (capacity: Capacity) => ClassCapacity) => [
    row(`${name}: mean price age`, (c) => age(of(c).meanAge)),
    row(`${name}: oldest price`, (c) => age(of(c).worstAge)),
    row(`${name}: prices correct`, (c) => part(of(c).freshness)),
  ];
  return [
    `${count(input.skus)} SKUs, ${part(input.liveShare)} live; ${input.bulkMaxSkus} SKUs per call, ${input.liveBudget} of them live${input.liveCeiling === null ? '' : `, at most ${count(input.liveCeiling)} live per minute`}`,
    `price changes: every ${age(input.liveMovesEvery)} (median live SKU), every ${age(input.snapshotMovesEvery)} (median snapshot-priced SKU)`,
    '',
    row('requests per minute', (c) => c.requestsPerMinute.toFixed(0)),
    ...(now.underWay === null
      ? []
      : [
          row('calls under way: needed', (c) => count(c.underWay?.needed ?? 0)),
          row(`calls per minute with ${input.mostUnderWay} under way`, (c) =>
            count(c.underWay?.mostPerMinute ?? 0),
          ),
        ]),
    row('initial load: calls', (c) => count(c.fillCalls)),
    row('initial load: time', (c) => age(c.fillMinutes)),
    row('live: refreshes per minute', (c) => c.liveRefreshes.toFixed(0)),
    row('live: time for one round', (c) => age(c.roundMinutes)),
    ...klass('live', (c) => c.live),
    ...klass('snapshot', (c) => c.snapshot),
    row('calls per minute after the load', (c) => c.callsPerMinute.toFixed(0)),
    '',
    conclusion(input, now, more),
    ...answers(input, now),
  ].join('\n');
}

/** What answers of the asked length mean; nothing where none was asked for. */
function answers({ answerSeconds, mostUnderWay }: CapacityInput, { underWay }: Capacity): string[] {
  if (underWay === null || answerSeconds === null) return [];
  const length = formatDuration(answerSeconds * SECOND_MS);
  return underWay.limits
    ? [
        `At answers of ${length} a daemon makes ${Math.floor(underWay.mostPerMinute)} calls per minute, because at most ${mostUnderWay} are under way; another replica makes as many more.`,
      ]
    : [
        `At answers of ${length} the budget needs ${underWay.needed} of the ${mostUnderWay} calls that may be under way: their length limits nothing.`,
      ];
}

function conclusion(input: CapacityInput, now: Capacity, more: Capacity): string {
  const interval = formatAge(input.liveMinutes * 60);
  if (now.meetsLiveInterval)
    return `The budget is enough to refresh every live SKU within LIVE_INTERVAL (${interval}).`;
  const needed = Math.ceil(now.live.skus / input.liveMinutes / input.liveBudget);
  const ceiling = input.liveCeiling !== null && input.liveCeiling < now.live.skus / input.liveMinutes;
  const gain = ((more.live.freshness - now.live.freshness) * 100).toFixed(2);
  return [
    `The budget is too small to refresh every live SKU within LIVE_INTERVAL (${interval}): ${ceiling ? "the partner's ceiling on live computations is too low" : `that takes ${needed} requests per minute`}.`,
    `Live SKUs are refreshed ${input.livePolicy === 'index' ? 'by expected gain' : 'in turn'}; ten more requests per minute add ${gain} points to the freshness of live prices.`,
  ].join('\n');
}
