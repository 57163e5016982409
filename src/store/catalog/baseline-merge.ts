import type { QueryResult } from 'pg';
import { failpoint } from '../../lib/failpoint.ts';
import { LOCK_NEW_SKUS } from '../connection/locks.ts';
import { REBASE_AUDIT } from './audit.ts';
import * as statements from './baseline-sql.ts';
import { type LearnedNames, REMEMBER_FIELDS } from './learned-names.ts';
import { hintByManifest, type ManifestHinting } from './manifest-hints.ts';
import type { SnapshotSeen } from './sync-state.ts';
import { REPORTED_SINCE, type ReportedSince } from './tokens.ts';
import * as unread from './unread-lines.ts';
import { SET_APART_UNREPORTED } from './unreported.ts';

export interface BaselineToken extends SnapshotSeen {
  readonly snapshotId: string;
  readonly generatedAt: Date | null;
  /** Database time at which the manifest was asked for: what deltas reported after it is newer than the manifest. */
  readonly requestedAt: Date;
  /** The token at that time: if deltas have moved it since, they are ahead of the manifest, and their token stays. */
  readonly tokenAtRequest: string | null;
  readonly lines: number;
  /** Its rejected or doubled lines; and how many more live SKUs were announced than it has. */
  readonly unclear?: number;
  readonly liveMiscount?: number;
  readonly livePricedSkuCount: number | null;
  /** How its lines hint at live SKUs; null: not at all. */
  readonly hinting?: ManifestHinting | null;
  /** The fields by which the manifest was read. */
  readonly readBy?: LearnedNames['manifest'];
}

export interface BaselineApplied {
  readonly added: number;
  readonly changed: number;
  readonly crossed: number;
  readonly absent: number;
  readonly marked: number;
  /** Lines whose hash moved, but whose price was asked for after the snapshot was first seen. */
  readonly skipped: number;
  /** By how much the snapshot is older than what deltas have reported; null: it is not known to be. */
  readonly lagSeconds: number | null;
}

/**
 * The manifest is out of date: another replica applied one after this was asked for, or deltas went on meanwhile and
 * their chain broke. Or its snapshot was noted on another server to which the host name leads, where claims have other
 * numbers.
 */
export class BaselineSuperseded extends Error {
  override readonly name = 'BaselineSuperseded';
  readonly kind = 'superseded';

  constructor() {
    super('another manifest was applied meanwhile, or deltas have gone on');
  }
}

/** Sends a statement of the merge. */
export type Run = (text: string, values?: unknown[]) => Promise<QueryResult>;

/**
 * Runs the statements of a merge within its transaction, from what deltas have reported meanwhile to the moved token.
 * Requires the differences that `count` of store/catalog/baseline.ts found, and the row of `sync` locked. `live`:
 * number of staged lines of live SKUs.
 *
 * Throws BaselineSuperseded if deltas have reported something that the manifest cannot tell of.
 */
export async function mergeStaged(run: Run, token: BaselineToken, live: number): Promise<BaselineApplied> {
  const { snapshotId, generatedAt, seenClaim, seenAt, requestedAt, hinting } = token;
  const asked = [snapshotId, requestedAt, token.tokenAtRequest, generatedAt];
  const { rows: reported } = await run(REPORTED_SINCE, asked);
  const { since, lagSeconds, isBuiltAgain } = reported[0] as ReportedSince;
  // Deltas have left its snapshot, as if it had been asked for before they did.
  const tokenAtRequest = lagSeconds === null ? token.tokenAtRequest : snapshotId;
  await run(LOCK_NEW_SKUS);
  // In a few steps of two deltas and a broken chain: the lines of what they reported are not at hand any more.
  const { rows: missed } = await run(statements.REPORTED_UNSEEN, [requestedAt, tokenAtRequest]);
  if (missed.length > 0) throw new BaselineSuperseded();
  await run(statements.DIFF, [since, seenClaim, tokenAtRequest, generatedAt, seenAt]);
  await run('analyze diff');
  await run(statements.LOCK_LEDGER);
  await run(statements.INSERT_NEW);
  await run(statements.UPDATE_CHANGED);
  await run(statements.UPDATE_ABSENT);
  await run(statements.DROP_ORPHANS);
  await run(statements.LOCK_SCOPE);
  const { rowCount: byScope } = await run(statements.READ_SCOPED);
  await run(byScope === 1 ? statements.MARK_NEW_BY_SCOPE : statements.MARK_NEW);
  await run(statements.MARK_DUE);
  await run(statements.SWEEP_RELISTED);
  const rejected = await markRejected(run, since, tokenAtRequest);
  failpoint('manifest.marked');
  await run(REBASE_AUDIT, [snapshotId, tokenAtRequest]);
  const { rows } = await run(statements.COUNT_DIFF);
  if (hinting) await hintByManifest(run, hinting, { generatedAt, live });
  const { lines, livePricedSkuCount, readBy } = token;
  if (readBy) await run(REMEMBER_FIELDS, [readBy.url, readBy.snapshotId]);
  await run(SET_APART_UNREPORTED, [false]);
  await run(statements.MOVE_TOKEN, [snapshotId, generatedAt, tokenAtRequest, lines, livePricedSkuCount]);
  const { unclear = 0, liveMiscount = 0 } = token;
  await run(statements.NOTE_IDLE);
  await run(statements.END_DOUBTS, [
    unclear,
    liveMiscount,
    snapshotId,
    requestedAt,
    generatedAt,
    isBuiltAgain,
  ]);
  // Last: who holds the lock of the changes waits for no other.
  await run(statements.ADD_CHANGES);
  const counts = rows[0] as Omit<BaselineApplied, 'lagSeconds'>;
  return {
    ...counts,
    added: counts.added + rejected.added,
    marked: counts.marked + rejected.marked,
    lagSeconds,
  };
}

/** Marks the SKUs of rejected lines, so that they are asked about; their rows stay as they are. */
async function markRejected(
  run: Run,
  since: string,
  tokenAtRequest: string | null,
): Promise<{ readonly added: number; readonly marked: number }> {
  const added = (await run(unread.INSERT_REJECTED)).rowCount ?? 0;
  const { rows } = await run(unread.MARK_REJECTED, [since, tokenAtRequest]);
  await run(unread.DISTRUST_UNREAD, [since, tokenAtRequest]);
  await run(unread.TRUST_READ);
  return { added, marked: (rows[0] as { marked: number }).marked };
}
