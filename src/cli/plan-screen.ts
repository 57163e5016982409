import { formatAge, formatDuration, SECOND_MS } from '../lib/duration.ts';
import { count, percent } from '../lib/format.ts';
import {
  type Capacity,
  type CapacityInput,
  type ClassCapacity,
  liveGroupsOf,
  refreshesWithin,
} from '../sync/live/capacity.ts';
import type { Gains, WhatIf } from '../sync/live/gains.ts';

const ROUNDING = 1e-6;
const whole = (n: number) => count(Math.round(n));
const part = (share: number) => percent(share, 2);

/** Formats the plan: the input, its estimates, and beside them the estimates with ten more requests per minute. */
export function planScreen(input: CapacityInput, now: Capacity, more: Capacity): string {
  const age = (minutes: number) => formatAge(minutes * 60);
  const row = (what: string, value: (capacity: Capacity) => string) =>
    `${what.padEnd(38)}${value(now).padStart(12)}${value(more).padStart(16)}`;
  const klass = (name: string, of: (capacity: Capacity) => ClassCapacity) => [
    row(`${name}: mean price age`, (c) => age(of(c).meanAge)),
    row(`${name}: oldest price`, (c) => age(of(c).worstAge)),
    row(`${name}: prices correct`, (c) => part(of(c).freshness)),
  ];
  return [
    [
      `${whole(input.skus)} SKUs, ${part(input.liveShare)} live; ${input.bulkMaxSkus} SKUs per call`,
      `${input.liveBudget} of them live`,
      ...(input.liveCeiling === null ? [] : [`at most ${whole(input.liveCeiling)} live per minute`]),
    ].join(', '),
    [
      `price changes: every ${age(input.liveMovesEvery)} (median live SKU`,
      input.liveGroups === null ? 'assumed)' : 'as refreshes have shown)',
      `every ${age(input.snapshotMovesEvery)} (median snapshot-priced SKU`,
      'assumed)',
    ].join(', '),
    '',
    row('requests per minute', (c) => c.requestsPerMinute.toFixed(0)),
    ...(now.underWay === null
      ? []
      : [
          row('calls under way: needed', (c) => whole(c.underWay?.needed ?? 0)),
          row(`calls per minute with ${input.mostUnderWay} under way`, (c) =>
            whole(c.underWay?.mostPerMinute ?? 0),
          ),
        ]),
    row('initial load: calls', (c) => whole(c.fillCalls)),
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

/** Explains the effect of the given answer time; nothing if none was given. */
function answers({ answerSeconds, mostUnderWay }: CapacityInput, { underWay }: Capacity): string[] {
  if (underWay === null || answerSeconds === null) return [];
  const length = formatDuration(answerSeconds * SECOND_MS);
  return underWay.limits
    ? [
        `At answers of ${length} a daemon makes ${Math.floor(underWay.mostPerMinute)} calls per minute, because ` +
          `at most ${mostUnderWay} are under way; another replica makes as many more.`,
      ]
    : [
        `At answers of ${length} the budget needs ${underWay.needed} of the ${mostUnderWay} calls that may be ` +
          'under way: their length limits nothing.',
      ];
}

function conclusion(input: CapacityInput, now: Capacity, more: Capacity): string {
  const interval = formatAge(input.liveMinutes * 60);
  if (now.meetsLiveInterval)
    return `The budget is enough to refresh every live SKU within LIVE_INTERVAL (${interval}).`;
  const gain = ((more.live.freshness - now.live.freshness) * 100).toFixed(2);
  return [
    `${hindrance(input, now, `to refresh every live SKU within LIVE_INTERVAL (${interval})`)}.`,
    `Live SKUs are refreshed ${input.livePolicy === 'index' ? 'by expected gain' : 'in turn'}; ten more ` +
      `requests per minute add ${gain} points to the freshness of live prices.`,
  ].join('\n');
}

/** Says what is too small, and how much would be needed. */
function hindrance(input: CapacityInput, { live, underWay }: Capacity, what: string): string {
  const refreshes = refreshesWithin(liveGroupsOf(input, live.skus), input.liveMinutes);
  const calls = refreshes / input.liveBudget;
  if (input.liveCeiling !== null && input.liveCeiling < refreshes)
    return `The budget is too small ${what}: the partner's ceiling on live computations is too low`;
  // Sums have rounding errors in their last digits.
  const needed = Math.ceil(calls - ROUNDING);
  return underWay !== null && underWay.limits && needed <= input.requestsPerMinute
    ? `Answers are too long ${what}: that takes ${needed} calls per minute`
    : `The budget is too small ${what}: that takes ${needed} requests per minute`;
}

/** Whose settings a plan uses, and which settings of this environment differ from the daemon's. */
export interface PlanSettings {
  readonly of: 'daemon' | 'environment';
  readonly otherHere: readonly string[];
}

/** Says if this environment has other settings than the daemon whose plan it is; nothing if they are equal. */
export function settingsLines({ otherHere }: PlanSettings): string[] {
  if (otherHere.length === 0) return [];
  return [
    '',
    `This is by the settings of the daemon that was started last; this environment has others: ${otherHere.join(', ')}.`,
    'With --skus, a plan is by those of this environment.',
  ];
}

/** Lists what would help live prices, each measure by itself. */
export function gainLines(gains: Gains, { requests, hints, weight }: WhatIf): string[] {
  const points = (value: number) => {
    const difference = 100 * (value - gains.now);
    return `${difference < 0 ? '-' : '+'} ${Math.abs(difference).toFixed(2)} points`;
  };
  const row = (what: string, value: string) => `  ${what.padEnd(58)}${value}`;
  const interval = gains.moreMeetInterval ? ' (enough for LIVE_INTERVAL: in turn, not by gain)' : '';
  return [
    `What would help live prices (now correct ${part(gains.now)} of the time):`,
    row(`${requests} more requests per minute`, `${points(gains.moreRequests)}${interval}`),
    row(
      `hints of ${part100(hints.recall)} of the moves, ${part100(hints.precision)} of them right`,
      points(gains.hints),
    ),
    row(
      `a watchlist of ${count(gains.watchedSkus)} of these SKUs, of weight ${weight}`,
      `${part(gains.watched)} of the time for these${gains.others === null ? '' : `, ${points(gains.others)} for the others`}`,
    ),
  ];
}

const part100 = (value: number) => `${Number((100 * value).toFixed(1))} %`;
