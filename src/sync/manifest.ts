import { failpoint } from '../lib/failpoint.ts';
import type { SentPermit } from '../pace/permit.ts';
import type { ManifestMeta } from '../partner/answers.ts';
import { PartnerError, type RequestOutcome } from '../partner/errors.ts';
import { readManifestFile } from '../partner/manifest-file.ts';
import { type BaselineApplied, BaselineSuperseded } from '../store/catalog/baseline-merge.ts';
import { Baseline } from '../store/catalog/baseline.ts';
import { readManifestSources } from '../store/catalog/manifest-hints.ts';
import {
  databaseNow,
  noteManifestRefused,
  noteSnapshotSeen,
  readSyncState,
  type SyncState,
} from '../store/catalog/sync-state.ts';
import { noteCatalogFault } from '../store/catalog/tokens.ts';
import { requestTask, showProgress, type TaskRun } from '../store/ledger/tasks.ts';
import { quarantine } from '../store/quarantine.ts';
import { ask, type Asked, type FailedRequest } from './ask.ts';
import type { SyncContext } from './context.ts';
import { heapKeeper } from './heap.ts';
import { mostByManifest } from './live/hints.ts';
import { weighCounts } from './live/weigh-incident.ts';
import {
  judgeDownload,
  judgeOffer,
  keptFromBefore,
  type KeptFile,
  liveCountDiffers,
  type ManifestRefusal,
  REFUSAL_HINTS,
  refusedDownload,
  refusedOffer,
} from './manifest-decision.ts';
import {
  type Failure,
  failedAfter,
  failureOf,
  otherThanRefused,
  postponedBy,
  type TaskOutcome,
  retryAfter,
} from './outcome.ts';

const PROGRESS_EVERY_MS = 3000;
/** How many presigned URLs a run asks for, if they stop working early (partner rule 4.2.9). */
const URL_TRIES = 3;
const SAMPLES_KEPT = 20;
const SUPERSEDED_AGAIN_MS = 600_000;
/**
 * How far generated_at may be ahead of Postgres's clock and still be believed. For that long, snapshots with the
 * right time would look older than this one, and their manifests would be refused.
 */
const CLOCK_SKEW_MS = 3_600_000;

/**
 * Why a baseline was applied: it is the first one, the delta chain is broken, the delta does not lead to the
 * newest snapshot, the mirror differs from its snapshot, `refresh --manifest`, or the interval was over.
 */
export const REBASELINE_CAUSES = [
  'fill',
  'chain-broken',
  'delta-behind',
  'catalog-differs',
  'asked',
  'schedule',
] as const;

/** A run that has been offered a manifest. */
interface ManifestRun {
  readonly ctx: SyncContext;
  readonly run: TaskRun;
  readonly meta: ManifestMeta;
}

interface Downloaded {
  lines: number;
  rejected: number;
  readonly reasons: Record<string, number>;
  kept: KeptFile | null;
}

/**
 * Applies one baseline: asks for the manifest, downloads and stages its lines, and merges them with the snapshot's
 * token in one transaction; or refuses it and leaves the mirror unchanged.
 */
export async function syncManifest(
  ctx: SyncContext,
  run: TaskRun,
  signal?: AbortSignal,
): Promise<TaskOutcome> {
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await baselineOnce(ctx, run, signal);
    if (!(outcome instanceof PartnerError)) return outcome;
    if (attempt >= URL_TRIES)
      return failed(ctx, run, {
        ...failureOf(outcome),
        hint: 'the presigned URL keeps failing: ask the partner',
      });
  }
}

