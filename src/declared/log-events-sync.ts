import { FAILURE, line, OVER, REPEATED, RUN, type LogEvent } from './log-event.ts';

const CALLS = ['resolved', 'notFound', 'deferred', 'errors', 'priceChanges', 'metadataChanges'] as const;

const FREED = ['released', 'broughtForward', 'pruned', 'forgotten'] as const;

const HALF_A_MINUTE_MS = 30_000;
const HOUR_MS = 3_600_000;

export const PARTNER = {
  'partner.request': line('debug', 'a request to the partner was completed', [
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
    ['outcome', 'suspected', 'backoffUntil', 'backoffSeconds', 'episodes', 'ownRequests', ...REPEATED],
    'all requests are paused until backoffUntil, then one is sent as a test; from the fourth rejection on the ' +
      'back-off grows, to ten times PARTNER_BACKOFF',
  ),
  'pace.resumed': line(
    ['info', 'debug'],
    'the partner accepts requests again',
    ['requestsPerWindow', ...OVER],
    'sending resumes at half the previous rate and ramps up',
  ),
  'requests.paused': line(
    'info',
    'requests to the partner are paused by request',
    ['by', 'pausedSince', 'pausedUntil'],
    'requests under way are finished; the others go from pausedUntil on, or after `catalog-mirror resume`',
  ),
  'requests.resumed': line(
    'info',
    'requests to the partner go again: the pause is over',
    ['by', 'pausedSince', 'lastedSeconds'],
    'what has become due meanwhile is fetched by worth; `by` is null where the pause has ended by itself',
  ),
  'bulk.unaccounted': line(
    ['warn', 'debug'],
    'bulk answers do not match their requests',
    [
      'calls',
      'asked',
      'omitted',
      'contradictory',
      'unreadable',
      'unexpected',
      'late',
      'unpricedEntries',
      ...CALLS,
    ],
    'requested SKUs stay due and are retried; others are left unchanged. Counts cover ten minutes',
  ),
  'bulk.unpriced-entries': line(
    'warn',
    'size_map entries whose price cannot be read, beside others that can',
    ['entries'],
    'their prices are null; check PARTNER_PRICE_FIELDS with `catalog-mirror doctor`. Counts cover an hour',
  ),
  'size-map.other-members': line(
    ['info', 'debug'],
    'size_map has members that are no sizes: twenty records had them beside prices, and none in the form of prices',
    ['members'],
    'nothing is stored of them, and a record with nothing else is a withdrawal; one that gets a price is a size again',
    HOUR_MS,
  ),
  'price-form.missing': line(
    ['warn', 'debug'],
    'no size_map entry has the field that held the price; their records are unreadable and keep their prices',
    ['field', 'instead'],
    'after an hour without it `instead` is read (null: bare numbers). If that is the price, set ' +
      'PARTNER_PRICE_FIELDS to it and restart; `catalog-mirror doctor` helps',
    HOUR_MS,
  ),
  'price-form.let-go': line(
    'warn',
    'the price in size_map entries is read from another field from now on',
    ['field', 'instead'],
    'compare some prices with the marketplace; set PARTNER_PRICE_FIELDS to the right field',
  ),
  'bulk.failed': line(
    ['warn', 'debug'],
    'a bulk call failed; its SKUs stay due',
    ['skus', 'sku', 'pausedMs', ...FAILURE, ...REPEATED],
    'its SKUs share smaller calls until they are answered, and others go on; from the fourth call in a row on ' +
      'all wait for pausedMs, which doubles up to five minutes, or half an hour where the partner rejects the ' +
      'calls',
  ),
  'bulk.set-aside': line(
    'warn',
    'SKUs with which every bulk call fails',
    ['count', 'skus', 'because', 'httpStatus', 'code', 'problem'],
    'each of them is asked alone, at longer and longer intervals up to six hours, and holds up no other; take ' +
      'it from catalog.watchlist, or tell the partner. Counts cover ten minutes',
  ),
  'bulk.recovered': line('info', 'bulk calls succeed again', [...OVER]),
} as const;

export const CATALOG = {
  'manifest.progress': line(
    ['info', 'debug'],
    'the manifest is being downloaded',
    ['lines', 'of', 'rejected', 'bytes', 'remainingSeconds'],
    null,
    HALF_A_MINUTE_MS,
  ),
  'manifest.downloaded': line('debug', 'the manifest download was completed', [
    'outcome',
    'durationMs',
    'httpStatus',
  ]),
  'manifest.rejected-lines': line(
    'warn',
    'manifest lines rejected',
    ['rejected', 'reasons'],
    'their SKUs stay as they are and are refreshed once; samples are in catalog_internal.quarantine. Too many ' +
      'cause the manifest to be refused',
  ),
  'manifest.live-count-differs': line(
    'warn',
    'a manifest is applied that has another number of live SKUs than live_priced_sku_count says',
    ['live', 'announced'],
    'it was downloaded again three times, and differs still: ask the partner what the number counts',
  ),
  'manifest.kept-file': line(
    'warn',
    'a manifest is applied whose file a cache has kept since before the snapshot was built, by its Age header',
    ['keptSince', 'builtAt'],
    'it was downloaded again three times or more, and was as old each time: ask the partner whether it is the file of that snapshot',
  ),
  'manifest.done': line(
    'info',
    'a manifest was applied',
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
      'skipped',
      'lagSeconds',
    ],
    'the delta is polled at once; SKUs that may have changed are refreshed',
  ),
  'catalog-check.done': line('info', 'manifest metadata was checked', [...RUN, 'generated', 'live', 'skus']),
  'delta.applied': line(
    'info',
    'a delta was applied',
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
    'reported SKUs are refreshed first',
  ),
  'delta.done': line('debug', 'the delta is caught up', [...RUN, 'hops']),
  'delta.chain-broken': line(
    ['warn', 'debug'],
    'the delta cannot continue from the stored catalog snapshot',
    ['because', 'httpStatus', 'code', 'problem', ...REPEATED],
    'a new manifest is fetched at once; prices are still refreshed',
  ),
  'delta.behind': line(
    'warn',
    'the delta does not lead to the snapshot that the manifest route names',
    ['snapshot', 'generated', 'token'],
    'the manifest is downloaded; until then snapshot prices get less trustworthy with their age. See the runbook delta-behind',
  ),
  'delta.limit-suspected': line(
    'warn',
    'the delta reports the same round number of SKUs again, as if it were cut there',
    ['changed'],
    'the newest manifest is downloaded, which tells of all changes: ask the partner whether there is a limit',
  ),
  'catalog-check.differs': line(
    'warn',
    'the manifest route says of the mirrored snapshot what the mirror does not have',
    ['snapshot', 'listed', 'live', 'rebuilt'],
    'the manifest is downloaded; until then snapshot prices get less trustworthy with their age. See the runbook catalog-differs',
  ),
  'rows.restored': line(
    'warn',
    'rows that the mirror cannot do without had been deleted, and are made anew',
    ['tables', 'skus'],
    'find who deletes in the schema catalog_internal, or loaded it without rows; what those rows had learned begins anew, ' +
      'and SKUs that the ledger had lost are asked for again',
  ),
  'scope.differs': line(
    ['warn', 'debug'],
    'another daemon was started with another MIRROR_SCOPE, which counts for all of them',
    ['own', 'effective'],
    'give all daemons on this database the same MIRROR_SCOPE, and restart those that have another',
    HOUR_MS,
  ),
} as const;

