import type { Config } from '../config/config.ts';
import { isOutOfTime, within } from '../lib/clock.ts';
import { formatAge } from '../lib/duration.ts';
import type { CircuitBreaker } from '../pace/circuit-breaker.ts';
import { type PaceLimits, paceLimits } from '../pace/policy.ts';
import { paceReader } from '../pace/view.ts';
import type { QueueBackend } from '../queues/backend.ts';
import type { Runner } from '../queues/runner.ts';
import type { StorePause } from '../queues/store-pause.ts';
import { IncompleteMirror, readFacts, type ReadFacts } from '../status/facts.ts';
import {
  busyText,
  lockedText,
  type Health,
  judgeHealth,
  type OwnFacts,
  POSTGRES_AWAY,
  unreadyReason,
} from '../status/health.ts';
import { readStatus, type Status, type StatusSettings } from '../status/status.ts';
import type { StatementAtWork } from '../store/connection/at-work.ts';
import { type Sql, statementsAtWork, wayOf } from '../store/connection/db.ts';
import { isLockNotAvailable } from '../store/connection/locks.ts';
import { remedyOf } from '../store/connection/remedies.ts';
import {
  closedDatabase,
  isAnswer,
  isDatabaseMissing,
  isLoginRejected,
  isNotLetIn,
  isTableMissing,
  isUntrusted,
  notLetIn,
  sqlState,
} from '../store/connection/sql-errors.ts';
import { createCountsReader, storedCounts } from '../store/status/counts-reader.ts';
import { askLockHoldersAside, type LockHolder } from '../store/status/holders.ts';
import type { WrongClock } from '../sync/clocks.ts';
import type { SyncContext } from '../sync/context.ts';
import { type CountLines, countLines, type StatusLines, statusLines } from '../telemetry/log/store-lines.ts';
import type { ClockWatch } from './clock-watch.ts';
import type { HealthAnswer } from './http/routes.ts';
import { sharedInFlight } from './in-flight.ts';
import type { Parts } from './parts.ts';

/** What health is judged from: the mirror, and what only this daemon knows about itself. */
export type HealthParts = Pick<Parts, 'log' | 'metrics'> & {
  readonly config: Pick<Config, 'rate' | 'bulk'>;
  readonly sync: Pick<SyncContext, 'sql' | 'clock'>;
  readonly backend: Pick<QueueBackend, 'ping' | 'describe'>;
  readonly pause: Pick<StorePause, 'failure'>;
  readonly breaker: Pick<CircuitBreaker, 'explain'>;
  readonly clocks: Pick<ClockWatch, 'wrong' | 'notPutRight'>;
};

/** One reading of the mirror. `status` is null if Postgres does not answer, or if the catalog was never counted. */
interface HealthReading {
  readonly health: Health;
  /** Postgres's time, or this machine's if Postgres does not answer. */
  readonly now: Date;
  readonly status: Status | null;
}

export interface HealthReader {
  /** Reads the health, and the status that it was judged by. Never rejects. */
  read(): Promise<HealthReading>;
  metrics(): Promise<string>;
  live(): HealthAnswer;
  ready(): Promise<HealthAnswer>;
  /**
   * Finds out whether the queues answer, which `live` needs to know even if nobody asks for anything else. Never
   * rejects.
   */
  askQueues(): Promise<void>;
}

/** A connection that drops all packets would block a statement forever; an HTTP answer has five seconds. */
const ANSWER_WITHIN_MS = 3000;
/** When a statement is ended: nobody waits for it any longer, or hears its error. */
const END_AFTER_MS = ANSWER_WITHIN_MS + 500;
/**
 * The limit of a whole reading, below that of an answer, whose text still has to be made. Scrapes wait for ten
 * seconds.
 */
const READ_WITHIN_MS = 4500;
/** The least of that time which is left for the statistics. */
const STATISTICS_MIN_MS = 1000;
/** A count that takes longer continues in the background, and health is judged by the last one. */
const COUNT_WITHIN_MS = 1000;
/**
 * Workers are woken every second, so if no job has ended for this long they are dead, unless the store is. `at_work`
 * of trust_terms is the same time.
 */
export const DEAD_AFTER_MS = 300_000;

/**
 * Creates what answers `/metrics`, `/livez`, `/readyz` and the status page: all judge the same facts by the same
 * rules.
 */
