import { sql } from 'drizzle-orm';
import { bigint, boolean, check, doublePrecision, index, integer, jsonb, text } from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/* What the daemons know of one another and share: tasks, pace, clock, locks. */

/** When each recurring task runs next and how it went last. The queues only wake; this decides. */
export const tasks = internal.table('tasks', {
  task: key().primaryKey(),
  nextAt: instant('next_at').notNull().defaultNow(),
  run: bigint({ mode: 'bigint' }),
  runningUntil: instant('running_until'),
  startedAt: instant('started_at'),
  finishedAt: instant('finished_at'),
  succeededAt: instant('succeeded_at'),
  failures: integer().notNull().default(0),
  outcome: text(),
  progress: jsonb(),
});

/** One row: the pace of the account, shared by all replicas. */
export const pace = internal.table(
  'pace',
  {
    id: boolean().primaryKey().default(true),
    ceiling: doublePrecision().notNull(),
    raisedAt: instant('raised_at').notNull(),
    backoffUntil: instant('backoff_until'),
    halfOpenSentAt: instant('half_open_sent_at'),
    episodes: integer().notNull().default(0),
    refusal: text(),
    refusedSince: instant('refused_since'),
    refusedAt: instant('refused_at'),
    occupancy: integer(),
    resumeAt: doublePrecision('resume_at'),
  },
  (t) => [check('pace_one_row', sql`${t.id}`)],
);

/**
 * At most one row: the last pause that somebody asked for. It holds while `until` is to come (infinity: for ever) and
 * nobody has resumed.
 */
export const pause = internal.table(
  'pause',
  {
    id: boolean().primaryKey().default(true),
    since: instant('since').notNull(),
    /** When it was last asked for: by it a clock that was ahead is told from one that was not. */
    setAt: instant('set_at').notNull(),
    until: instant('until').notNull(),
    pausedBy: text('paused_by').notNull(),
    /** Who ended it; null: nobody, so it holds or has ended by itself. */
    resumedBy: text('resumed_by'),
  },
  (t) => [check('pause_one_row', sql`${t.id}`)],
);

/** One row: what the daemons know of Postgres's clock, by which all times of the mirror are (sync/clocks.ts). */
export const clock = internal.table(
  'clock',
  {
    id: boolean().primaryKey().default(true),
    /**
     * The latest time it was seen at, at most some seconds ago while a daemon runs. Before it: the clock was set back.
     */
    highWater: instant('high_water')
      .notNull()
      .default(sql`clock_timestamp()`),
    /** Since when no daemon has seen it jump, and one has always looked. */
    steadySince: instant('steady_since')
      .notNull()
      .default(sql`clock_timestamp()`),
    /** By so much it was set back; null once all times that were in the future then are put right. */
    setBackSeconds: doublePrecision('set_back_seconds'),
    /**
     * By so much it is ahead of the clocks of the daemons' hosts and the partner (negative: behind); null while it is
     * not.
     */
    aheadSeconds: doublePrecision('ahead_seconds'),
  },
  (t) => [check('clock_one_row', sql`${t.id}`)],
);

/**
 * Tables without anything in them: who locks one of them has the lock of that name until its transaction ends.
 * Advisory locks are everybody's who may connect; these are locked by nobody but the mirror's role.
 */
export const lockPace = internal.table('lock_pace', {});
export const lockChanges = internal.table('lock_changes', {});
export const lockNewSkus = internal.table('lock_new_skus', {});
export const lockCounts = internal.table('lock_counts', {});
export const lockSchedules = internal.table('lock_schedules', {});

/** The daemons that run, or did when they died: the session that each keeps open (src/store/setup/instance.ts). */
export const instances = internal.table('instances', {
  number: bigint({ mode: 'bigint' }).primaryKey(),
  pid: integer().notNull(),
  backendStart: instant('backend_start').notNull(),
  /** Whether its MIRROR_SCOPE is `scope`; null: a daemon of an older version. */
  scoped: boolean(),
});

/** The sliding log of requests sent with the api_key. */
export const paceSends = internal.table(
  'pace_sends',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    sentAt: instant('sent_at').notNull(),
    lane: text().notNull(),
    /** Sent by another user of the account, through catalog.take_request. */
    otherUser: boolean('other_user').notNull().default(false),
  },
  (t) => [index('pace_sends_sent_at').on(t.sentAt)],
);
