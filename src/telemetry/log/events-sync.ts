import { type RunTask, TASKS } from '../../store/tasks.ts';
import { line, type LogEvent, OVER, REPEATED } from './event.ts';

const RUN = ['durationMs', 'nextInSeconds'] as const;
const FAILURE = ['because', 'httpStatus', 'code', 'problem', 'hint', 'err'] as const;
const CALLS = ['resolved', 'notFound', 'deferred', 'errors', 'priceChanges', 'metadataChanges'] as const;
const EVIDENCE = ['kind', 'live', 'skus', 'asked', 'answered', 'deferred'] as const;

const RUN_TASKS = TASKS.filter((task) => task !== 'reprice');

/** Requests to the partner, and bulk answers. */
export const PARTNER = {
  'partner.request': line('debug', 'a request to the partner has ended', [
    'route',
    'outcome',
    'httpStatus',
    'durationMs',
    'waitedMs',
    'skus',
  ]),
  'pace.silenced': line(
    ['warn', 'debug'],
    'throttled or refused',
    ['outcome', 'suspected', 'silentUntil', 'silentSeconds', 'episodes', 'ownRequests', ...REPEATED],
    'nobody sends until silentUntil, then one probe; silences grow from the fourth refusal on, to ten back-offs',
  ),
  'pace.resumed': line(
    ['info', 'debug'],
    'requests are let through again',
    ['requestsPerWindow', ...OVER],
    'they go on at half the former rate, growing',
  ),
  'bulk.unaccounted': line(
    ['warn', 'debug'],
    'bulk answers do not add up',
    [
      'calls',
      'asked',
      'omitted',
      'contradictory',
      'unreadable',
      'foreign',
      'late',
      'unpricedEntries',
      ...CALLS,
    ],
    'SKUs that were asked stay due and are asked again; others are left as they are. Counts are summed up over ten minutes',
  ),
  'bulk.unpriced-entries': line(
    'warn',
    'size_map entries carry no readable price',
    ['entries'],
    'their prices stay null; see PARTNER_PRICE_FIELDS and `catalog-mirror doctor`. Said once',
  ),
  'bulk.failed': line(
    ['warn', 'debug'],
    'a bulk call failed; its SKUs stay due',
    ['skus', 'pausedMs', ...FAILURE, ...REPEATED],
    'the next call is made after pausedMs, with fewer SKUs; pauses double up to half an hour',
  ),
  'bulk.recovered': line('info', 'bulk calls are answered again', [...OVER]),
} as const;

/** Manifest, delta and what they tell. */
export const CATALOG = {
  'manifest.progress': line(['info', 'debug'], 'the manifest is being downloaded', [
    'lines',
    'of',
    'rejected',
    'bytes',
    'remainingSeconds',
  ]),
  'manifest.downloaded': line('debug', 'the download of the manifest file has ended', [
    'outcome',
    'durationMs',
    'httpStatus',
  ]),
  'manifest.rejected-lines': line(
    'warn',
    'manifest lines rejected',
    ['rejected', 'reasons'],
    'their SKUs are left as they were; samples are in catalog_internal.quarantine. Too many refuse the manifest',
  ),
  'manifest.done': line(
    'info',
    'a manifest is applied',
    [
      ...RUN,
      'because',
      'lines',
      'rejected',
      'duplicates',
      'live',
      'snapshot',
      'added',
      'changed',
      'crossed',
      'absent',
      'marked',
      'spared',
    ],
    'the delta is asked at once; SKUs that may have changed are re-priced',
  ),
  'catalog-check.done': line('info', 'the newest snapshot was looked at', [
    ...RUN,
    'generated',
    'live',
    'skus',
  ]),
  'delta.applied': line(
    'info',
    'a delta is applied',
    [
      'toSnapshot',
      'changed',
      'removed',
      'nowLive',
      'newSkus',
      'crossedToLive',
      'crossedToSnapshot',
      'skipped',
    ],
    'what it reports is re-priced first',
  ),
  'delta.done': line('debug', 'the delta is caught up', [...RUN, 'hops']),
  'delta.chain-broken': line(
    ['warn', 'debug'],
    'the delta cannot go on from the stored snapshot',
    ['because', 'httpStatus', 'code', 'problem', ...REPEATED],
    'a fresh manifest is fetched at once; prices go on being looked at',
  ),
  'size-type.changed': line(
    'warn',
    'size_type was corrected: the size keys of these SKUs mean something else now',
    ['count', 'skus'],
    'it is in catalog.product_history; look at what prices by size. Summed up over ten minutes',
  ),
  'incident.began': line(
    'warn',
    'the whole catalog is live-priced',
    ['because', 'minutes', ...EVIDENCE],
    'small calls, SKUs by worth, no sweeps; prices are older for as long as this lasts. It ends by itself',
  ),
  'incident.ended': line('info', 'the catalog is priced as usual again', ['because', 'minutes', ...EVIDENCE]),
} as const;

/** Re-pricing and upkeep. */
export const REPRICING = {
  'reprice.progress': line(
    'info',
    'bulk calls since the last such line',
    [
      'spanSeconds',
      'calls',
      'skus',
      ...CALLS,
      'skusPerMinute',
      'skusLeft',
      'firstLooksLeft',
      'remainingSeconds',
    ],
    'every minute during a fill, else every five minutes while there are calls',
  ),
  'reprice.filled': line(
    'info',
    'every SKU has been asked for once',
    ['durationSeconds', 'skus'],
    'from here on prices are kept fresh',
  ),
  'live-budget.learned': line(['info', 'debug'], 'live SKUs in one call that the partner computes', [
    'budget',
  ]),
  'live-ceiling.learned': line(
    ['info', 'debug'],
    'live computations a minute that the partner allows (null: no ceiling met)',
    ['perMinute'],
  ),
  'live-plan.done': line(
    ['info', 'debug'],
    'how live SKUs are looked at has changed (at debug: is planned anew)',
    [...RUN, 'liveSkus', 'looksPerMinute', 'roundMinutes', 'scarce', 'incident', 'placed'],
  ),
  'metadata.done': line('debug', 'SKUs with old metadata were moved up', [...RUN, 'promoted']),
  'maintenance.done': line('debug', 'what nobody needs any more is dropped', [
    ...RUN,
    'woken',
    'pruned',
    'historyChunksDropped',
  ]),
} as const;

/** The same declaration for each of these tasks. */
function each<T extends RunTask, E extends string, Event extends LogEvent>(
  tasks: readonly T[],
  end: E,
  event: Event,
): Record<`${T}.${E}`, Event> {
  return Object.fromEntries(tasks.map((task) => [`${task}.${end}`, event])) as Record<`${T}.${E}`, Event>;
}

/** The ends of runs. */
export const TASK_LINES = {
  ...each(
    RUN_TASKS,
    'failed',
    line(
      ['warn', 'debug'],
      'a run of the task failed; the mirror is as it was (a refusal is told by pace.silenced alone)',
      [...RUN, ...FAILURE, ...REPEATED],
      'it is tried again in nextInSeconds: waits double from a minute to an hour, or to the interval of the task',
    ),
  ),
  ...each(RUN_TASKS, 'recovered', line('info', 'a run of the task went well again', [...OVER])),
  ...each(RUN_TASKS, 'postponed', line('debug', 'a run of the task was put off', [...RUN, 'because'])),
} as const;