export function createHealth(
  parts: HealthParts,
  runner: Pick<Runner, 'lastJobAt' | 'silentMs'>,
  atWork = () => statementsAtWork(parts.sync.sql),
): HealthReader {
  const { backend, metrics, pause, breaker, clocks, log } = parts;
  const { sql, clock } = parts.sync;
  const { liveBudget, maxSkus: bulkMaxSkus } = parts.config.bulk;
  const limits = paceLimits(parts.config);
  const settings: StatusSettings = { limits, bulkMaxSkus, liveBudget };
  const facts = factsReader(sql, limits, countLines(log, clock));
  const factsOf = sharedInFlight(facts, ANSWER_WITHIN_MS, () => clock.monotonic());
  const statusOf = statusReader(sql, settings, statusLines(log, clock));
  const startedAt = clock.monotonic();
  const askedAside = createAsideReader(sql);
  let queuesAnswer = true;

  /** Returns what is wrong with the queues; null if they answer. */
  async function queuesFailure(): Promise<string | null> {
    const failure = await backend.ping(ANSWER_WITHIN_MS).then(
      () => null,
      (error: unknown) => backend.describe(error),
    );
    queuesAnswer = failure === null;
    return failure;
  }

  async function judged(): Promise<{ read: ReadFacts | null; health: Health }> {
    let unreadable: string | null = null;
    const [queues, read] = await Promise.all([
      queuesFailure(),
      within(factsOf(), ANSWER_WITHIN_MS).catch(async (error: unknown) => {
        log.debug({ event: 'status.unread', err: error });
        unreadable = (await askedAside(error)) ?? unreadableText(error, sql, atWork());
        return null;
      }),
    ]);
    const own: OwnFacts = {
      unreadable,
      queues,
      storeFailure: pause.failure(),
      refused: breaker.explain(),
      ...clockFacts(clocks),
      silent: silentText(runner.silentMs()),
    };
    return { read, health: judgeHealth(read?.facts ?? null, own) };
  }

  async function read(): Promise<HealthReading> {
    const begunAt = clock.monotonic();
    const { read, health } = await judged();
    const leftMs = Math.max(STATISTICS_MIN_MS, READ_WITHIN_MS - (clock.monotonic() - begunAt));
    const status = read === null ? null : await statusOf(read, leftMs);
    return { health, status, now: read?.facts.now ?? new Date(clock.now()) };
  }

  return {
    read,
    async metrics() {
      const { health, status, now } = await read();
      const stats = status?.stats ?? null;
      metrics.setMirror({ health, stats, storeFailure: pause.failure(), now: now.getTime() });
      return await metrics.text();
    },
    live() {
      const idleMs = clock.monotonic() - (runner.lastJobAt() ?? startedAt);
      // Another process would start from the beginning what Postgres is working on.
      const ok = idleMs < DEAD_AFTER_MS || !queuesAnswer || atWork().length > 0;
      return { ok, lastJobSecondsAgo: Math.round(idleMs / 1000) };
    },
    async ready() {
      return readyAnswer((await judged()).health);
    },
    askQueues: async () => void (await queuesFailure()),
  };
}

/** Makes the answer of `/readyz`, with its code by `unreadyReason`; `degraded` are the texts worse than filling. */
export function readyAnswer(health: Health): HealthAnswer {
  const unready = unreadyReason(health);
  const degraded = health.reasons.filter((reason) => reason.level !== 'filling' && reason !== unready);
  return {
    ok: unready === null,
    ...(unready !== null && { reason: unready.text }),
    ...health,
    degraded: degraded.map(({ text }) => text),
  };
}

/** Returns how this daemon reads facts, with present counts if counting is quick, otherwise with the last ones. */
function factsReader(sql: Sql, limits: PaceLimits, lines: CountLines): () => Promise<ReadFacts> {
  const paceOf = paceReader(limits);
  const fresh = createCountsReader(sql, () => performance.now(), lines);
  const counts = () =>
    within(fresh(), COUNT_WITHIN_MS).catch(async () => (await storedCounts(sql))?.counts ?? null);
  return () => readFacts(sql, { windowMs: limits.windowMs, paceOf, counts, endAfterMs: END_AFTER_MS });
}

/** A part of what is left of an answer's time. */
const ASIDE_WITHIN_MS = 1000;

/**
 * Asks why facts came late or not at all, on a connection of its own, because those of the pool may all be waiting.
 * Somebody has locked what the facts are read from, or Postgres lets nobody in, which it reports once for each
 * connection that the pool tries, too late for a statement behind many others. Null if it is neither. Asks one
 * question at a time.
 */
