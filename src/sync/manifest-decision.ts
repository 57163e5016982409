import { count } from '../lib/format.ts';

/** Why a manifest is not applied. Stored in `sync.manifest_refused` and counted. */
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
 * Decides whether this snapshot may be downloaded; null: yes. It may not if the delta has just rejected its token
 * (fetching it again and again would be a loop) and it has not been rebuilt since, or if it is older than the last
 * applied one.
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

/**
 * Returns whether this is the snapshot whose token the delta has rejected, and not one that was rebuilt under its
 * id.
 */
function isRejected(
  { snapshotId, generatedAt }: OfferedSnapshot,
  { rejectedSnapshotId, snapshotGeneratedAt: before }: Omit<PresentSnapshot, 'chainBrokenAt'>,
): boolean {
  const isLater = generatedAt !== null && before !== null && generatedAt > before;
  return snapshotId === rejectedSnapshotId && !isLater;
}

/** The mirror's state while its delta does not say what has changed. */
export interface WaitingMirror extends PresentSnapshot {
  readonly snapshotId: string | null;
  readonly deltaLate: boolean | null;
  readonly manifestRefused: string | null;
  /** Whether deltas have moved past the named snapshot. */
  readonly hasLeft: boolean;
}

/**
 * Decides whether to download at once the snapshot that the manifest route names. While the delta is late: if it
 * is not the mirror's snapshot, and deltas have not left it. While the chain is broken and the manifest was
 * refused because it offered the rejected token: if it is a different snapshot.
 */
export function isAwaited(offered: OfferedSnapshot, waiting: WaitingMirror): boolean {
  if (waiting.chainBrokenAt === null)
    return waiting.deltaLate === true && offered.snapshotId !== waiting.snapshotId && !waiting.hasLeft;
  return waiting.manifestRefused === 'rejected-token' && !isRejected(offered, waiting);
}

export interface DownloadedManifest {
  /** Lines read, including rejected ones. */
  readonly lines: number;
  readonly rejected: number;
  /** Distinct SKUs among the accepted lines. */
  readonly skus: number;
  /** sku_count of the manifest response; null if unknown. */
  readonly skuCount: number | null;
  /** Accepted lines of live SKUs, and how many live SKUs the manifest response counts; null if unknown. */
  readonly live: number;
  readonly livePricedSkuCount: number | null;
  /**
   * Consecutive runs that failed before this one, for any reason except a refused request, and why a manifest was last
   * refused.
   */
  readonly failures: number;
  readonly lastRefusal: string | null;
  /** Set if a cache has kept the file since before its snapshot was built. */
  readonly kept?: KeptFile | null;
  readonly listedBefore: number;
  readonly shrinkConfirmed: boolean;
  readonly minShare: number;
}

/** The mirror's state when the manifest route gives counts of a snapshot that is not downloaded. */
export interface CountedMirror extends PresentSnapshot {
  readonly manifestLines: number | null;
  readonly shrinkConfirmed: boolean;
}

/**
 * Decides whether this snapshot's counts are believed although its file is not read. They are not if the file
 * would be refused for its age or for listing too few SKUs, because what a broken build says about itself says
 * nothing about the catalog.
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

/**
 * Returns whether a catalog has shrunk from `before` to `skus` SKUs by more than is accepted without a
 * confirmation.
 */
export const isShrunk = (skus: number, before: number, minShare: number): boolean => skus < before * minShare;

const REJECTED_TOLERATED = 10;
const REJECTED_PART = 0.001;
/**
 * After this many tries, the partner must count live SKUs differently, or its caches report wrong ages, and the
 * mirror should not lack a baseline because of that.
 */
const TRIES = 3;
/** The same if both faults coincide: some seven hours. */
const TRIES_OF_KEPT = 12;

/** How far apart two clocks, and the moments of building and writing the file, may be. */
const BUILD_SLACK_MS = 900_000;

/** A file that a cache has kept since before its snapshot was built. */
export interface KeptFile {
  readonly since: Date;
  readonly builtAt: Date;
}

/** Returns the file if a cache has kept it since before `builtAt`, else null. Pure; `now` in milliseconds. */
export function keptFromBefore(ageSeconds: number, builtAt: Date | null, now: number): KeptFile | null {
  if (ageSeconds <= 0 || builtAt === null) return null;
  const since = new Date(now - ageSeconds * 1000);
  return since.getTime() < builtAt.getTime() - BUILD_SLACK_MS ? { since, builtAt } : null;
}

/**
 * Returns whether the file contains more or fewer live SKUs than its manifest response says, beyond what rejected
 * and duplicate lines explain: a cache may have sent the file of another snapshot.
 */
export function liveCountDiffers(
  m: Pick<DownloadedManifest, 'lines' | 'skus' | 'live' | 'livePricedSkuCount'>,
): boolean {
  return m.livePricedSkuCount !== null && Math.abs(m.live - m.livePricedSkuCount) > m.lines - m.skus;
}

/**
 * Decides whether the downloaded lines are merged, all or none; null: yes. It refuses another number of lines than
 * sku_count (a file cut at the end of a gzip member gives no other sign), more than 10 rejected lines if they are
 * more than 0.1 %, and far fewer SKUs than before, until a person has confirmed it. A file that a cache has kept
 * since before its snapshot, or with another number of live SKUs than announced, is downloaded again, and accepted
 * after TRIES failed runs; if both apply, after TRIES_OF_KEPT.
 */
export function judgeDownload(m: DownloadedManifest): ManifestRefusal | null {
  if (m.skuCount !== null && m.lines !== m.skuCount) return 'line-count-mismatch';
  if (m.rejected > REJECTED_TOLERATED && m.rejected > m.lines * REJECTED_PART)
    return 'too-many-rejected-lines';
  if (!m.shrinkConfirmed && isShrunk(m.skus, m.listedBefore, m.minShare)) return 'shrunk';
  return judgeTries(m);
}

/**
 * Judges a file that may belong to another snapshot. Other failures (the files origin is down) say nothing about
 * it.
 */
function judgeTries(m: DownloadedManifest): ManifestRefusal | null {
  const { failures, lastRefusal, kept = null } = m;
  const isMiscounted = lastRefusal === 'live-count-mismatch';
  const isTold = isMiscounted || lastRefusal === 'kept-file';
  if (kept !== null && !(isTold && failures >= TRIES)) return 'kept-file';
  const tries = kept === null ? TRIES : TRIES_OF_KEPT;
  return liveCountDiffers(m) && !(isMiscounted && failures >= tries) ? 'live-count-mismatch' : null;
}

/** Returns, as a sentence, the numbers that decided the refusal of a downloaded manifest. */
export function refusedDownload(reason: ManifestRefusal, m: DownloadedManifest): string | undefined {
  switch (reason) {
    case 'line-count-mismatch':
      // Reading stops soon after sku_count lines.
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

/** Returns, as a sentence, the times that decided the refusal of an offered snapshot; undefined if none did. */
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
