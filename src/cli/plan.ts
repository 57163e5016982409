import { loadConfig, type MirrorConfig, processSources } from '../config/config.ts';
import { MINUTE_MS, parseDuration, SECOND_MS } from '../lib/duration.ts';
import { paceLimits, sendsPerMinute } from '../pace/policy.ts';
import { promisesLine } from '../status/format.ts';
import type { Sql } from '../store/connection/db.ts';
import { readLostRows } from '../store/ledger/lost-rows.ts';
import { type LearnedRates, readLearnedRates } from '../store/live/live.ts';
import { type PromiseStats, readPromises } from '../store/sellers/promises.ts';
import { otherSettings, readDaemonIntervals, readDaemonSettings } from '../store/setup/sql-settings.ts';
import { type CatalogSize, readCatalogSize } from '../store/status/counts.ts';
import { type Capacity, type CapacityInput, capacityOf } from '../sync/live/capacity.ts';
import { gainsOf, type WhatIf } from '../sync/live/gains.ts';
import { MAX_UNDER_WAY } from '../sync/reprice/slice.ts';
import { type Arguments, type Command, EXIT, numberOption, problemsIn, UsageError } from './command.ts';
import { NoMirror } from './errors.ts';
import { RowsLost } from './explained.ts';
import { withMirror } from './mirror.ts';
import { gainLines, type PlanSettings, planScreen, settingsLines } from './plan-screen.ts';

const MORE_REQUESTS = 10;
const WATCHED_SKUS = 100;
/** As in the documentation's examples of the watchlist. */
const WATCHED_WEIGHT = 10;
const HINTED_PART = 0.5;
/** The mirror's own rates are used once this part of the live SKUs has shown theirs. */
const KNOWN_PART = 0.5;
const SNAPSHOT_MINUTES = 360;
const LIVE_MOVES_EVERY = 360;

