import { faultsOf, type Mutant } from './mutant.ts';

const STORE = ['test/store/clock.pg.test.ts', 'test/store/clock-model.pg.test.ts'];

/** Faults that make the mirror follow a wrong clock, or wait for one that nobody sets. */
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
    ['clocks: who has jumped is forgotten', 'suspect: isOpen ? told(suspect, wrong) : null', 'suspect: null'],
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
      "if (suspect === 'postgres' || suspect === 'host') return suspect",
      "if (partner === null && (suspect === 'postgres' || suspect === 'host')) return suspect",
    ],
    [
      'clocks: of a sleep the partner knew',
      'jump !== null && mayHaveStoodStill(jump) ? null : now.partner',
      'now.partner',
    ],
    [
      'clocks: any step of a clock takes the word of the partner away',
      'jump !== null && mayHaveStoodStill(jump) ?',
      'jump !== null ?',
    ],
    [
      'clocks: a step explains a difference of before',
      '!mayHaveStoodStill(jump) && differ(sample',
      'false && differ(sample',
    ],
    [
      'clocks: a machine that stood still has its Postgres blamed',
      "clock === 'postgres' && ms > 0 ? 'ahead' : clock",
      'clock',
    ],
    [
      'clocks: what the partner has told of a jump is forgotten with its answer',
      'return isTold ? wrong.clock : suspect;',
      'return suspect;',
    ],
    [
      'clocks: a partner that is off tells nothing of a jump',
      "const wasOff = suspect === 'ahead' &&",
      "const wasOff = suspect === 'both' &&",
    ],
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
      'case when ${steady} then c.steady_since',
      'case when true then c.steady_since',
    ],
    ['clock: it is never done', 'nullif(greatest(set_back_seconds - ${seconds}, 0), 0)', 'set_back_seconds'],
    [
      'clock: history stays in the future',
      ', catalog_internal.redate_history(make_interval(secs => ${seconds}))`',
      '`',
    ],
  ),
  ...faultsOf(
    'src/daemon/clock-watch.ts',
    ['test/daemon/clock-watch.pg.test.ts'],
    [
      'clock: what the partner said before a machine stood still is believed after it',
      'if (jump !== null && mayHaveStoodStill(jump)) partner = null;',
      "if (jump?.clock === 'both') partner = null;",
    ],
    ['clock: runs from cron never know it', 'await takeBackUnsteady(sql, unwatched);', ''],
    [
      'clock: runs from cron know it before the partner has answered',
      ' || sample.partner === null) return;',
      ') return;',
    ],
    [
      'clock: runs from cron know it though the partner differs',
      'if (unwatched === null || wrong !== null ||',
      'if (unwatched === null ||',
    ],
    ['clock: what is refused is tried at each reading', 'if (failures > 0 && from < againAt) return;', ''],
    ['clock: what is refused is told no more', '[failures, refused] = [0, null];\n        const', 'const'],
  ),
  ...faultsOf(
    'src/store/status/counts-reader.ts',
    ['test/store/clock.pg.test.ts', 'test/store/catalog-counts.pg.test.ts'],
    [
      'counts: those of a clock ahead are dated by it',
      'least(${countedAt}, clock_timestamp())',
      '${countedAt}',
    ],
    ['counts: none takes the place of one to come', ' or f.counted_at > clock_timestamp()`', '`'],
    ['counts: those of a time to come are shown', "if (last.ageMs < -TO_COME_MS) return 'count';", ''],
  ),
  ...faultsOf(
    'src/store/status/counts.ts',
    ['test/store/clock.pg.test.ts'],
    ['counts: a sleep makes a count one of days', 'Math.min(ended.ms, monotonic() - begunAt)', 'ended.ms'],
  ),
  ...faultsOf(
    'src/sync/manifest.ts',
    ['test/sync/build-times.pg.test.ts'],
    [
      'manifest: a build time is yet to come by the clock of the host',
      '(await databaseNow(ctx.sql)).getTime() + CLOCK_SKEW_MS',
      'ctx.clock.now() + CLOCK_SKEW_MS',
    ],
  ),
  ...faultsOf(
    'src/sync/maintenance.ts',
    ['test/sync/maintenance.pg.test.ts'],
    [
      'maintenance: a run from cron ends before retention is asked for again',
      'return isNew === true ? CLOCK_KNOWN_MS : MAINTENANCE_EVERY_MS;',
      'return MAINTENANCE_EVERY_MS;',
    ],
  ),
  ...faultsOf(
    'src/store/setup/instance.ts',
    ['test/store/clock.pg.test.ts'],
    [
      'instance: daemons that connected under a clock ahead never stall',
      ' filter (where i.backend_start <= clock_timestamp())',
      '',
    ],
  ),
  ...faultsOf(
    'src/cli/run.ts',
    ['test/store/clock.pg.test.ts'],
    ['once: a run that began under a clock ahead never ends', 'if (at < since) since = at;', ''],
  ),
  ...faultsOf(
    'drizzle/0079_clocks.sql',
    ['test/store/clock-model.pg.test.ts'],
    [
      'clock: prices lag behind reports since a time to come',
      'SET late_since = catalog_internal.happened(late_since, moment, shift)',
      'SET late_since = late_since',
    ],
    [
      'clock: a snapshot is named in a time to come',
      "'seen', catalog_internal.happened((n ->> 'seen')::timestamptz, moment, shift)",
      "'seen', (n ->> 'seen')::timestamptz",
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
];