async function baselineOnce(
  ctx: SyncContext,
  run: TaskRun,
  signal?: AbortSignal,
): Promise<TaskOutcome | PartnerError> {
  const baseline = await Baseline.open(ctx.databaseUrl, ctx.sql);
  try {
    const moment = await baseline.moment();
    const asked = await askManifest(ctx, run, signal);
    if (asked.kind === 'wait') return postponedBy(asked, run);
    if (asked.kind === 'error') return await catalogFailed(ctx, run, asked);
    const meta = asked.value;
    const seen = await noteSnapshotSeen(ctx.sql, meta);
    failpoint('manifest.answered');
    const state = await readSyncState(ctx.sql);
    const offerRefused = judgeOffer(meta, state);
    if (offerRefused !== null)
      return await refused(ctx, run, offerRefused, refusedOffer(offerRefused, meta, state));

    const downloaded = await timedDownload({ ctx, run, meta }, baseline, signal);
    const staged = await baseline.count();
    failpoint('manifest.staged');
    const read = { ...downloaded, ...staged, livePricedSkuCount: meta.livePricedSkuCount };
    const judged = {
      ...read,
      skuCount: meta.skuCount,
      failures: otherThanRefused(run),
      lastRefusal: state.manifestRefused,
      shrinkConfirmed: state.shrinkConfirmed,
      minShare: ctx.settings.catalog.manifestMinShare,
    };
    const downloadRefused = judgeDownload(judged);
    if (downloadRefused !== null)
      return await refused(ctx, run, downloadRefused, refusedDownload(downloadRefused, judged));
    warnOfFile(ctx, read);
    const records = await readManifestSources(ctx.sql);
    const counts = countsOf(downloaded, staged, meta);
    const applied = await baseline.merge({
      snapshotId: meta.snapshotId,
      generatedAt: meta.generatedAt,
      ...seen,
      requestedAt: moment.at,
      tokenAtRequest: moment.token,
      ...counts,
      livePricedSkuCount: meta.livePricedSkuCount,
      readBy: meta.readBy,
      hinting: records && {
        most: (lines) => mostByManifest(records, lines),
        seed: Math.floor(ctx.random() * 2 ** 31),
      },
    });
    failpoint('manifest.committed');
    await weighCounts(ctx, meta, { miscount: counts.liveMiscount, ofFile: true });
    // Fetches at once what the catalog has reported since the snapshot was built.
    await requestTask(ctx.sql, 'delta');
    await requestTask(ctx.sql, 'live-plan');
    const because = causeOf(state, moment.at, ctx.settings);
    return done({ ctx, meta }, because, { ...downloaded, ...staged, applied });
  } catch (error) {
    if (error instanceof PartnerError) {
      if (error.kind === 'url-expired') return error;
      return failed(ctx, run, failureOf(error));
    }
    if (error instanceof BaselineSuperseded) return superseded(ctx, error);
    throw error;
  } finally {
    await baseline.close();
  }
}

/** Retries soon instead of after a whole interval, because the chain may have broken during the run. */
const superseded = ({ settings }: SyncContext, { kind }: BaselineSuperseded): TaskOutcome => ({
  kind: 'postponed',
  nextInMs: Math.min(settings.intervals.manifestMs, SUPERSEDED_AGAIN_MS),
  because: kind,
});

/** Asks for the metadata of the newest snapshot, and treats a build time in the future as unknown. */
export async function askManifest(
  ctx: SyncContext,
  { failures }: TaskRun,
  signal?: AbortSignal,
): Promise<Asked<ManifestMeta>> {
  const send = (permit: SentPermit) => ctx.client.manifest(permit, signal);
  const asked = await ask(ctx, 'manifest', send, failures, signal);
  if (asked.kind !== 'answer') return asked;
  // A future time says nothing about the snapshot's age, and would make every later snapshot look older.
  const { generatedAt } = asked.value;
  if (generatedAt === null) return asked;
  const latest = (await databaseNow(ctx.sql)).getTime() + CLOCK_SKEW_MS;
  return generatedAt.getTime() > latest ? { ...asked, value: { ...asked.value, generatedAt: null } } : asked;
}

/** Returns the counts with which later manifest responses are compared. */
const countsOf = (
  { lines }: Downloaded,
  { skus, live }: { readonly skus: number; readonly live: number },
  { livePricedSkuCount: announced }: ManifestMeta,
) => ({ lines, unclear: lines - skus, liveMiscount: announced === null ? 0 : announced - live });

function done(
  { ctx, meta }: Omit<ManifestRun, 'run'>,
  because: RebaselineCause,
  { lines, rejected, duplicates, applied }: Downloaded & { duplicates: number; applied: BaselineApplied },
): TaskOutcome {
  return {
    kind: 'done',
    nextInMs: ctx.settings.intervals.manifestMs,
    counts: {
      lines,
      rejected,
      duplicates,
      ...applied,
      live: meta.livePricedSkuCount,
      snapshot: meta.snapshotId,
      because,
    },
  };
}

/** Warns of a file that is accepted although it may belong to another snapshot. */
function warnOfFile(
  { emit }: SyncContext,
  read: Parameters<typeof liveCountDiffers>[0] & Pick<Downloaded, 'kept'>,
): void {
  const { live, livePricedSkuCount: announced, kept } = read;
  if (kept !== null) emit({ event: 'manifest.kept-file', keptSince: kept.since, builtAt: kept.builtAt });
  if (liveCountDiffers(read)) emit({ event: 'manifest.live-count-differs', live, announced });
}

type RebaselineCause = (typeof REBASELINE_CAUSES)[number];

/**
 * Returns why a baseline is applied whose manifest was requested at `at`. Somebody asked for it if its interval is
 * not over.
 */
