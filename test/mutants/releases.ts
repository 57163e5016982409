import { faultsOf, type Mutant } from './mutant.ts';

const PURE = ['test/sync/releases.test.ts'];
const BOOST = ['test/sync/boost.test.ts'];
const PG = ['test/sync/lines.pg.test.ts'];

/** Faults in handling lines of live SKUs that move together. */
export const RELEASES: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/live/releases.ts',
    PURE,
    [
      'releases: a move of few sizes is wholesale',
      'const WHOLESALE_PART = 0.5;',
      'const WHOLESALE_PART = 0.3;',
    ],
    ['releases: a SKU without sizes moves wholesale', 'return held > 0 && moved', 'return moved'],
    ['releases: evidence does not fade', '/ EVIDENCE_MINUTES)', '/ 1e9)'],
    ['releases: a SKU that has not moved says nothing', ': UNMOVED_EVIDENCE));', ': 0));'],
    ['releases: one refresh is enough evidence', 'const MAX_EVIDENCE = 4;', 'const MAX_EVIDENCE = 40;'],
    [
      "releases: a SKU's own moves are evidence, too",
      'const rate = (wholesale.moves + 0.5)',
      'const rate = 0.5',
    ],
    ['releases: one other confirms', 'const CONFIRMING_EVIDENCE = 6;', 'const CONFIRMING_EVIDENCE = 4;'],
    [
      'releases: moves that are likely anyway confirm',
      'if (line.evidence >= CONFIRMING_EVIDENCE) {',
      'if (line.moved >= 2) {',
    ],
    ['releases: is dismissed before the others can have moved', '&& age >= DISMISSED_MINUTES)', ')'],
    ['releases: a suspicion lasts for ever', 'age > UNDECIDED_MINUTES;', 'false;'],
    [
      'releases: SKUs that were refreshed since count as answers',
      'decide(isFirst ? answered',
      'decide(true ? answered',
    ],
    [
      'releases: the first answer since does not count for the part that moves',
      'isFirst ? remembered(line, Number(moved), Number(!moved)) : line',
      'line',
    ],
    ['releases: what it moves teaches rates', '&& (isFirst || isSoon);', '&& isFirst && isSoon && false;'],
    [
      'releases: explains moves of few sizes',
      "line.phase !== 'quiet' && moved &&",
      "line.phase !== 'quiet' &&",
    ],
    [
      'releases: late moves of a release begin another one',
      "line.phase === 'released' && fromSuspicion < RELEASE_MINUTES",
      "line.phase === 'released' && isFirst",
    ],
    ['releases: a clock that was ahead is believed', 'line.weighedAt > now + 1 ||', 'false ||'],
    [
      'releases: what a line was like is never forgotten',
      'const scale = Math.min(1, MAX_COUNTS / all);',
      'const scale = 1;',
    ],
    ["releases: a SKU's past is never forgotten", 'Math.min(1, MAX_MEMORY_MINUTES / after.minutes)', '1'],
    ['releases: wrong suspicions make no more careful', 'const AFTER_WRONG = 0.5;', 'const AFTER_WRONG = 0;'],
    ['releases: right suspicions make more careful', 'const AFTER_RIGHT = -0.2;', 'const AFTER_RIGHT = 0.2;'],
    ['releases: the threshold grows for ever', 'Math.min(MAX_THRESHOLD, ', 'Math.min(1e9, '],
  ),
  ...faultsOf(
    'src/sync/live/product-lines.ts',
    BOOST,
    ['boost: a small line is judged', 'if (others.length < MIN_OTHERS) return [];', ''],
    ['boost: the least valuable are the panel', '|| b.value - a.value);', '|| a.value - b.value);'],
    [
      'boost: who has been refreshed since is asked again at once',
      '.filter(({ minutes }) => now - minutes < (line.since ?? now) - SAME_MINUTES)',
      '',
    ],
    ['boost: who is due sooner anyway is moved', 'inMinutes: isSooner ? inMinutes : null', 'inMinutes'],
    [
      'boost: who is due sooner anyway has not moved',
      'return boosted(line, members, plan, now).map(',
      'return boosted(line, members, plan, now).filter(({ isSooner }) => isSooner).map(',
    ],
    ['boost: who has not moved yet is asked again at once', ', AGAIN_MINUTES - age);', ', 0);'],
    ['boost: who has moved is asked again', '|| isWholesale(sizes)) return null;', ') return null;'],
    ['boost: early refreshes are remembered for ever', '/ EARLY_MEMORY_MINUTES);', '/ 1e9);'],
  ),
  ...faultsOf(
    'src/store/ledger/due.ts',
    PG,
    [
      'lines: SKUs that are claimed or wait are moved',
      '${row}.claim is null\n    and ${claimable(sql, alias)}\n    and',
      '',
    ],
    [
      'lines: SKUs marked for another reason are moved',
      "    and ${row}.reason = 'live'\n    and ${row}.lane = ${laneNumber('live')}\n    and ${row}.outside_due_at is null`;",
      '`;',
    ],
  ),
  ...faultsOf(
    'src/store/live/product-lines.ts',
    PG,
    ['lines: a state that another call has changed is overwritten', 'and n.was = l.step', ''],
    [
      'lines: who stores waits for who holds',
      'order by l.line for update of l skip locked',
      'order by l.line for update of l nowait',
    ],
    [
      'lines: SKUs that are held are waited for',
      'order by d.sku for update of d skip locked',
      'order by d.sku for update of d nowait',
    ],
    [
      'lines: who waits as before is not due later',
      'case when l.hazard is not null then d.due_at end',
      'd.due_at',
    ],
    [
      'lines: are kept for ever',
      "where weighed_at not between clock_timestamp() - interval '7 days'",
      "where weighed_at not between clock_timestamp() - interval '700 days'",
    ],
    [
      'lines: SKUs that are not live any longer are its members',
      "and s.price_source = 'live' and s.asked_at",
      'and s.asked_at',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/product-lines.ts',
    PG,
    ['lines: what another call has changed is left out', 'tries < MAX_TRIES && left', 'tries < 0 && left'],
    [
      'lines: a line with too few others stays suspected',
      "if (last === 'suspected' && pulled.length === 0) {",
      'if (false) {',
    ],
    [
      'lines: what became of suspicions changes nothing',
      "turn === 'suspected' ? before : thresholdAfter(before, turn)",
      'before',
    ],
  ),
  ...faultsOf(
    'src/store/live/refresh.ts',
    PG,
    [
      'lines: the probability stays low after a refresh',
      'line = excluded.line, hazard = null',
      'line = excluded.line',
    ],
    ['lines: a renamed SKU stays in its line', 'line = excluded.line, hazard = null', 'hazard = null'],
  ),
];