function createAsideReader(sql: Sql): (cause: unknown) => Promise<string | null> {
  let asking: Promise<readonly LockHolder[]> | null = null;
  const ask = async () => {
    try {
      return await askLockHoldersAside(sql, 'all');
    } finally {
      asking = null;
    }
  };
  return async (cause) => {
    if (!isOutOfTime(cause) && !isLockNotAvailable(cause)) return null;
    asking ??= ask();
    try {
      const [holder] = await within(asking, ASIDE_WITHIN_MS);
      return holder === undefined ? null : lockedText(holder);
    } catch (error) {
      return remediedText(error, sql);
    }
  };
}

/** Returns how the statistics beside the facts are read: in time, or not at all, which is logged. */
function statusReader(
  sql: Sql,
  settings: StatusSettings,
  lines: StatusLines,
): (read: ReadFacts, withinMs: number) => Promise<Status | null> {
  return async (read, withinMs) => {
    const { counts } = read.facts;
    if (counts === null) return null;
    try {
      const status = await within(readStatus(sql, read, counts, settings), withinMs);
      lines.read();
      return status;
    } catch (error) {
      lines.unread(error);
      return null;
    }
  };
}

/**
 * Schedules are in seconds, and each of several daemons gets its part of the jobs: after this long without a job,
 * the queues deliver none.
 */
const SILENT_MS = 30_000;

function silentText(ms: number): string | null {
  if (ms < SILENT_MS) return null;
  return `the queues have brought no job for ${formatAge(ms / 1000)}; this daemon runs what is due by itself`;
}

const clockFacts = (clocks: HealthParts['clocks']) => ({
  clock: clockText(clocks.wrong()),
  notPutRight: clocks.notPutRight(),
});

/**
 * Describes a wrong clock, but not Postgres's, which every daemon shows from its own row, or the partner's, which
 * decides nothing and is only logged.
 */
function clockText(wrong: WrongClock | null): string | null {
  if (wrong === null || wrong.clock === 'postgres' || wrong.clock === 'partner') return null;
  const difference = formatAge(Math.abs(wrong.aheadMs) / 1000);
  const side = wrong.aheadMs > 0 ? 'ahead of' : 'behind';
  if (wrong.clock === 'unknown')
    return `the clocks of Postgres and of this host differ by ${difference}: one was set, or this machine has stood still`;
  return `the clock of this host is ${difference} ${side} the others`;
}
const loginRejected = (error: unknown): string =>
  `Postgres rejects the login (${sqlState(error) ?? ''}): check user and password in DATABASE_URL ` +
  'or the file of DATABASE_URL_FILE, which is read for each connection';

const DATABASE_MISSING =
  'Postgres answers (3D000), and does not have this database: correct its name in DATABASE_URL, or create it';

const tablesMissing = (error: unknown): string =>
  `tables of the mirror are not in this database (${sqlState(error) ?? ''}): restore a backup; where all are gone, ` +
  '`catalog-mirror migrate` makes them anew, and this daemon loads the catalog again';

const untrusted = (error: unknown): string =>
  `the certificate of Postgres is not trusted (${sqlState(error) ?? ''}): check sslmode and the file of sslrootcert in DATABASE_URL`;

/** Returns the text for an error of Postgres with a known remedy, or null. */
function remediedText(error: unknown, sql: Sql): string | null {
  if (isLoginRejected(error)) return loginRejected(error);
  if (isDatabaseMissing(error)) return DATABASE_MISSING;
  if (isTableMissing(error)) return tablesMissing(error);
  if (isUntrusted(error)) return untrusted(error);
  const way = wayOf(sql);
  const known = isNotLetIn(error) ? notLetIn(way.isClear) : (closedDatabase(error, way) ?? remedyOf(error));
  return known === null ? null : `${known.what} (${sqlState(error) ?? ''}): ${known.hint}`;
}

/** The page shows no driver messages: only the SQLSTATE of a refused statement, or that Postgres does not answer. */
function unreadableText(error: unknown, sql: Sql, atWork: readonly StatementAtWork[]): string {
  if (error instanceof IncompleteMirror) return error.message;
  const remedied = remediedText(error, sql);
  if (remedied !== null) return remedied;
  return isAnswer(error)
    ? `the mirror cannot be read: Postgres answers ${sqlState(error) ?? ''}; run \`catalog-mirror doctor\``
    : (busyText(atWork) ?? POSTGRES_AWAY);
}