function causeOf(before: SyncState, at: Date, { intervals }: SyncContext['settings']): RebaselineCause {
  if (before.manifestAppliedAt === null) return 'fill';
  if (before.chainBrokenAt !== null) return 'chain-broken';
  if (before.deltaBehindSince !== null) return 'delta-behind';
  if (before.catalogDiffersAt !== null) return 'catalog-differs';
  const sinceMs = at.getTime() - before.manifestAppliedAt.getTime();
  return before.shrinkConfirmed || sinceMs < intervals.manifestMs ? 'asked' : 'schedule';
}

const failed = ({ settings }: SyncContext, run: TaskRun, failure: Failure) =>
  failedAfter(run, settings.intervals.manifestMs, failure);

async function refused(
  ctx: SyncContext,
  run: TaskRun,
  reason: ManifestRefusal,
  problem: string | undefined,
): Promise<TaskOutcome> {
  await noteManifestRefused(ctx.sql, reason);
  return failed(ctx, run, { because: reason, hint: REFUSAL_HINTS[reason], problem });
}

/**
 * Notes the fault. 0012 and 0014 are states of the catalog, shown as such; price routes still work (partner rule
 * 7.4.7).
 */
export async function catalogFailed(
  ctx: SyncContext,
  run: TaskRun,
  asked: FailedRequest,
): Promise<TaskOutcome> {
  const { error } = asked;
  await noteCatalogFault(ctx.sql, error);
  const nextInMs = retryAfter(asked, run, ctx.settings.intervals.manifestMs);
  return { kind: 'failed', nextInMs, ...failureOf(error) };
}

async function timedDownload(...args: Parameters<typeof download>): Promise<Downloaded> {
  const { clock, emit } = args[0].ctx;
  const startedAt = clock.monotonic();
  const ended = (outcome: RequestOutcome, status?: number) =>
    emit({ event: 'manifest.downloaded', outcome, status, ms: clock.monotonic() - startedAt });
  try {
    const downloaded = await download(...args);
    ended('ok');
    return downloaded;
  } catch (error) {
    if (error instanceof PartnerError) ended(error.kind, error.status);
    throw error;
  }
}

/**
 * Streams the file into staging, reporting progress and renewing the lease. Throws PartnerError if it breaks off.
 */
async function download(
  manifest: ManifestRun,
  baseline: Baseline,
  signal?: AbortSignal,
): Promise<Downloaded> {
  const { ctx, meta } = manifest;
  const total: Downloaded = { lines: 0, rejected: 0, reasons: {}, kept: null };
  const { clock, settings } = ctx;
  const startedAt = clock.monotonic();
  let reportedAt = startedAt;
  let sampled = 0;
  const keepHeap = heapKeeper();
  const askedAt = await databaseNow(ctx.sql);
  const batches = readManifestFile({
    url: meta.url,
    baseUrl: new URL(settings.partner.baseUrl),
    origins: settings.partner.filesOrigins,
    timeoutMs: settings.partner.downloadTimeoutMs,
    proxy: settings.partner.proxy,
    signal,
  });
  for await (const { lines, rejected, bytes, ageSeconds } of batches) {
    total.kept ??= keptFromBefore(ageSeconds, meta.generatedAt, askedAt.getTime());
    total.lines += lines.length + rejected.length;
    total.rejected += rejected.length;
    for (const { reason } of rejected) total.reasons[reason] = (total.reasons[reason] ?? 0) + 1;
    await quarantine(ctx.sql, 'manifest', rejected.slice(0, SAMPLES_KEPT - sampled));
    sampled = Math.min(SAMPLES_KEPT, sampled + rejected.length);
    await baseline.stage(
      lines,
      rejected.flatMap(({ sku }) => (sku === null ? [] : [sku])),
    );
    failpoint('manifest.staging');
    keepHeap();
    // The file will be refused in any case, so the rest need not fill the disk.
    if (meta.skuCount !== null && total.lines > meta.skuCount) break;
    const now = clock.monotonic();
    if (now - reportedAt < PROGRESS_EVERY_MS) continue;
    reportedAt = now;
    await reportProgress(manifest, total, { bytes, elapsedMs: now - startedAt });
  }
  if (total.rejected > 0)
    ctx.emit({ event: 'manifest.rejected-lines', rejected: total.rejected, reasons: total.reasons });
  return total;
}

async function reportProgress(
  { ctx, run, meta }: ManifestRun,
  total: Downloaded,
  { bytes, elapsedMs }: { readonly bytes: number; readonly elapsedMs: number },
): Promise<void> {
  const of = meta.skuCount;
  const remaining =
    of === null || total.lines === 0 ? null : (elapsedMs / total.lines) * Math.max(0, of - total.lines);
  const remainingSeconds = remaining === null ? null : Math.round(remaining / 1000);
  const progress = { lines: total.lines, of, rejected: total.rejected, bytes, remainingSeconds };
  ctx.emit({ event: 'manifest.progress', ...progress });
  await showProgress(ctx.sql, 'manifest', run.run, progress);
}