export const plan: Command = {
  summary: 'estimate load time, price age and freshness for a request budget',
  usage: 'plan [--skus N --live-share 0.05] [--requests N] [--answer-time 10s] [--watch N] [--json]',
  examples: [
    ['catalog-mirror plan', 'for the mirrored catalog'],
    ['catalog-mirror plan --skus 500000', 'for a catalog of this size, before the first sync'],
    ['catalog-mirror plan --skus 500000 --requests 60', 'with 60 requests a minute'],
    ['catalog-mirror plan --skus 500000 --answer-time 10s', 'where the partner takes ten seconds to answer'],
    ['catalog-mirror plan --watch 500', 'what a watchlist of 500 live SKUs would gain'],
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
    watch: { type: 'string' },
    'hint-recall': { type: 'string' },
    'hint-precision': { type: 'string' },
    json: { type: 'boolean' },
  },
  optionHelp: {
    skus: 'number of SKUs, for which settings are those of this environment (default: those in the mirror)',
    'live-share': 'share of SKUs that are live-priced (default: as in the mirror, or 0.05 with --skus)',
    requests: "requests per minute (default: the mirror's share by PARTNER_RATE_*)",
    'answer-time':
      'how long the partner takes to answer a bulk call, such as 6s: how many are under way, and if that limits them',
    'live-ceiling':
      'live computations per minute that the partner allows (default: as learned, else unlimited)',
    'live-moves-every':
      'how often the price of the median live SKU changes (default: as its refreshes have shown, else 6h)',
    'snapshot-moves-every': 'how often the price of the median snapshot-priced SKU changes (default 3d)',
    watch: `live SKUs in a watchlist, of weight ${WATCHED_WEIGHT}, of which the gain is estimated (default ${WATCHED_SKUS})`,
    'hint-recall': 'part of the moves of live prices that a source of hints would tell of (default 0.5)',
    'hint-precision': 'part of what it would tell of that are moves (default 0.5)',
    json: 'print JSON',
  },
  moreHelp: [
    'Without --skus, settings are those that the daemon that was started last has stored, and LIVE_POLICY and SWEEP_MIN_AGE',
    'those of this environment. Where it has others, the last lines, and `settings` of --json, name them.',
  ],
  positionals: false,
  problemsOf: problemsIn(readOptions),
  async run({ print, ...args }) {
    const asked = readOptions(args);
    const isJson = args.values['json'] === true;
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    const { input, isLearned, promises, settings } = await inputOf(asked, config, isJson);
    const promised = promises === null ? null : promisesLine(promises);
    const [now, more] = [0, MORE_REQUESTS].map((extra) =>
      capacityOf({ ...input, requestsPerMinute: input.requestsPerMinute + extra }),
    ) as [Capacity, Capacity];
    const gains = gainsOf(input, asked.whatIf);
    const { liveGroups: _, ...shown } = input;
    print(
      isJson
        ? JSON.stringify({
            input: { ...shown, isLearned },
            now,
            withTenMore: more,
            whatIf: asked.whatIf,
            gains,
            promises,
            settings,
          })
        : [
            planScreen(input, now, more),
            ...(promised === null ? [] : ['', `Promised: ${promised}.`]),
            ...(gains === null ? [] : ['', ...gainLines(gains, asked.whatIf)]),
            ...settingsLines(settings),
          ].join('\n'),
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
  /** Null: not given, so what refreshes have shown is used. */
  readonly liveMovesEvery: number | null;
  readonly snapshotMovesEvery: number;
  readonly whatIf: WhatIf;
}

function readOptions({ values }: Arguments): Asked {
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
    liveMovesEvery: values['live-moves-every'] === undefined ? null : minutes('live-moves-every', ''),
    snapshotMovesEvery: minutes('snapshot-moves-every', '3d'),
    whatIf: {
      requests: MORE_REQUESTS,
      watched: number('watch', { min: 1, max: 1e9 }) ?? WATCHED_SKUS,
      weight: WATCHED_WEIGHT,
      hints: {
        recall: number('hint-recall', { min: 0, max: 1, whole: false }) ?? HINTED_PART,
        precision: number('hint-precision', { min: 0.001, max: 1, whole: false }) ?? HINTED_PART,
      },
    },
  };
  if (problems.length > 0) throw new UsageError(problems);
  return asked;
}

const PASS_SKUS = 'pass --skus with the size of the catalog that you expect';

function withoutMirror(error: unknown): never {
  throw error instanceof NoMirror ? new UsageError([error.message, PASS_SKUS]) : error;
}

/** What only a mirror knows; null without one. */
interface Learned {
  readonly rates: LearnedRates | null;
  readonly promises: PromiseStats | null;
}

/** The settings that a plan uses. */
interface GoneBy {
  readonly requestsPerMinute: number;
  readonly bulkMaxSkus: number;
  /** Live SKUs per call until a number is learned. */
  readonly firstLiveBudget: number;
  readonly intervals: MirrorConfig['intervals'];
  readonly settings: PlanSettings;
}

const ownSettings = (config: MirrorConfig): GoneBy => ({
  requestsPerMinute: sendsPerMinute(paceLimits(config)),
  bulkMaxSkus: config.bulk.maxSkus,
  firstLiveBudget: config.bulk.liveBudget,
  intervals: config.intervals,
  settings: { of: 'environment', otherHere: [] },
});

/** Reads the daemon's settings, if one has stored them, because those of whoever asks may differ. */
async function readSettings(sql: Sql, config: MirrorConfig): Promise<GoneBy> {
  const [limits, intervals, otherHere] = await Promise.all([
    readDaemonSettings(sql),
    readDaemonIntervals(sql),
    otherSettings(sql, config, paceLimits(config)),
  ]);
  if (limits === null || intervals === null) return ownSettings(config);
  return {
    requestsPerMinute: sendsPerMinute({ ...paceLimits(config), ...limits }),
    bulkMaxSkus: limits.bulkMaxSkus,
    firstLiveBudget: limits.liveBudget,
    intervals: { ...config.intervals, ...intervals },
    settings: { of: 'daemon', otherHere },
  };
}

/** Reads the mirror's size, rates, promises and the settings of its daemon, all at once. */
async function readMirror(sql: Sql, config: MirrorConfig): Promise<CatalogSize & Learned & GoneBy> {
  const lost = await readLostRows(sql);
  if (lost.length > 0) throw new RowsLost(lost);
  const [size, rates, promises, settings] = await Promise.all([
    readCatalogSize(sql),
    readLearnedRates(sql),
    readPromises(sql),
    readSettings(sql, config),
  ]);
  return { ...size, rates, promises, ...settings };
}

async function inputOf(
  asked: Asked,
  config: MirrorConfig,
  isJson: boolean,
): Promise<{
  readonly input: CapacityInput;
  readonly isLearned: boolean;
  readonly promises: PromiseStats | null;
  readonly settings: PlanSettings;
}> {
  const known =
    asked.skus === null
      ? await withMirror(config, (sql, which) => {
          if (which !== null && !isJson) process.stderr.write(`of ${which}:\n`);
          return readMirror(sql, config);
        }).catch(withoutMirror)
      : {
          skus: asked.skus,
          live: asked.skus * (asked.liveShare ?? 0.05),
          liveBudget: null,
          liveCeiling: null,
          rates: null,
          promises: null,
          ...ownSettings(config),
        };
  if (known.skus === 0) throw new UsageError([`the mirror is empty: ${PASS_SKUS}`]);
  const { rates, intervals } = known;
  const isLearned = asked.liveMovesEvery === null && rates !== null && rates.knownPart >= KNOWN_PART;
  const input = {
    skus: known.skus,
    liveShare: asked.liveShare ?? known.live / known.skus,
    requestsPerMinute: asked.requests ?? known.requestsPerMinute,
    answerSeconds: asked.answerSeconds,
    mostUnderWay: MAX_UNDER_WAY,
    bulkMaxSkus: known.bulkMaxSkus,
    liveBudget: Math.max(1, Math.floor(known.liveBudget ?? known.firstLiveBudget)),
    liveCeiling: asked.liveCeiling ?? known.liveCeiling,
    livePolicy: intervals.livePolicy,
    liveMinutes: intervals.liveMs / MINUTE_MS,
    sweepMinutes: intervals.sweepMs / MINUTE_MS,
    sweepMinAgeMinutes: intervals.sweepMinAgeMs / MINUTE_MS,
    metadataMinutes: intervals.metadataMs / MINUTE_MS,
    deltaMinutes: intervals.deltaMs / MINUTE_MS,
    snapshotMinutes: SNAPSHOT_MINUTES,
    liveGroups: isLearned ? rates.groups : null,
    liveMovesEvery: isLearned ? medianMinutes(rates.groups) : (asked.liveMovesEvery ?? LIVE_MOVES_EVERY),
    snapshotMovesEvery: asked.snapshotMovesEvery,
  };
  return { input, isLearned, promises: known.promises, settings: known.settings };
}

/** Returns the minutes between two moves of the median SKU. */
function medianMinutes(groups: LearnedRates['groups']): number {
  const slowest = groups.toSorted((a, b) => a.lambda - b.lambda);
  let left = groups.reduce((sum, { count }) => sum + count, 0) / 2;
  const middle = slowest.find(({ count }) => (left -= count) <= 0);
  return 1 / (middle?.lambda ?? 1 / LIVE_MOVES_EVERY);
}
