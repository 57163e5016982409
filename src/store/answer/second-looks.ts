import { type AuditFinding, findingOf, type Standing, LONGEST_CACHED_SECONDS } from '../catalog/audit.ts';
import type { SkuResult } from './types.ts';

/*
 * An answer to a report that has exactly the prices of before may be a cache's: the partner has moved the price, and
 * still answers the old one. Nothing reports the SKU again, so it would be wrong until its sweep. It is asked once
 * more when no cache can have the old price any longer. So is the first answer to a report of a SKU that had no record
 * before: it may be of before the SKU came, or came back. How many of them are is learned (store/trust/late-prices.ts).
 */

/** What is known of a SKU's second look before an answer: columns of a locked SKU. */
export interface HeldSecondLook {
  /** Whether a delta or a manifest has said that it changed, and it was not asked since; absent: no. */
  readonly told?: boolean;
  readonly live: boolean;
  /** From how many seconds after the request on an answer is the second look; absent or null: none is to come. */
  readonly againInSeconds?: number | null;
  /** What its last refresh was for; absent or null: not known. */
  readonly askedBecause?: string | null;
}

/**
 * What an answer is to its SKU's second look. `report`: it answers a report, so it is the first. `second`: it is
 * that look. `early`: it comes before it, and may be out of the same cache. `late`: one has found a change, and no
 * report of it has come since, so the answer before it was a cache's. `none`: no second look is to come, or it is not
 * waited for any longer.
 */
export type SecondLook = 'report' | 'second' | 'early' | 'late' | 'none';

/** Judges one answer. A time that is further away than any was planned is a wrong clock's: it has come. Pure. */
export function secondLookOf(
  row: HeldSecondLook & Standing,
  kind: SkuResult['kind'],
  moved: boolean,
): SecondLook {
  const { told = false, live, againInSeconds = null, standing, comparable, listedSnapshot } = row;
  if (kind !== 'record' || live) return 'none';
  if (!comparable) return told && listedSnapshot && standing !== 'overtaken' ? 'report' : 'none';
  const isEarly = againInSeconds !== null && againInSeconds > 0 && againInSeconds <= LONGEST_CACHED_SECONDS;
  // The answer to the report that came meanwhile may be the late one to the report before.
  if (standing === 'overtaken') return isEarly ? 'early' : 'none';
  // `own`: asked for a move that the mirror has seen and no delta has reported.
  if (told && standing !== 'own') return 'report';
  if (isOpen(row) && row.kept === 'overdue' && !moved) return row.keptOnce ? 'late' : 'none';
  if (againInSeconds === null) return 'none';
  return isEarly ? 'early' : 'second';
}

/**
 * Whether a second look has found a change that may be either: one that was reported, and that the answer before did
 * not have, or one that came since and is still to be reported. In a lively market most are of the second kind.
 */
const isOpen = ({ standing, kept, againInSeconds = null, askedBecause = null }: HeldSecondLook & Standing) =>
  standing === 'own' &&
  (kept === 'waiting' || kept === 'overdue') &&
  (againInSeconds !== null || askedBecause === 'again');

/** What an answer finds, for the audit of the delta: nobody has failed to report what was reported early. Pure. */
export function findingBeside(
  look: SecondLook,
  row: HeldSecondLook & Standing,
  kind: SkuResult['kind'],
  moved: boolean,
): AuditFinding | null {
  const isDropped = look === 'none' && isOpen(row) && row.kept === 'waiting' && kind === 'record' && !moved;
  return look === 'late' || isDropped ? 'left' : findingOf(row, kind, moved);
}

/**
 * What a second look says of the answers that have nothing new of what was reported: whether that before it was late;
 * null: nothing. A change counts once it is known that no report of it comes, and not at all where one does: the SKU
 * may have moved since. What finds none is left out as often, as reports of other moves end the wait. Pure.
 */
export function wasLate(
  look: SecondLook,
  { standing, kept }: Pick<Standing, 'standing' | 'kept'>,
  moved: boolean,
): boolean | null {
  if (look === 'late') return true;
  return look === 'second' && !moved && standing === 'own' && kept === null ? false : null;
}

/**
 * In how many seconds after its request a SKU is asked once more; null: it is not. `isDrawn`: whether it is of the
 * part of SKUs that get a second look. Where an earlier report still waits for its own, an answer with a change may
 * be the late one to that report: it is asked once more, too. And where a refresh had found the move before it was
 * reported, a cache has not nothing new, but the price of before that move: it counts as nothing new. So does the
 * first record of a SKU, or the first since it was gone, whatever its prices: one without any is always asked once
 * more. Pure.
 */
export function secondLookIn(
  look: SecondLook,
  { againInSeconds = null, kept, comparable }: HeldSecondLook & Pick<Standing, 'kept' | 'comparable'>,
  { moved, isUnpriced }: { readonly moved: boolean; readonly isUnpriced: boolean },
  isDrawn: boolean,
): number | null {
  if (look === 'early') return againInSeconds;
  if (look !== 'report') return null;
  const waits = againInSeconds !== null || (!comparable && isUnpriced);
  const mayBeOfBefore = !moved || kept !== null || !comparable;
  return waits || (mayBeOfBefore && isDrawn) ? LONGEST_CACHED_SECONDS : null;
}
