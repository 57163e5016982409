import { type PaceReader, paceReader } from '../pace/view.ts';
import type { Clock } from '../lib/clock.ts';
import type { PaceLimits } from '../pace/policy.ts';
import { type QueueBackend, within } from '../queues/backend.ts';
import type { Runner } from '../queues/runner.ts';
import type { Sql, StoreFailure } from '../store/db.ts';
import { readPace } from '../pace/ledger.ts';
import { createCountsReader } from '../store/catalog-counts.ts';
import { type MirrorStats, readStats } from '../status/stats.ts';
import { readSyncState } from '../store/sync-state.ts';
import { readLivePlan } from '../store/live.ts';
import { callPause, readTasks } from '../store/tasks.ts';
import { failingTasks, type Reason } from '../status/health.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { HealthAnswer } from './http-server.ts';

export interface HealthParts {
  readonly sql: Sql;
  readonly backend: QueueBackend;
  readonly runner: Runner;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly limits: PaceLimits;
  readonly liveBudget: number;
  /** Why Postgres refuses to write, or null. */
  readonly storeFailure: () => StoreFailure | null;
  /** What speaks against the credential of this daemon alone, or null. */
  readonly circuitReason: () => string | null;
}

const ANSWER_WITHIN_MS = 3000;
/** Over a line that swallows everything a statement would wait for ever; scrapers give up after ten seconds. */
const STATS_WITHIN_MS = 8000;
/** With wake jobs every second, workers that ended no job for this long are dead, unless the store is. */
const DEAD_AFTER_MS = 300_000;

/** What a daemon knows of itself, for its health: nothing gets in while Postgres refuses to write. */
export function ownReasons(failure: StoreFailure | null, refused: string | null): Reason[] {
  return [
    ...(failure === null ? [] : [{ level: 'broken' as const, text: pausedText(failure) }]),
    ...(refused === null ? [] : [{ level: 'degraded' as const, text: refused }]),
  ];
}

const pausedText = (failure: StoreFailure) =>
  `Postgres rejects writes (${failure}); sync is paused and retries by itself`;

/** What `/metrics`, `/livez` and `/readyz` answer, and the statistics that they share. */
export function createHealth(parts: HealthParts): {
  stats: () => Promise<MirrorStats>;
  metrics: () => Promise<string>;
  live: () => HealthAnswer;
  ready: () => Promise<HealthAnswer>;
} {
  const { sql, backend, runner, clock, metrics, limits, liveBudget, storeFailure, circuitReason } = parts;
  const paceOf = paceReader(limits);
  const startedAt = clock.monotonic();
  let storeAnswers = true;
  const counts = createCountsReader(sql);
  const stats = () => readStats(sql, { windowMs: limits.windowMs, liveBudget, paceOf, counts });

  return {
    stats,
    async metrics() {
      metrics.setMirrorStats(await within(stats(), STATS_WITHIN_MS).catch(() => null), storeFailure());
      return await metrics.text();
    },
    live() {
      const idleMs = performance.now() - (runner.lastJobAt() ?? startedAt);
      return { ok: idleMs < DEAD_AFTER_MS || !storeAnswers, lastJobSecondsAgo: Math.round(idleMs / 1000) };
    },
    async ready() {
      const [queues, database] = await Promise.all([
        backend.ping(ANSWER_WITHIN_MS).then(
          () => null,
          (error: unknown) => backend.describe(error),
        ),
        within(databaseState(sql, paceOf, limits), ANSWER_WITHIN_MS).catch(() => null),
      ]);
      storeAnswers = queues === null;
      if (database === null) return { ok: false, reason: 'Postgres does not answer' };
      if (queues !== null) return { ok: false, reason: queues };
      const failure = storeFailure();
      const own = circuitReason();
      const degraded = [
        ...(failure === null ? [] : [pausedText(failure)]),
        ...database.degraded,
        ...(own === null ? [] : [own]),
      ];
      if (!database.baseline) return { ok: false, reason: 'no baseline yet', degraded };
      return { ok: true, degraded };
    },
  };
}

async function databaseState(
  sql: Sql,
  paceOf: PaceReader,
  limits: PaceLimits,
): Promise<{ baseline: boolean; degraded: string[] }> {
  const state = await readSyncState(sql);
  return {
    baseline: state.manifestAppliedAt !== null,
    degraded: await degradedReasons(sql, state, paceOf, limits),
  };
}

async function degradedReasons(
  sql: Sql,
  state: Awaited<ReturnType<typeof readSyncState>>,
  paceOf: PaceReader,
  limits: PaceLimits,
): Promise<string[]> {
  const pace = paceOf(await readPace(sql, limits.windowMs));
  const [{ failures }, plan, tasks] = await Promise.all([callPause(sql), readLivePlan(sql), readTasks(sql)]);
  return [
    ...(state.catalogState === 'stale' ? ['the catalog is stale; SKUs are refreshed by age'] : []),
    ...(plan.incident === null ? [] : ['incident: the whole catalog is live-priced, so prices get older']),
    ...(state.manifestRefused === null ? [] : [`the newest manifest was refused: ${state.manifestRefused}`]),
    ...(pace.refusal === null ? [] : [pace.refusal]),
    ...failingTasks(tasks, pace.refusal),
    ...(failures > 0 ? [`bulk calls are failing (${failures} in a row)`] : []),
  ];
}
