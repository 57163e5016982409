import { faultsOf, type Mutant } from './mutant.ts';

const RATES = ['test/sync/live-corners.test.ts', 'test/sync/live-policy.test.ts'];
const SIZES = ['test/sync/call-size.test.ts', 'test/sync/failing-calls.test.ts'];

/** Faults in when SKUs are refreshed next: rates, sizes of calls, retries, maintenance. */
export const SCHEDULING: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/live/policy.ts',
    ['test/sync/years.pg.test.ts'],
    [
      'years: a SKU at rest fades out of numbers',
      'alpha: Math.max(MIN_SHAPE, alpha * scale)',
      'alpha: alpha * scale',
    ],
  ),
  ...faultsOf(
    'src/sync/live/releases.ts',
    ['test/sync/years.pg.test.ts'],
    [
      'years: a single wholesale move is never forgotten',
      'faded(after.moves * scale)',
      'after.moves * scale',
    ],
    [
      'years: a line never forgets who did not follow',
      'faded((line.misses + misses) * scale)',
      '(line.misses + misses) * scale',
    ],
  ),
  ...faultsOf(
    'src/store/sellers/hints.ts',
    ['test/sync/years.pg.test.ts'],
    [
      'years: what was undone once is never forgotten',
      "${fadedSql(tx, 'n.undone * f.part')}",
      'n.undone * f.part',
    ],
  ),
  ...faultsOf(
    'src/store/live/order.ts',
    ['test/sync/years.pg.test.ts'],
    [
      'years: days without a refresh are beyond numbers',
      'least(60, w.alpha / w.beta * greatest(0, w.tau) + h.hazard)',
      'w.alpha / w.beta * greatest(0, w.tau) + h.hazard',
    ],
  ),
  ...faultsOf(
    'src/sync/live/policy.ts',
    RATES,
    [
      'rates: evidence grows without bound',
      'Math.min(1, MAX_SHAPE / alpha, minutes / beta)',
      'Math.min(1, minutes / beta)',
    ],
    [
      'rates: a SKU at rest is believed for years',
      'Math.min(1, MAX_SHAPE / alpha, minutes / beta)',
      'Math.min(1, MAX_SHAPE / alpha)',
    ],
    ['rates: no time at all teaches', 'if (tau <= 0) return rate;', ''],
    [
      'rates: a price at rest teaches nothing',
      'if (!changed) return { ...rate, beta: beta + tau };',
      'if (!changed) return rate;',
    ],
    [
      'rates: moves of the past count twice',
      'alpha: PRIOR.alpha + moves,',
      'alpha: PRIOR.alpha + 2 * moves,',
    ],
    ['rates: weight does not count', 'return weight * (beta * spread', 'return 0 * weight + (beta * spread'],
    [
      'rates: more than a refresh a minute',
      'Math.min(Math.max(1 / MIN_MINUTES, 1 / most), Math.max(1 / most, wanted))',
      'Math.max(1 / most, wanted)',
    ],
    [
      'rates: a SKU waits for ever',
      'Math.min(Math.max(1 / MIN_MINUTES, 1 / most), Math.max(1 / most, wanted))',
      'Math.min(1 / MIN_MINUTES, wanted)',
    ],
    [
      'rates: more refreshes are promised than there are',
      'SPENT_PART * refreshes - setAside);',
      '1.1 * refreshes - setAside);',
    ],
    [
      'rates: a SKU of a moment ago is chosen',
      'filter(({ tau }) => tau >= MIN_MINUTES)',
      'filter(({ tau }) => tau >= 0)',
    ],
    [
      'rates: who waits too long waits on',
      'const overdue = candidate.tau >= most;',
      'const overdue = candidate.tau >= Infinity * most;',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/call-size.ts',
    SIZES,
    [
      'call size: failures in a row make calls no smaller',
      '>> Math.min(2 * failures, 30)',
      '>> Math.min(0 * failures, 30)',
    ],
    ['call size: is nothing', 'return Math.max(1, Math.min(size', 'return Math.max(0, Math.min(size'],
    ['call size: one failure limits it', 'if (suspected === null || skus <= proven', 'if (skus <= proven'],
    ['call size: one SKU limits it', 'if (skus <= 1) return null;', ''],
    [
      'call size: a limit that is gone is remembered',
      'if (after.suspected === null && (size === null || skus >= most)) return { ...after, ...ANY_SIZE };',
      '',
    ],
    [
      'call size: larger ones are tried at every call',
      'after.worked >= after.patience)',
      'after.worked >= 1)',
    ],
    [
      'call size: trials that fail come as often',
      'Math.min(MAX_PATIENCE, 2 * patience)',
      'Math.min(MAX_PATIENCE, patience)',
    ],
    [
      'failed call: an outage is blamed on SKUs',
      'if (isConfiguration || failures >= FAILURES_BEFORE_PAUSE) {',
      'if (isConfiguration) {',
    ],
    [
      'failed call: its pause has no end',
      'doubling(errorMs, failed, Math.max(errorMs, mostMs))',
      'doubling(errorMs, failed, Infinity)',
    ],
    [
      'failed call: an outage pauses calls for half an hour',
      'after(times, OUTAGE_PAUSE_MAX_MS)',
      'after(times, PAUSE_MAX_MS)',
    ],
    [
      'failed call: the last one before a pause is blamed',
      'blames: skus === 1 && failures < FAILURES_BEFORE_PAUSE - 1,',
      'blames: skus === 1,',
    ],
  ),
  ...faultsOf(
    'src/sync/settings.ts',
    ['test/sync/retries.test.ts', 'test/store/settings.pg.test.ts'],
    [
      'refreshes: without a sweep they are for prices',
      "sweepMs > 0 && sweepMs <= metadataMs ? 'sweep' : 'metadata'",
      "sweepMs >= 0 && sweepMs <= metadataMs ? 'sweep' : 'metadata'",
    ],
    [
      'refreshes: without a sweep they never come',
      'return sweepMs > 0 ? Math.min(sweepMs, metadataMs) : metadataMs;',
      'return Math.min(sweepMs, metadataMs);',
    ],
    [
      'refreshes: a SKU that is not found is asked as a live one',
      'notFoundMs: metadataMs,',
      'notFoundMs: liveMs,',
    ],
  ),
  ...faultsOf(
    'src/sync/outcome.ts',
    ['test/sync/outcome.test.ts', 'test/sync/retries.test.ts'],
    [
      'retries: after an hour of failures they stop growing',
      'doubling(RETRY_FIRST_MS, failuresBefore + 1, RETRY_MAX_MS)',
      'doubling(RETRY_FIRST_MS, failuresBefore + 1, 2 * RETRY_MAX_MS)',
    ],
    [
      'retries: the first one waits twice as long',
      'failuresBefore + 1, RETRY_MAX_MS',
      'failuresBefore + 2, RETRY_MAX_MS',
    ],
    [
      'retries: the schedule is waited for',
      'return Math.min(scheduleMs, doubling',
      'return Math.max(scheduleMs, doubling',
    ],
    [
      'retries: a refused request waits as a failed one',
      'if (!refuses(error.kind)) return retryInMs',
      'if (true) return retryInMs',
    ],
    [
      'retries: a route that is refused has all requests back off without end',
      'if (beganBackoff && isRouteSuspect(before))',
      'if (false)',
    ],
    [
      'retries: what is refused to all puts off a route for long',
      'if (beganBackoff && isRoute',
      'if (isRoute',
    ],
    [
      'retries: a suspected route is the first to ask after a back-off',
      "because === 'silence' && isRouteSuspect(before)",
      'before.failures < 0',
    ],
  ),
  ...faultsOf(
    'src/sync/delta.ts',
    ['test/sync/retries.test.ts', 'test/sync/manifest-decision.test.ts', 'test/hostile/deltas.pg.test.ts'],
    ['delta: too large a delta is tried on and on', "    case 'delta-too-large':\n", ''],
    [
      'delta: a stale catalog breaks the chain',
      "    case 'no-snapshot':\n    case 'snapshot-stale':\n      return 'catalog-fault';",
      "    case 'no-snapshot':\n      return 'catalog-fault';\n    case 'snapshot-stale':\n      return 'fetch-manifest';",
    ],
  ),
  ...faultsOf(
    'src/store/catalog/delta.ts',
    ['test/sync/rejected-token.pg.test.ts'],
    [
      'delta: a chain stays broken although its token is answered',
      'chain_broken_at = null, rejected_snapshot_id = null, manifest_refused = nullif',
      'manifest_refused = nullif',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/tokens.ts',
    ['test/sync/rejected-token.pg.test.ts'],
    [
      'delta: each stray rejection of a token costs a download',
      "and t.outcome = 'rejected-token' and",
      "and t.outcome = '' and",
    ],
    [
      'delta: a chain is said to be broken each time',
      'await bringManifestForward(tx, token);\n      return false;',
      'await bringManifestForward(tx, token);\n      return true;',
    ],
  ),
  ...faultsOf(
    'src/sync/maintenance.ts',
    ['test/pace/window.pg.test.ts', 'test/sync/incident.pg.test.ts', 'test/sync/maintenance.pg.test.ts'],
    [
      'metadata: SKUs are moved before their metadata is old',
      'ctx.settings.intervals.metadataMs - snapshotMs;',
      'ctx.settings.intervals.metadataMs - ctx.settings.intervals.metadataMs + 0 * snapshotMs;',
    ],
    [
      'metadata: SKUs are moved that are refreshed for it anyway',
      "snapshotReason === 'metadata' ? 0 :",
      "snapshotReason !== 'metadata' ? 0 :",
    ],
    [
      'maintenance: a backlog waits a minute',
      'const isMore = most >= AT_ONCE ||',
      'const isMore = most >= Infinity ||',
    ],
    [
      'maintenance: samples grow without end',
      "  await steps.run('quarantine', () => pruneQuarantine(sql, { keep: QUARANTINE_KEPT }));\n",
      '',
    ],
    [
      'maintenance: history that is kept for ever is dropped',
      'const mayDrop = historyMs > 0 &&',
      'const mayDrop = historyMs >= 0 &&',
    ],
    [
      'maintenance: history is dropped by a clock that jumps',
      'historyMs > 0 && isSteady &&',
      'historyMs > 0 &&',
    ],
  ),
  ...faultsOf(
    'src/sync/maintenance.ts',
    ['test/store/daily.pg.test.ts'],
    [
      'days: changes are dropped before they are counted',
      'isSteady && daily?.caughtUp === true;',
      'isSteady;',
    ],
    ['days: a backlog of changes waits a minute', ' || daily?.caughtUp === false;', ';'],
    ['days: they are dropped by a clock that jumps', 'dailyMs > 0 && isSteady;', 'dailyMs > 0;'],
  ),
  ...faultsOf(
    'src/store/history/daily.ts',
    ['test/store/daily.pg.test.ts'],
    ['days: the median is of all but the lowest price', '2 * upto >= whole', 'upto > 0 and 2 * upto > whole'],
    [
      'days: what is before a correction counts',
      'from dated where counts\n        union',
      'from dated\n        union',
    ],
    [
      'days: a day begins before the first price',
      'case when first_priced_at between begins and at then first_priced_at else begins end',
      'begins',
    ],
    ['days: a change of an earlier time goes back', 'max(greatest(observed_at', 'min(greatest(observed_at'],
    [
      'days: a day is made again from a part of its changes',
      'when l.day < f.day then null when l.first_position > dropped.last_value then l.day',
      'when l.day < f.day then null when true then l.day',
    ],
    [
      'days: two who are at work count twice',
      ' from catalog_internal.daily for update`',
      ' from catalog_internal.daily`',
    ],
  ),
  ...faultsOf(
    'src/store/quarantine.ts',
    ['test/sync/maintenance.pg.test.ts'],
    [
      'samples: one fewer is kept',
      'order by id desc offset ${keep} limit 1',
      'order by id desc offset ${keep} - 1 limit 1',
    ],
    ['samples: the newest go', 'where id <= (select', 'where id >= (select'],
  ),
];