export const REPRICING = {
  'reprice.progress': line(
    'info',
    'summary of bulk calls by this daemon since the last such line, and what is left for all of them',
    [
      'spanSeconds',
      'calls',
      'skus',
      ...CALLS,
      'skusPerMinute',
      'skusLeft',
      'unfetchedLeft',
      'remainingSeconds',
    ],
    'logged every minute during the initial load, otherwise every five minutes while calls are made. ' +
      'skusPerMinute is of this daemon; remainingSeconds goes by how fast skusLeft falls, where others do more',
  ),
  'reprice.filled': line(
    'info',
    'the initial load is complete: every SKU was requested once',
    ['durationSeconds', 'skus'],
    'from now on prices are kept fresh',
  ),
  'live-budget.learned': line(
    ['info', 'debug'],
    'learned how many live SKUs the partner computes in one call',
    ['budget'],
    null,
    HOUR_MS,
  ),
  'release.suspected': line(
    'debug',
    'some SKUs of a line (brand and model) have moved at once: a few others are refreshed',
    ['brand', 'model', 'skus'],
  ),
  'release.confirmed': line(
    ['info', 'debug'],
    'the SKUs of a line (brand and model) move together: the others are refreshed sooner',
    ['brand', 'model', 'skus'],
    null,
    HOUR_MS,
  ),
  'release.dismissed': line('debug', 'the others of a suspected line have not moved', ['brand', 'model']),
  'hint.source': line('info', 'first hint from a new source (catalog.hint); its precision is being learned', [
    'source',
  ]),
  'live-ceiling.learned': line(
    ['info', 'debug'],
    'learned how many live computations per minute the partner allows (null: no ceiling reached)',
    ['perMinute'],
    null,
    HOUR_MS,
  ),
  'live-plan.done': line(
    ['info', 'debug'],
    'the refresh plan of live SKUs changed (at debug: was recomputed)',
    [...RUN, 'liveSkus', 'refreshesPerMinute', 'roundMinutes', 'scarce', 'backlog', 'incident', 'scheduled'],
  ),
  'metadata.done': line('debug', 'SKUs with old metadata were made due', [...RUN, 'promoted']),
  'maintenance.done': line(
    'debug',
    'expired rows were deleted, changes counted to their days, and tables that have grown analyzed',
    [...RUN, ...FREED, 'historyChunksDropped', 'daysWritten', 'daysDropped', 'analyzed', 'retentionRests'],
  ),
} as const;

/** Tasks whose runs are logged; re-pricing logs its calls instead. */
const RUN_TASKS = ['manifest', 'delta', 'catalog-check', 'metadata', 'maintenance', 'live-plan'] as const;

/** Declares the event `task.end` for each of the tasks. */
function each<T extends (typeof RUN_TASKS)[number], E extends string, Event extends LogEvent>(
  tasks: readonly T[],
  end: E,
  event: Event,
): Record<`${T}.${E}`, Event> {
  return Object.fromEntries(tasks.map((task) => [`${task}.${end}`, event])) as Record<`${T}.${E}`, Event>;
}

export const TASK_LINES = {
  ...each(
    RUN_TASKS,
    'failed',
    line(
      ['warn', 'debug'],
      'a task run failed; the mirror is unchanged (rejected requests are logged only as pace.silenced)',
      [...RUN, ...FAILURE, ...REPEATED],
      "it is retried in nextInSeconds; the wait doubles from a minute to an hour, or to the task's interval",
    ),
  ),
  ...each(RUN_TASKS, 'recovered', line('info', 'the task succeeds again', [...OVER])),
  ...each(RUN_TASKS, 'postponed', line('debug', 'a task run was postponed', [...RUN, 'because'])),
} as const;
