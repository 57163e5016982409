import { sql } from 'drizzle-orm';
import { bigint, boolean, check, doublePrecision, index, integer, jsonb, text } from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/* What daemons know of each other and share: tasks, pace, clock, locks. */

/** When each recurring task runs next and how its last run went. Queues only wake tasks; this decides. */
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

/**
 * How many of a task's failures were refusals, or for `reprice` rejections; no row: none. The excess over the failures
 * is from before the last success. Each kind waits by its own count. A table of its own, because sellers' transactions
 * read the task's row: a new column would wait for these.
 */
export const refusedTasks = internal.table('refused_tasks', {
  task: key().primaryKey(),
  refusals: integer().notNull(),
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
 * At most one row: the last pause that somebody asked for. It holds until `until` (infinity: for ever), unless
 * somebody has resumed.
 */
export const pause = internal.table(
  'pause',
  {
    id: boolean().primaryKey().default(true),
    since: instant('since').notNull(),
    /** When it was last asked for. Distinguishes a clock that was ahead from one that was not. */
    setAt: instant('set_at').notNull(),
    until: instant('until').notNull(),
    pausedBy: text('paused_by').notNull(),
    /** Who ended it; null if nobody did, so that it still holds or has ended by itself. */
    resumedBy: text('resumed_by'),
  },
  (t) => [check('pause_one_row', sql`${t.id}`)],
);

/** One row: what the daemons know of Postgres's clock, which all times of the mirror are by (sync/clocks.ts). */
export const clock = internal.table(
  'clock',
  {
    id: boolean().primaryKey().default(true),
    /**
     * The latest time seen, at most some seconds ago while a daemon runs. If the clock is before it, it was set
     * back.
     */
    highWater: instant('high_water')
      .notNull()
      .default(sql`clock_timestamp()`),
    /** Since when daemons have watched it without a break and none has seen it jump. */
    steadySince: instant('steady_since')
      .notNull()
      .default(sql`clock_timestamp()`),
    /** By how much it was set back; null once all times that were then in the future are corrected. */
    setBackSeconds: doublePrecision('set_back_seconds'),
    /**
     * By how much it is ahead of the clocks of the daemons' hosts and the partner (negative: behind); null if it is
     * not.
     */
    aheadSeconds: doublePrecision('ahead_seconds'),
  },
  (t) => [check('clock_one_row', sql`${t.id}`)],
);

/**
 * Empty tables: whoever locks one holds the lock of that name until its transaction ends. Advisory locks are open to
 * everybody who may connect; only the mirror's role can lock these.
 */
export const lockPace = internal.table('lock_pace', {});
export const lockChanges = internal.table('lock_changes', {});
export const lockNewSkus = internal.table('lock_new_skus', {});
export const lockCounts = internal.table('lock_counts', {});
export const lockSchedules = internal.table('lock_schedules', {});

/** The daemons that run, or died while running: the session that each keeps open (src/store/setup/instance.ts). */
export const instances = internal.table('instances', {
  number: bigint({ mode: 'bigint' }).primaryKey(),
  pid: integer().notNull(),
  backendStart: instant('backend_start').notNull(),
  /** Whether its MIRROR_SCOPE is `scope`; null for a daemon of an older version. */
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

/**
 * What the status showed, one row per minute of Postgres's clock, kept for a day for the charts of the status page.
 * In a minute without a row no daemon could read the mirror (store/status/samples.ts).
 */
export const samples = internal.table('samples', {
  minute: instant('minute').primaryKey(),
  state: text().notNull(),
  backingOff: boolean('backing_off').notNull(),
  incident: boolean().notNull(),
  /** Requests in the preceding window: the mirror's, those of the account's other users, and how many were allowed. */
  requests: integer().notNull(),
  otherRequests: integer('other_requests').notNull(),
  ceiling: doublePrecision().notNull(),
  requestLimit: integer('request_limit').notNull(),
  /** From here on: null if the catalog was not counted at about that time. */
  skus: integer(),
  pending: integer(),
  due: integer(),
  snapshotPriced: integer('snapshot_priced'),
  snapshotFresh: integer('snapshot_fresh'),
  snapshotP50: doublePrecision('snapshot_p50'),
  snapshotP95: doublePrecision('snapshot_p95'),
  livePriced: integer('live_priced'),
  liveFresh: integer('live_fresh'),
  liveP50: doublePrecision('live_p50'),
  liveP95: doublePrecision('live_p95'),
  /** Per minute since the previous row; null if that is too old to tell. */
  priceChanges: doublePrecision('price_changes'),
  /** The newest row of catalog.price_history at that time. */
  pricePosition: bigint('price_position', { mode: 'bigint' }).notNull(),
});

/* What distinguishes this database, and what is mirrored in it, from others. */

/**
 * One row: the identity of this database when history was last written, as far as it can be determined
 * (present_lineage).
 */
export const lineage = internal.table(
  'lineage',
  {
    id: boolean().primaryKey().default(true),
    /** The cluster's identifier, drawn by initdb. */
    system: text(),
    /** The database's number within it. */
    database: text(),
    /** Counts promotions of standbys and recoveries to a point in time. */
    timeline: text(),
    /** When its server was started, in seconds. */
    started: text(),
  },
  (t) => [check('lineage_one_row', sql`${t.id}`)],
);

/** Positions that only another database has given out, between `forked_at` and `resumed_at`. */
export const positionGaps = internal.table('position_gaps', {
  forkedAt: bigint('forked_at', { mode: 'bigint' }).primaryKey(),
  resumedAt: bigint('resumed_at', { mode: 'bigint' }).notNull(),
  at: instant('at').notNull().defaultNow(),
});

/** From which id on positions are greater than ids, and by how much: past all gaps. Without a row they are equal. */
export const positionShifts = internal.table('position_shifts', {
  firstId: bigint('first_id', { mode: 'bigint' }).primaryKey(),
  shift: bigint({ mode: 'bigint' }).notNull(),
});

/** One row: whose catalog is mirrored here. All null before the first start. */
export const account = internal.table(
  'account',
  {
    id: boolean().primaryKey().default(true),
    /** Origin and path of PARTNER_BASE_URL. */
    baseUrl: text('base_url'),
    /** The api_key, as a salted hash only, and since when it has been in use. */
    salt: text(),
    keyHash: text('key_hash'),
    keySince: instant('key_since'),
    /** Whether the first api_key was replaced by another. */
    keyReplaced: boolean('key_replaced').notNull().default(false),
  },
  (t) => [check('account_one_row', sql`${t.id}`)],
);
