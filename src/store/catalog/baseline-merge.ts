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
  /** Database time at which the manifest was asked for: what deltas reported later is newer than the manifest. */
  readonly requestedAt: Date;
  /** The token at that time: if deltas have moved it since, they are ahead of the manifest, and their token stays. */
  readonly tokenAtRequest: string | null;
  readonly lines: number;
  /** Its rejected or doubled lines, and by how much it miscounted its live SKUs. */
  readonly unclear?: number;
  readonly liveMiscount?: number;
  readonly livePricedSkuCount: number | null;
  /** How its lines give hints for live SKUs; null: not at all. */
  readonly hinting?: ManifestHinting | null;
  /** The fields from which the manifest was read. */
  readonly readBy?: LearnedNames['manifest'];
}

export interface BaselineApplied {
  readonly added: number;
  readonly changed: number;
  readonly crossed: number;
  readonly absent: number;
  readonly marked: number;
  /** Lines with a new hash whose price was asked for after the snapshot was first seen. */
  readonly skipped: number;
  /** How much older the snapshot is than what deltas have reported; null if it is not known to be. */
  readonly lagSeconds: number | null;
}

/**
 * The manifest is out of date: another replica has applied one since it was requested, or deltas went on in the
 * meantime and their chain broke. Or its snapshot was noted on another server behind the same host name, where claims
 * have other numbers.
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
 * Runs the statements of a merge within its transaction, from reading what deltas have reported in the meantime to
 * moving the token. Requires the differences that `count` of store/catalog/baseline.ts found, and the row of `sync`
 * locked. `live` is the number of staged lines of live SKUs.
 *
 * @throws BaselineSuperseded if deltas have reported something that the manifest cannot contain
 */
export async function mergeStaged(run: Run, token: BaselineToken, live: number): Promise<BaselineApplied> {
  const { snapshotId, generatedAt, seenClaim, seenAt, requestedAt, hinting } = token;
  const asked = [snapshotId, requestedAt, token.tokenAtRequest, generatedAt];
  const { rows: reported } = await run(REPORTED_SINCE, asked);
  const { since, lagSeconds, isBuiltAgain } = reported[0] as ReportedSince;
  // If deltas have left its snapshot, it counts as requested before they did.
  const tokenAtRequest = lagSeconds === null ? token.tokenAtRequest : snapshotId;
  await run(LOCK_NEW_SKUS);
  // Possible only in a short window, with two deltas and a broken chain: the reported SKUs' lines are gone by then.
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
  // Last, because a holder of the lock for changes waits for no other lock.
  await run(statements.ADD_CHANGES);
  const counts = rows[0] as Omit<BaselineApplied, 'lagSeconds'>;
  return {
    ...counts,
    added: counts.added + rejected.added,
    marked: counts.marked + rejected.marked,
    lagSeconds,
  };
}

/** Marks the SKUs of rejected lines due; their rows stay as they are. */
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
