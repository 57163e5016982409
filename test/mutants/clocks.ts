import { faultsOf, type Mutant } from './mutant.ts';

const STORE = ['test/store/clock.pg.test.ts', 'test/store/clock-model.pg.test.ts'];

/** Each has the mirror go by a clock that is wrong, or wait for one that nobody keeps. */
export const CLOCKS: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/clocks.ts',
    ['test/sync/clocks.test.ts'],
    ['clocks: a slow reading is a jump', 'JUMP_MS + before.uncertaintyMs + now.uncertaintyMs', 'JUMP_MS'],
    ['clocks: a jump of 2 s is none', 'const JUMP_MS = 2000;', 'const JUMP_MS = 2002;'],
    ['clocks: a difference of a minute is one', 'const DIFFERS_MS = 60_000;', 'const DIFFERS_MS = 50_000;'],
    [
      'clocks: the partner is not asked',
      'if (partner !== null && !differ(sample, partner, host)) return isPostgres;',
      '',
    ],
    [
      "clocks: the host's is never wrong",
      'if (partner !== null && !differ(sample, partner, postgres)) return isHost;',
      '',
    ],
    ['clocks: who has jumped is forgotten', 'suspect: isOpen ? suspect : null', 'suspect: null'],
    [
      'clocks: two that are one outvote the partner',
      "const isOne = suspect === 'both';",
      'const isOne = false;',
    ],
    [
      'clocks: a partner that is off makes every sleep a clock that was set',
      'const suspect = hasSlept ? null : left;',
      'const suspect = left;',
    ],
    [
      'clocks: how far the partner was off is forgotten in a sleep',
      'isTold ? (wrong?.aheadMs ?? null) : known',
      'wrong?.aheadMs ?? null',
    ],
    [
      'clocks: a partner that agrees with neither acquits the one that jumped',
      "if (suspect !== null && suspect !== 'both') return suspect",
      "if (partner === null && suspect !== null && suspect !== 'both') return suspect",
    ],
    ['clocks: of a sleep the partner knew', "jump?.clock === 'both' ? null : now.partner", 'now.partner'],
  ),
  ...faultsOf(
    'src/store/clock.ts',
    STORE,
    [
      'clock: a sample of the status that it has dated ahead stays',
      'where minute > clock_timestamp()`;',
      'where false`;',
    ],
    [
      'clock: a judgement that cannot be made takes the last one back',
      '${aheadSeconds === undefined}',
      '${false}',
    ],
    [
      'clock: what has jumped is steady',
      'case when ${steady} then steady_since',
      'case when true then steady_since',
    ],
    ['clock: it is never done', 'nullif(greatest(set_back_seconds - ${seconds}, 0), 0)', 'set_back_seconds'],
    [
      'clock: history stays in the future',
      ', catalog_internal.redate_history(make_interval(secs => ${seconds}))`',
      '`',
    ],
  ),
  ...faultsOf(
    'drizzle/0015_clock.sql',
    STORE,
    [
      'clock: SKUs asked meanwhile are sure',
      "    PERFORM catalog_internal.mark_due(asked, 'clock');\n",
      '    NULL;\n',
    ],
    [
      'clock: prices are of the future',
      'priced_at = catalog_internal.happened(priced_at, moment, shift),',
      '',
    ],
    [
      'clock: only who is in the future now is looked at',
      " OR asked_at > moment - interval '10 minutes'",
      ' OR asked_at > moment',
    ],
    [
      'clock: nothing is doubted before it is put right',
      'WHERE high_water > moment OR set_back_seconds',
      'WHERE set_back_seconds',
    ],
    [
      'clock: nothing is doubted while it is put right',
      ' OR set_back_seconds IS NOT NULL OR ahead_seconds',
      ' OR ahead_seconds',
    ],
    ['clock: nothing is doubted while it is ahead', ' OR ahead_seconds IS NOT NULL\n', '\n'],
    [
      "clock: times are doubted by the reader's transaction",
      "moment timestamptz := clock_timestamp() + interval '2 seconds';",
      "moment timestamptz := now() - interval '1 millisecond';",
    ],
    ['clock: it is steady at once', " AND steady_since <= clock_timestamp() - interval '1 hour'", ''],
    [
      'clock: it is steady while nobody has looked',
      "high_water BETWEEN clock_timestamp() - interval '1 hour' AND",
      "high_water BETWEEN '-infinity' AND",
    ],
  ),
  ...faultsOf(
    'drizzle/0026_pause.sql',
    STORE,
    [
      'clock: sends stay in the future',
      'UPDATE catalog_internal.pace_sends SET sent_at = catalog_internal.happened(sent_at, moment, shift) WHERE sent_at > moment;',
      '',
    ],
    [
      "clock: others' requests are forgotten",
      '  PERFORM catalog_internal.recount_others(moment, shift);\n',
      '',
    ],
    [
      'clock: tasks wait as long as it was ahead',
      'SET next_at = catalog_internal.awaited(next_at, moment, shift),',
      'SET',
    ],
    [
      'clock: leases outlast their daemons',
      "THEN least(running_until, moment + interval '20 seconds') END",
      'THEN running_until END',
    ],
    [
      'clock: a back-off lasts as long as it was ahead',
      'backoff_until = catalog_internal.awaited(backoff_until, moment, shift)',
      'backoff_until = backoff_until',
    ],
    [
      'clock: ahead between two looks, nobody knows',
      '    (SELECT max(sent_at) FROM catalog_internal.pace_sends),\n',
      '',
    ],
    [
      'clock: a sync tells nothing of it',
      'SELECT greatest(manifest_applied_at, delta_checked_at, snapshot_moved_at, catalog_checked_at, token_at)',
      'SELECT manifest_applied_at',
    ],
  ),
  ...faultsOf(
    'src/queues/runner.ts',
    ['test/queues/schedules.test.ts', 'test/faults/queue-clocks.e2e.test.ts'],
    ['runner: what the queues do not bring is not done', 'if (quiet.length === 0) return;', 'return;'],
    [
      'runner: a schedule is there, whenever its jobs come',
      'if (!isInTime(Number(found?.next) - options.clock.now(), everyMs))',
      'if (false)',
    ],
    ['runner: a job in an hour comes in time', 'inMs <= 2 * everyMs && ', ''],
    ['runner: a job that was lost comes in time', ' && inMs >= -Math.max(LOST_AFTER_MS, 3 * everyMs)', ''],
  ),
  ...faultsOf('src/store/answer/lock.ts', STORE, [
    'answer: a claim of before a clock was set back is dated by it',
    'select least(${claim.askedAt}, clock_timestamp()) as at',
    'select ${claim.askedAt}::timestamptz as at',
  ]),
  ...faultsOf(
    'src/store/catalog/baseline-sql.ts',
    ['test/store/rebaseline.pg.test.ts'],
    [
      'baseline: by clock, not by claim',
      'l.asked_claim > $2::bigint',
      "(select s.asked_at from catalog.skus s where s.sku = m.sku) > now() - interval '1 minute'",
    ],
    [
      'baseline: what a cache may have had is newer than the snapshot',
      'm.asked_at >= $5::timestamptz',
      'm.asked_at is not null or m.asked_at >= $5::timestamptz',
    ],
    [
      'baseline: that caches have nothing spares nothing',
      '(select again_share from catalog_internal.beliefs) < 1 or ',
      '',
    ],
  ),
  ...faultsOf(
    'drizzle/0019_marks_of_a_wrong_clock.sql',
    STORE,
    ['clock: marks stay in the future', 'ELSE least(d.due_at, moment)', 'ELSE d.due_at'],
    [
      'clock: plans stay in the future',
      'WHEN a.misplanned THEN catalog_internal.awaited(d.due_at, moment, shift)',
      'WHEN a.misplanned THEN d.due_at',
    ],
    [
      'clock: every plan is made anew',
      ' + shift FROM catalog.skus s WHERE s.sku = d.sku)',
      " - interval '1 year' FROM catalog.skus s WHERE s.sku = d.sku)",
    ],
  ),
  ...faultsOf(
    'src/follow/delivery.ts',
    ['test/follow/delivery.test.ts'],
    [
      'followers: a wrong clock makes dead letters',
      '(aheadMs === null || status === TOO_LARGE)',
      '(aheadMs !== 0 || status === TOO_LARGE)',
    ],
    [
      'followers: a wrong clock keeps batches large',
      '(aheadMs === null || status === TOO_LARGE)',
      'aheadMs === null',
    ],
    ['followers: an answer of a cache tells the time', '+ sinceMs - sentAt', '- sentAt'],
    [
      'followers: a clock is wrong one way only',
      'Math.abs(aheadMs) > CLOCK_OFF_MS',
      'aheadMs > CLOCK_OFF_MS',
    ],
  ),
];
