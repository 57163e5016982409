import type { Config } from '../config/config.ts';
import type { Tracer } from '../lib/tracer.ts';
import { createPacer } from '../pace/pacer.ts';
import { type PaceLimits, sendsPerMinute } from '../pace/policy.ts';
import { createPartnerClient, type PartnerClient } from '../partner/client.ts';
import { AUTH_CLASS } from '../partner/errors.ts';
import type { Handler } from '../queues/runner.ts';
import { runTask } from '../queues/task-run.ts';
import { createObservers } from '../store/answer/observers.ts';
import type { Sql } from '../store/connection/db.ts';
import { DueFloors } from '../store/ledger/due-floors.ts';
import type { RunTask, TaskEnd, TaskName, TaskRun } from '../store/ledger/tasks.ts';
import { checkCatalog } from '../sync/catalog-check.ts';
import type { SyncContext, StopSignals } from '../sync/context.ts';
import { syncDelta } from '../sync/delta.ts';
import { planLive } from '../sync/live/plan-live.ts';
import { type Retention, maintain, newMemory, syncMetadata } from '../sync/maintenance.ts';
import { syncManifest } from '../sync/manifest.ts';
import type { TaskOutcome } from '../sync/outcome.ts';
import { RecentAnswers } from '../sync/reprice/recent.ts';
import { repriceSlices } from '../sync/reprice/slice.ts';
import { tracedTask } from '../sync/traces.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { VERSION } from '../version.ts';
import { followKey, type OnStop } from './database.ts';
import type { Parts } from './parts.ts';

/** What was opened before sync; `onStop` registers what closes sync. */
interface Opened {
  readonly sql: Sql;
  readonly databaseUrl: () => string;
  readonly limits: PaceLimits;
  readonly tracer: Tracer;
  readonly onStop: OnStop;
}

/** Creates what sync works with in this process: the client, the pace of its requests, and its counters. */
export function createSync(
  parts: Omit<Parts, 'sync'>,
  { sql, databaseUrl, limits, tracer, onStop }: Opened,
): SyncContext {
  const { config, clock, log, telemetry, breaker } = parts;
  const rereadCredential = credentialReader(config, log, (isOtherKey) => {
    breaker.cleared();
    // A refusal ends the process (own-mirror.ts). If Postgres does not answer, the next start reports the key.
    if (isOtherKey) void followKey(config, sql, log).catch(() => {});
  });
  const client = openClient(parts, rereadCredential);
  onStop(() => client.close());
  return {
    sql,
    databaseUrl,
    client,
    pacer: createPacer(sql, clock, limits, { ...telemetry.pace, afterRefusal: rereadCredential }, breaker),
    clock,
    random: Math.random,
    settings: { ...config, callsPerMinute: sendsPerMinute(limits) },
    emit: telemetry.onSync,
    observers: createObservers(clock),
    floors: new DueFloors(clock),
    recent: new RecentAnswers(),
    tracer,
  };
}

/**
 * Picks up a rotated credential from its files (partner rule 5.4). They are read after an answer of the auth class,
 * and again before the next request: a file may be written between the two, or may have been read half written.
 */
function credentialReader(
  { partner }: Config,
  log: Log,
  onChange: (isOtherKey: boolean) => void,
): () => void {
  return () => {
    const isOtherKey = partner.apiKey.refresh();
    const isOtherSecret = partner.secret.refresh();
    if (!isOtherKey && !isOtherSecret) return;
    log.info({ event: 'credential.changed' });
    onChange(isOtherKey);
  };
}

/**
 * Creates the client for the configured partner. It uses what is known about undocumented names, and an answer of
 * the auth class makes it read the credential again.
 */
function openClient(
  { config, clock, clocks, names, telemetry }: Omit<Parts, 'sync'>,
  rereadCredential: () => void,
): PartnerClient {
  const { partner } = config;
  return createPartnerClient({
    baseUrl: new URL(partner.baseUrl),
    credentials: () => ({ apiKey: partner.apiKey.read(), secret: partner.secret.read() }),
    timeoutMs: partner.timeoutMs,
    bodyKey: partner.fields.bulkBodyKey,
    priceFields: partner.fields.price,
    skuField: partner.fields.sku,
    manifestUrlField: partner.fields.manifestUrl ?? undefined,
    snapshotIdField: partner.fields.snapshotId ?? undefined,
    allowInsecure: partner.allowInsecure,
    proxy: partner.proxy,
    userAgent: `catalog-mirror/${VERSION}`,
    clock,
    formKeeper: names.formKeeper,
    knownFields: names.knownFields,
    onForm: ({ kind, field, instead }) =>
      telemetry.onSync({
        event: kind === 'missing' ? 'price-form.missing' : 'price-form.let-go',
        field,
        instead,
      }),
    observe(observation) {
      telemetry.onRequest(observation);
      const { date, outcome } = observation;
      if (date !== null) clocks.partnerAnswered(date);
      if (outcome !== 'ok' && AUTH_CLASS.has(outcome)) rereadCredential();
    },
  });
}

export interface JobControl extends StopSignals {
  readonly wake: (task: TaskName) => Promise<void>;
}

/**
 * Returns what each job does: it runs its task if that is due, wakes what follows from it, and rests while Postgres
 * takes no writes. A job whose task is not due ends as `not-due`.
 */
export function handlersOf(
  {
    config,
    sync,
    telemetry,
    pause,
  }: Pick<Parts, 'config' | 'sync' | 'pause'> & {
    readonly telemetry: Pick<Telemetry, 'onTask'>;
  },
  { stopping, hard, wake }: JobControl,
): Readonly<Record<TaskName, Handler>> {
  const runner = { sql: sync.sql, clock: sync.clock, signal: stopping, report: telemetry.onTask };
  const slice = repriceSlices(sync, config.partner.timeoutMs);
  const retention: Retention = {
    windowMs: config.rate.windowMs,
    historyMs: config.history.retentionMs,
    dailyMs: config.history.dailyRetentionMs,
  };
  const memory = newMemory();

  async function task(
    name: RunTask,
    work: (run: TaskRun) => Promise<TaskOutcome>,
  ): Promise<TaskEnd | 'not-due'> {
    const outcome = await runTask(runner, name, (run) => tracedTask(sync, name, () => work(run)));
    return outcome?.kind ?? 'not-due';
  }

  const jobs: Readonly<Record<TaskName, Handler>> = {
    async manifest() {
      const ended = await task('manifest', (run) => syncManifest(sync, run, stopping));
      if (ended === 'done') await wake('delta');
      return ended;
    },
    'catalog-check': () => task('catalog-check', (run) => checkCatalog(sync, run, stopping)),
    async delta() {
      const ended = await task('delta', (run) => syncDelta(sync, run, hard));
      if (ended === 'postponed') await wake('manifest');
      return ended;
    },
    async reprice() {
      return (await slice(stopping, hard)).end;
    },
    metadata: () => task('metadata', () => syncMetadata(sync)),
    maintenance: () => task('maintenance', () => maintain(sync, retention, memory)),
    'live-plan': () => task('live-plan', () => planLive(sync)),
  };
  const paused = Object.entries(jobs).map(([job, work]) => [job, () => pause.guard(job, work, 'enough')]);
  return Object.fromEntries(paused) as typeof jobs;
}
