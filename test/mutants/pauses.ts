import { faultsOf, type Mutant } from './mutant.ts';

const PURE = ['test/pace/pause.test.ts'];
const STORE = ['test/pace/pause.pg.test.ts'];
const MODEL = ['test/pace/pause-model.pg.test.ts'];
const JUDGE = ['test/status/pause.test.ts'];

/** Faults that send a request during a pause, hold one back without a pause, or report the pause wrongly. */
export const PAUSES: readonly Mutant[] = [
  ...faultsOf(
    'src/pace/pause.ts',
    PURE,
    ['pause: who resumes is not heard', 'pause.resumedBy === null && ', ''],
    ['pause: it holds beyond its end', 'now < pause.until)', 'now <= pause.until)'],
    ['pause: without an end there is none', 'pause.until === null || now', 'pause.until !== null && now'],
    [
      'pause: its end is waited for, whoever resumes',
      'Math.min(pause.until ?? Infinity, now + ASK_AGAIN_MS)',
      '(pause.until ?? now + ASK_AGAIN_MS)',
    ],
    ['pause: another end is no news', 'before?.setAt === pause.setAt', 'before !== null'],
    [
      'pause: its end is no news',
      "return before === null ? null : { what: 'resumed'",
      "return before === null || pause?.resumedBy === null ? null : { what: 'resumed'",
    ],
  ),
  ...faultsOf(
    'src/pace/pacer.ts',
    STORE,
    ['pacer: permits know nothing of pauses', 'whilePaused(pause, now) ??\n', '\n'],
    ['pacer: a pause holds a worker', "ended.because === 'paused' || ", ''],
  ),
  ...faultsOf(
    'src/store/sellers/pause.ts',
    STORE,
    [
      'pause: again, it begins anew',
      'p.until > excluded.set_at then p.since',
      'p.until < excluded.set_at then p.since',
    ],
    ['pause: again, the old end stays', 'until = excluded.until, ', ''],
    ['pause: after a resume there is none', ', resumed_by = null\n', '\n'],
    [
      'pause: one that has ended can be resumed',
      'where resumed_by is null and until > clock_timestamp() returning',
      'where resumed_by is null returning',
    ],
    ['pause: tasks wait on', "where outcome = 'paused' and next_at", "where outcome = 'silence' and next_at"],
    ['pause: all tasks run at once', "where outcome = 'paused' and next_at", 'where next_at'],
  ),
  ...faultsOf(
    'drizzle/0026_pause.sql',
    STORE,
    [
      'trust: a pause with an end is not waited for',
      'THEN p.backoff_until END, paused_until)',
      'THEN p.backoff_until END)',
    ],
    ['trust: without an end somebody knows when', " AND paused_until IS DISTINCT FROM 'infinity'", ''],
  ),
  ...faultsOf('drizzle/0045_one_rule_once.sql', STORE, [
    'pause: one that was resumed is shown, and doubts prices',
    'SELECT p.resumed_by IS NULL AND p.until',
    'SELECT p.until',
  ]),
  ...faultsOf(
    'drizzle/0026_pause.sql',
    MODEL,
    [
      'pause: it lasts as long as the clock was ahead',
      "WHEN until < 'infinity' THEN catalog_internal.happened(set_at, moment, shift) + (until - set_at)",
      "WHEN until < 'infinity' THEN until",
    ],
    [
      'pause: nobody knows that its clock was ahead',
      '    (SELECT set_at FROM catalog_internal.pause),\n',
      '',
    ],
  ),
  ...faultsOf(
    'src/status/pause.ts',
    JUDGE,
    ['health: what comes of a pause is told', '.filter(({ code }) => !CONSEQUENCES.has(code))', ''],
    [
      'health: a pause is broken by what it keeps from being tried',
      "? { ...reason, level: 'degraded' as const }",
      '? reason',
    ],
    [
      'health: a task without its row is not urgent',
      "reason.level === 'broken' && LATER.has(reason.code)",
      "reason.level === 'broken'",
    ],
    ['health: no pause is ever forgotten', 'pause.until === null && age > FORGOTTEN_SECONDS', 'false'],
    ['health: a pause with an end is forgotten', 'pause.until === null && age', 'age'],
  ),
  ...faultsOf('src/status/format.ts', JUDGE, [
    'estimate: a pause costs no time',
    'stats.pace.paused?.until?.getTime() ?? 0',
    '0',
  ]),
  ...faultsOf(
    'src/status/format.ts',
    ['test/status/backlog.test.ts'],
    [
      'estimate: live SKUs are done soon while the live source fails',
      'if (owed === live && isLiveOutage(stats)) return LIVE_SOURCE_DOWN;',
      '',
    ],
    [
      'estimate: others than live SKUs wait for the live source',
      'const isLiveSourceDown = live > 0 && isLiveOutage(stats);',
      'const isLiveSourceDown = isLiveOutage(stats);',
    ],
  ),
];
