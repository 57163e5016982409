import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPartnerClient } from '../../src/partner/client.ts';
import { runTask, type TaskReport } from '../../src/queues/task-run.ts';
import { createObservers } from '../../src/store/answer/observers.ts';
import { connect } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { syncDelta } from '../../src/sync/delta.ts';
import { syncManifest } from '../../src/sync/manifest.ts';
import type { TaskOutcome } from '../../src/sync/outcome.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { settingsWith } from '../support/settings.ts';
import { UNPACED } from '../support/unpaced.ts';

/*
 * The real sync in a process of its own, so that its memory can be told from that of the tests and the upstream.
 * Each message names a piece of work. The reply says how it ended, contains the counters, and the peak memory of
 * the process.
 */

/** What the tests can request. */
export type Work = 'manifest' | 'delta' | 'bulk';

/** How a piece of work ended. `counters` count since the start; `peakMiB` is the process's peak resident size. */
export interface Ended {
  readonly kind: string;
  readonly because: string | null;
  readonly error: string | null;
  readonly counters: Readonly<Record<string, number>>;
  readonly peakMiB: number;
}

const MINUTE = 60_000;
const DAY = 86_400_000;
const [databaseUrl = '', baseUrl = ''] = process.argv.slice(2);
const sql = connect(databaseUrl, { max: 4 });
const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent, fatal: silent };
const metrics = createMetrics({ version: 'test' });
const telemetry = createTelemetry({
  log,
  metrics,
  clock: systemClock,
  backlog: () => Promise.resolve({ skus: 0, unfetched: 0 }),
  queuesInPostgres: true,
});
const never = new AbortController().signal;

const ctx: SyncContext = {
  sql,
  databaseUrl: () => databaseUrl,
  client: createPartnerClient({
    baseUrl: new URL(baseUrl),
    credentials: () => ({ apiKey: 'key', secret: 'secret' }),
    // On a busy machine a bomb takes long to be measured.
    timeoutMs: 60_000,
    bodyKey: 'skus',
    priceFields: ['price'],
    skuField: 'sku',
    allowInsecure: false,
    userAgent: 'test',
    clock: systemClock,
    observe: telemetry.onRequest,
  }),
  pacer: UNPACED,
  clock: systemClock,
  random: () => 0.5,
  observers: createObservers(systemClock),
  floors: new DueFloors(systemClock),
  recent: new RecentAnswers(),
  tracer: NO_TRACER,
  emit: telemetry.onSync,
  settings: settingsWith({
    PARTNER_BASE_URL: baseUrl,
    PARTNER_DOWNLOAD_TIMEOUT: '30s',
    LIVE_POLICY: 'round-robin',
    SWEEP_MIN_AGE: '1d',
  }),
};

/** Returns the metrics' counters. The values of their labels follow their name, as in `syncs_total delta ok`. */
async function counters(): Promise<Record<string, number>> {
  const all =
    /^catalog_mirror_((?:syncs|partner_requests|manifest_rejected_lines|bulk_skus|bulk_unaccounted_skus)_total)(?:\{(.*)\})? (\d+)$/gm;
  return Object.fromEntries(
    [...(await metrics.text()).matchAll(all)].map(([, name = '', labels = '', value]) => [
      [name, ...[...labels.matchAll(/"([^"]*)"/g)].map(([, label]) => label)].join(' '),
      Number(value),
    ]),
  );
}

/** Returns what was thrown as text, or null if nothing was. */
function thrownText(error: unknown): string | null {
  if (error === undefined) return null;
  return error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error);
}

async function task(name: 'manifest' | 'delta'): Promise<Pick<Ended, 'kind' | 'because' | 'error'>> {
  let error: unknown;
  const report = (ended: TaskReport) => {
    ({ error } = ended);
    telemetry.onTask(ended);
  };
  await sql`update catalog_internal.tasks set next_at = now() - interval '1 second', failures = 0 where task = ${name}`;
  const outcome: TaskOutcome | null = await runTask(
    { sql, clock: systemClock, signal: never, report },
    name,
    (run) => (name === 'manifest' ? syncManifest(ctx, run) : syncDelta(ctx, run)),
  );
  const because = outcome === null || outcome.kind === 'done' ? null : outcome.because;
  return { kind: outcome?.kind ?? 'not run', because, error: thrownText(error) };
}

async function bulk(): Promise<Pick<Ended, 'kind' | 'because' | 'error'>> {
  const signals = { stopping: never, hard: never };
  try {
    const iteration = await repriceOnce(ctx, { sinceLastCallMs: DAY }, MINUTE, signals);
    return {
      kind: iteration.kind,
      because: iteration.kind === 'wait' ? iteration.because : null,
      error: null,
    };
  } catch (error) {
    return { kind: 'thrown', because: 'fault', error: thrownText(error) };
  }
}

process.on('message', (work: Work) => {
  void (async () => {
    const ended = await (work === 'bulk' ? bulk() : task(work));
    const peakMiB = process.resourceUsage().maxRSS / 1024;
    process.send?.({ ...ended, counters: await counters(), peakMiB } satisfies Ended);
  })();
});
process.on('disconnect', () => process.exit(0));
