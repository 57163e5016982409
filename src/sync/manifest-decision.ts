import { count } from '../lib/format.ts';

/** Why a manifest is not applied, as stored in `sync.manifest_refused` and counted. */
export type ManifestRefusal =
  | 'rejected-token'
  | 'older-snapshot'
  | 'too-many-rejected-lines'
  | 'line-count-mismatch'
  | 'shrunk'
  | 'live-count-mismatch'
  | 'kept-file';

export interface OfferedSnapshot {
  readonly snapshotId: string;
  readonly generatedAt: Date | null;
}

export interface PresentSnapshot {
  readonly snapshotGeneratedAt: Date | null;
  readonly chainBrokenAt: Date | null;
  readonly rejectedSnapshotId: string | null;
}

/**
 * Decides whether this snapshot may be downloaded; null: yes. Not if the delta has just rejected its token (fetching it
 * again and again would be a loop) and it was not built again since, and not if it is older than the one applied last.
 */
export function judgeOffer(offered: OfferedSnapshot, present: PresentSnapshot): ManifestRefusal | null {
  if (present.chainBrokenAt !== null && isRejected(offered, present)) return 'rejected-token';
  const { generatedAt } = offered;
  if (
    generatedAt !== null &&
    present.snapshotGeneratedAt !== null &&
    generatedAt < present.snapshotGeneratedAt
  ) {
    return 'older-snapshot';
  }
  return null;
}

/** Whether it is the snapshot whose token the delta has rejected, and not another one that was built under its id. */
function isRejected(
  { snapshotId, generatedAt }: OfferedSnapshot,
  { rejectedSnapshotId, snapshotGeneratedAt: before }: Omit<PresentSnapshot, 'chainBrokenAt'>,
): boolean {
  const isLater = generatedAt !== null && before !== null && generatedAt > before;
  return snapshotId === rejectedSnapshotId && !isLater;
}

/** Where the mirror stands while its delta does not say what has changed. */
export interface WaitingMirror extends PresentSnapshot {
  readonly snapshotId: string | null;
  readonly deltaLate: boolean | null;
  readonly manifestRefused: string | null;
  /** Whether deltas have left the named snapshot behind. */
  readonly hasLeft: boolean;
}

/**
 * Whether to download the snapshot that the manifest route names at once. While the delta is late: if it is not the
 * mirror's, and deltas have not left it. While the chain is broken and the manifest was refused because it offered the
 * rejected token: if it is another snapshot than that.
 */
export function isAwaited(offered: OfferedSnapshot, waiting: WaitingMirror): boolean {
  if (waiting.chainBrokenAt === null)
    return waiting.deltaLate === true && offered.snapshotId !== waiting.snapshotId && !waiting.hasLeft;
  return waiting.manifestRefused === 'rejected-token' && !isRejected(offered, waiting);
}

export interface DownloadedManifest {
  /** Lines read, rejected ones included. */
  readonly lines: number;
  readonly rejected: number;
  /** Distinct SKUs among the accepted lines. */
  readonly skus: number;
  /** sku_count of the manifest response; null where unknown. */
  readonly skuCount: number | null;
  /** Accepted lines of live SKUs, and how many live SKUs the manifest response counts; null where unknown. */
  readonly live: number;
  readonly livePricedSkuCount: number | null;
  /**
   * Runs in a row that failed before this one, for whatever reason but that the partner refused to be asked, and why a
   * manifest was last refused.
   */
  readonly failures: number;
  readonly lastRefusal: string | null;
  /** A cache has kept the file since before its snapshot was built; null or absent: none has. */
  readonly kept?: KeptFile | null;
  readonly listedBefore: number;
  readonly shrinkConfirmed: boolean;
  readonly minShare: number;
}

/** Where the mirror stands when the manifest route gives counts of a snapshot that is not downloaded. */
export interface CountedMirror extends PresentSnapshot {
  readonly manifestLines: number | null;
  readonly shrinkConfirmed: boolean;
}

/**
 * Whether the counts of this snapshot are believed although its file is not read. Not if the file would be refused for
 * its age or for how few SKUs it lists, because what a broken build says of itself says nothing of the catalog.
 */
export function isCounted(
  offered: OfferedSnapshot & { readonly skuCount: number | null },
  present: CountedMirror,
  minShare: number,
): boolean {
  if (judgeOffer(offered, present) === 'older-snapshot') return false;
  const { manifestLines, shrinkConfirmed } = present;
  if (shrinkConfirmed || offered.skuCount === null || manifestLines === null) return true;
  return !isShrunk(offered.skuCount, manifestLines, minShare);
}

/** Whether a catalog has shrunk from `before` to `skus` SKUs by more than passes without a confirmation. */
export const isShrunk = (skus: number, before: number, minShare: number): boolean => skus < before * minShare;

const REJECTED_TOLERATED = 10;
const REJECTED_PART = 0.001;
/**
 * After so many tries the partner must count live SKUs otherwise, or its caches give wrong ages, and the mirror should
 * not lack a baseline for that.
 */
const TRIES = 3;
/** After so many tries, some seven hours, also where both are so. */
const TRIES_OF_KEPT = 12;

/** By so much two clocks, and the moments of building and writing the file, may differ. */
const BUILD_SLACK_MS = 900_000;

/** A file that a cache has kept since before its snapshot was built. */
export interface KeptFile {
  readonly since: Date;
  readonly builtAt: Date;
}

