import { formatAge } from '../lib/duration.ts';
import { count, percent, plural } from '../lib/format.ts';
import { errorText, refreshesText } from '../status/format.ts';
import type { Oddity } from '../store/answer/plausibility.ts';
import type { Explained } from './show-explained.ts';
import { tableOf } from './terminal.ts';

/** Why a SKU is, or was, refreshed, by the reasons of catalog.sku_trust. */
const REASONS: Readonly<Record<string, string>> = {
  new: 'it had no price yet',
  changed: 'the delta reported it',
  live: 'its turn among the live SKUs had come',
  unlisted: 'its turn among the SKUs that no manifest lists had come',
  missed: 'its turn among the SKUs of which the delta has left out a change had come',
  sweep: 'its turn in the sweep had come',
  metadata: 'its metadata was to be read again',
  removed: 'the delta reported it removed',
  absent: 'the newest manifest does not list it',
  watched: 'the watchlist has it',
  refresh: 'somebody asked for it (refresh)',
  doubted: 'a second answer was wanted',
  again: 'its answer to a report had nothing new, which may have been a cache of the partner',
  clock: 'it was asked by a wrong clock before',
  scope: 'a rule of catalog.scope needed its metadata',
};

/** The meaning of each doubt of catalog.sku_trust, in one line. */
const DOUBTS: ReadonlyMap<string, string> = new Map([
  ['out_of_scope', 'it is out of scope, so nobody asks for it'],
  ['pending', 'it has no price yet'],
  ['not_found', 'the partner does not know it (0009)'],
  ['removed', 'the delta reported it removed'],
  ['clock', 'the clock of Postgres is or was wrong, so how old the price is, is not known'],
  ['implausible', 'the partner says it, but it is hardly a price; a second answer decides'],
  ['mass-move', 'prices of many SKUs have moved implausibly; a second answer decides'],
  ['owed', 'a refresh is due'],
  ['past_target', 'the price is older than its target'],
  ['size_type', 'its metadata is to be read again, so the meaning of the sizes is not sure'],
  ['incident', 'the partner prices the whole catalog live, and the price is older than LIVE_INTERVAL'],
  ['no_baseline', 'no manifest was applied yet'],
  ['catalog_stale', 'the partner reports no changes at present'],
  ['delta_late', 'no delta has succeeded for long'],
]);

/** Formats one screen about a SKU. Pure; with `width` null, lines have any length. */
export function storyOf(explained: Explained, width: number | null): string[] {
  const { product, prices } = explained;
  const named = [product?.name, product?.brand, product?.model].filter((part) => typeof part === 'string');
  const lines: [label: string, text: string][] = [
    ['SKU', [explained.sku, ...named].join(', ')],
    ['state', stateOf(explained)],
    ...scopeLine(explained),
    ['answer', answerOf(explained)],
    ['report', reportOf(explained)],
    ['right', rightOf(explained)],
    ...oddLine(explained),
    ['believed', beliefOf(explained)],
    ...hintedLine(explained),
    ['tested', testedOf(explained)],
    ['next', nextOf(explained)],
    ...promiseLine(explained),
  ];
  const sizes = prices.map(({ size, price, since, actionable, before }) => ({
    size,
    price: price === null ? 'none' : count(price),
    actionable: actionable ? 'yes' : 'no',
    since: ago(explained, since),
    before:
      before === null
        ? ''
        : `${before.price === null ? 'none' : count(before.price)} until ${ago(explained, before.until)}`,
  }));
  return [
    ...lines.map(([label, text]) => `${label.padEnd(10)}${text}`),
    ...(sizes.length === 0 ? [] : ['', ...tableOf(sizes, width)]),
  ];
}

/** Formats how long a time was before the moment of the explanation: `5m ago`. */
function ago({ at }: Explained, time: string): string {
  return `${formatAge(Math.max(0, (Date.parse(at) - Date.parse(time)) / 1000))} ago`;
}

/** Formats how far ahead a time is: `in 5m`, or `now` if it has come. */
function ahead({ at }: Explained, time: string): string {
  const seconds = (Date.parse(time) - Date.parse(at)) / 1000;
  return seconds <= 0 ? 'now' : `in ${formatAge(seconds)}`;
}