/** A file that a cache has kept for so long, if that is since before `builtAt`. Pure; `now` in milliseconds. */
export function keptFromBefore(ageSeconds: number, builtAt: Date | null, now: number): KeptFile | null {
  if (ageSeconds <= 0 || builtAt === null) return null;
  const since = new Date(now - ageSeconds * 1000);
  return since.getTime() < builtAt.getTime() - BUILD_SLACK_MS ? { since, builtAt } : null;
}

/**
 * Whether the file has more or fewer live SKUs than its manifest response says, beyond what rejected and double lines
 * explain, because a cache may have sent the file of another snapshot.
 */
export function liveCountDiffers(
  m: Pick<DownloadedManifest, 'lines' | 'skus' | 'live' | 'livePricedSkuCount'>,
): boolean {
  return m.livePricedSkuCount !== null && Math.abs(m.live - m.livePricedSkuCount) > m.lines - m.skus;
}

/**
 * Decides whether the downloaded lines are merged, all or none; null: yes. Refused are another number of lines than
 * sku_count (a file cut at a gzip member's end gives no other sign), rejected lines that are more than 10 and more than
 * 0.1 %, and far fewer SKUs than before, until a person has confirmed it. A file that a cache has from before its
 * snapshot, and one with another number of live SKUs than announced, is downloaded again, and after TRIES failed runs
 * taken as it is; one that is both, after TRIES_OF_KEPT.
 */
export function judgeDownload(m: DownloadedManifest): ManifestRefusal | null {
  if (m.skuCount !== null && m.lines !== m.skuCount) return 'line-count-mismatch';
  if (m.rejected > REJECTED_TOLERATED && m.rejected > m.lines * REJECTED_PART)
    return 'too-many-rejected-lines';
  if (!m.shrinkConfirmed && isShrunk(m.skus, m.listedBefore, m.minShare)) return 'shrunk';
  return judgeTries(m);
}

/** Only other failures (the files origin is away) say nothing of the file. */
function judgeTries(m: DownloadedManifest): ManifestRefusal | null {
  const { failures, lastRefusal, kept = null } = m;
  const isMiscounted = lastRefusal === 'live-count-mismatch';
  const isTold = isMiscounted || lastRefusal === 'kept-file';
  if (kept !== null && !(isTold && failures >= TRIES)) return 'kept-file';
  const tries = kept === null ? TRIES : TRIES_OF_KEPT;
  return liveCountDiffers(m) && !(isMiscounted && failures >= tries) ? 'live-count-mismatch' : null;
}

/** The numbers that a refusal of a downloaded manifest was decided by, as a sentence. */
export function refusedDownload(reason: ManifestRefusal, m: DownloadedManifest): string | undefined {
  switch (reason) {
    case 'line-count-mismatch':
      // What is beyond sku_count is not read to its end.
      return `${count(m.lines)} lines were read, and sku_count is ${count(m.skuCount ?? 0)}`;
    case 'too-many-rejected-lines': {
      const tolerated = Math.max(REJECTED_TOLERATED, Math.floor(m.lines * REJECTED_PART));
      return `${count(m.rejected)} of ${count(m.lines)} lines are unreadable; at most ${count(tolerated)} may be`;
    }
    case 'shrunk': {
      const needed = Math.ceil(m.listedBefore * m.minShare);
      return `${count(m.skus)} of ${count(m.listedBefore)} SKUs; at least ${count(needed)} are needed`;
    }
    case 'live-count-mismatch':
      return `${count(m.live)} live SKUs were read, and live_priced_sku_count is ${count(m.livePricedSkuCount ?? 0)}`;
    case 'kept-file':
      return keptSays(m.kept ?? null);
    default:
      return undefined;
  }
}

const keptSays = (kept: KeptFile | null): string | undefined =>
  kept === null
    ? undefined
    : `a cache has kept it since ${kept.since.toISOString()}, and its snapshot was built at ${kept.builtAt.toISOString()}`;

/** The times that a refusal of an offered snapshot was decided by, as a sentence; undefined where none were. */
export function refusedOffer(
  reason: ManifestRefusal,
  { generatedAt: offered }: OfferedSnapshot,
  { snapshotGeneratedAt: applied }: PresentSnapshot,
): string | undefined {
  if (reason !== 'older-snapshot' || offered === null || applied === null) return undefined;
  return `it was built at ${offered.toISOString()}, and the newest one before at ${applied.toISOString()}`;
}

export const REFUSAL_HINTS: Readonly<Record<ManifestRefusal, string>> = {
  'rejected-token':
    'the newest manifest has the catalog snapshot that the delta rejected; ' +
    'the delta is asked with it again, until it answers or there is a newer one',
  'older-snapshot': 'the offered manifest is older than the applied one; waiting for a newer one',
  'too-many-rejected-lines':
    'more than 0.1 % of the lines are unreadable; samples are in catalog_internal.quarantine',
  'line-count-mismatch': 'the number of lines differs from sku_count; the file is downloaded again',
  shrunk:
    'the manifest lists far fewer SKUs than before; ' +
    'if that is correct, confirm it with `catalog-mirror refresh --manifest --accept-shrink`',
  'live-count-mismatch':
    'the number of live SKUs differs from live_priced_sku_count, as in the file of another snapshot; ' +
    'it is downloaded again, and taken the fourth time',
  'kept-file':
    'by its Age header a cache has kept the file since before its snapshot was built, so it is that of another one; ' +
    'it is downloaded again, and taken the fourth time, or the thirteenth where its number of live SKUs differs, too',
};