function stateOf({ state, price_source: source, in_manifest: isListed, next }: Explained): string {
  return [
    state,
    source === null ? 'price source not known yet' : `${source}-priced`,
    isListed ? 'in the manifest' : 'in no manifest',
    ...(next.watched === null ? [] : [`watched with weight ${next.watched}`]),
  ].join(', ');
}

/** Says by which rule a SKU is in or out of scope, if rules decide that. */
function scopeLine({ scope }: Explained): [string, string][] {
  if (scope === null) return [];
  const [first, ...others] = scope.rules;
  const later = others.map(({ kind, value, include }) => `${kind} "${value}" (${include ? 'in' : 'out'})`);
  const before = later.length === 0 ? '' : `, before ${later.join(', ')}`;
  const because =
    first === undefined
      ? 'no rule of catalog.scope matches'
      : `by the rule for ${first.kind} "${first.value}"${before}`;
  const asked = scope.asked_for_metadata ? '; it is asked once for its metadata, which a rule needs' : '';
  return [['scope', `${scope.in_scope ? 'in' : 'out'}: ${because}${asked}`]];
}

function answerOf(explained: Explained): string {
  const { asked_at: askedAt, because, priced_at: pricedAt } = explained.answer;
  if (askedAt === null)
    return pricedAt === null ? 'the partner was never asked' : `priced ${ago(explained, pricedAt)}`;
  const why = because === null ? '' : ` because ${REASONS[because] ?? because}`;
  const withPrice =
    pricedAt === askedAt
      ? ''
      : pricedAt === null
        ? ', never with a price'
        : `, with a price ${ago(explained, pricedAt)}`;
  return `asked ${ago(explained, askedAt)}${why}${withPrice}`;
}

function reportOf(explained: Explained): string {
  const missed = explained.report.missed_moves;
  if (missed === 0) return lastReportOf(explained);
  const changes = missed === 1 ? 'a change' : `${count(missed)} changes`;
  return `${lastReportOf(explained)}; it has left out ${changes}, so the SKU is asked about as a live one is`;
}

function lastReportOf(explained: Explained): string {
  const {
    reported_at: reportedAt,
    removed_at: removedAt,
    asked_since: isAsked,
    again_at: again,
  } = explained.report;
  if (removedAt !== null) return `removed ${ago(explained, removedAt)}`;
  if (reportedAt === null) return 'the delta has never reported it';
  return (
    `the delta reported it ${ago(explained, reportedAt)}, ` +
    (isAsked ? 'and it was asked about since' : 'and it was not asked about since') +
    (again === null
      ? ''
      : `; a cache may have answered, so it is asked once more (${ahead(explained, again)})`)
  );
}

function rightOf({ trust }: Explained): string {
  const { p_right: ofSku, size_p_right: ofSize, confidence, doubt, actionable } = trust;
  const against =
    doubt !== null
      ? `not actionable, doubt "${doubt}": ${DOUBTS.get(doubt) ?? 'see catalog.sku_trust'}`
      : actionable
        ? 'actionable'
        : `not actionable as a whole: less than ${confidence} (ACTIONABLE_CONFIDENCE)`;
  if (ofSku === null || ofSize === null) return `not known; ${against}`;
  return `all sizes ${percent(ofSku)}, each size ${percent(ofSize)}; ${against}`;
}

/** What is odd about a price, in a few words; src/store/answer/plausibility.ts detects it. */
const ODDITIES: Readonly<Record<Oddity, string>> = {
  jump: 'a size is three times as dear as it was, or a third',
  'another-level': 'its sizes are more than twice as dear as they were, or less than half (their median)',
  'one-price': 'all sizes have one price',
  shuffled: 'the same prices are on other sizes',
  'another-profile': 'three in ten of its sizes or more have moved by much otherwise than the others',
  'other-sizes': 'hardly one of the sizes was there before',
  'unlike-siblings': 'a size is far from the price of all others',
  'another-product': 'name, model and prices have changed together',
  'no-prices': 'there are no prices, and nothing has told of that',
  'few-sizes': 'the prices of most sizes are gone, and nothing has told of it',
  'unit-of-many': 'it has moved by one factor with many others, as in another unit or currency',
  'one-price-of-many': 'all sizes have one price, as those of many others',
};

function oddLine(explained: Explained): [string, string][] {
  const { doubted } = explained.trust;
  if (doubted === null) return [];
  const what = ODDITIES[doubted.oddity as Oddity] ?? 'it moved while prices of many SKUs moved implausibly';
  const before = Object.entries(doubted.before).map(([size, price]) => `${size}: ${count(price)}`);
  return [
    [
      'odd',
      `${what}, ${ago(explained, doubted.since)}; before: ${before.length === 0 ? 'no price' : before.join(', ')}`,
    ],
  ];
}

function beliefOf({ belief }: Explained): string {
  const {
    minutes_between_changes: minutes,
    own_rate: isOwn,
    sizes_that_move: part,
    moved_with_line: withLine,
  } = belief;
  const sizes = `with ${percent(part)} of its sizes`;
  if (minutes === null) return `it changes when a snapshot is built, which the delta reports; ${sizes}`;
  const line =
    withLine === null
      ? ''
      : `; SKUs of its brand and model move at present: it has, too, with ${percent(withLine)}`;
  return (
    `a change every ${formatAge(minutes * 60)}, ${sizes}, ` +
    `${isOwn ? 'learned from its own refreshes' : 'as SKUs of which nothing is known'}${line}`
  );
}

/** How many sources are named; further ones are only counted. */
const SHOWN_SOURCES = 5;

/** Says who claims that it has moved since its last answer. */
function hintedLine(explained: Explained): [string, string][] {
  const sources = explained.belief.hinted_by ?? [];
  if (sources.length === 0) return [];
  const shown = sources
    .slice(0, SHOWN_SOURCES)
    .map(({ source, at, moved }) => `${source} ${ago(explained, at)} (right ${percent(moved)} of the time)`);
  const others = sources.length - SHOWN_SOURCES;
  return [['hinted', `by ${[...shown, ...(others > 0 ? [`${others} more`] : [])].join(', ')}`]];
}

/** Says what is promised about its age, and how far that was kept. */
function promiseLine({ promise }: Explained): [string, string][] {
  if (promise === null) return [];
  const { max_age_seconds: seconds, kept_share: kept, because } = promise;
  const parts = [
    `asked again before its price is ${formatAge(seconds)} old`,
    kept === null
      ? 'no refresh has tested that yet'
      : `kept in ${percent(Math.floor(kept * 1000) / 1000)} of the last day`,
    ...(because === null ? [] : [`at present: ${because}`]),
  ];
  return [['promise', parts.join('; ')]];
}

function testedOf({ belief }: Explained): string {
  const { cohort, looks, right_share: right, claimed_share: claimed } = belief;
  if (looks === null || right === null || claimed === null)
    return `no refresh has tested the cohort "${cohort}" yet`;
  return `cohort "${cohort}": ${percent(right)} right (claimed ${percent(claimed)}) in ${refreshesText(looks)}`;
}

function nextOf(explained: Explained): string {
  const { next } = explained;
  if (next.under_way) return 'being asked at this moment';
  const when =
    next.look_at === null
      ? next.due_at === null
        ? 'no refresh is planned'
        : `due ${ahead(explained, next.due_at)}, no estimate`
      : `expected ${ahead(explained, next.look_at)}`;
  const why =
    next.reason === null || next.due_at === null ? '' : `: ${next.reason}${next.is_due ? ', due' : ''}`;
  const waits = [
    ...(next.deferrals > 0
      ? [`deferred ${count(next.deferrals)} ${plural(next.deferrals, 'time')} in a row`]
      : []),
    ...(next.failures > 0 ? [failedText(next)] : []),
  ];
  return [`${when}${why}`, ...waits].join(', ');
}

function failedText({ failures, last_error: error }: Explained['next']): string {
  const text = errorText(error);
  return `failed ${count(failures)} ${plural(failures, 'time')} in a row${text === null ? '' : ` (${text})`}`;
}
