import { type AuditFinding, findingOf, type Standing, LONGEST_CACHED_SECONDS } from '../catalog/audit.ts';
import type { SkuResult } from './types.ts';

/*
 * An answer to a report that has exactly the held prices may come from a cache: the partner has moved the price, and
 * still answers the old one. Nothing reports the SKU again, so its price would be wrong until its sweep. Therefore it
 * is asked once more when no cache can have the old price any longer. So is a SKU after its first answer to a report
 * if it was gone, or has no price: that answer may date from before the SKU came, or came back. How many such SKUs are
 * asked is learned (store/trust/late-prices.ts).
 */

/** What is known about a SKU's second look before an answer: columns of a locked SKU. */
export interface HeldSecondLook {
  /** Whether a delta or a manifest has said that it changed, and it has not been asked since; absent: no. */
  readonly told?: boolean;
  readonly live: boolean;
  /** How many seconds after the request an answer counts as the second look; absent or null: none is to come. */
  readonly againInSeconds?: number | null;
  /** The reason for its last refresh; absent or null: not known. */
  readonly askedBecause?: string | null;
}

/**
 * What an answer is to its SKU's second look. `report`: the first answer to a report. `second`: the second look
 * itself. `early`: before the second look, so perhaps from the same cache. `late`: a second look has found a change,
 * and no report of it has come since, so the answer before it came from a cache. `none`: no second look is planned, or
 * it is no longer awaited.
 */
export type SecondLook = 'report' | 'second' | 'early' | 'late' | 'none';

/** Judges one answer. A time further away than any planned comes from a wrong clock and counts as past. Pure. */
export function secondLookOf(
  row: HeldSecondLook & Standing,
  kind: SkuResult['kind'],
  moved: boolean,
): SecondLook {
  const { told = false, live, againInSeconds = null, standing, comparable, listedSnapshot } = row;
  if (kind !== 'record' || live) return 'none';
  if (!comparable) return told && listedSnapshot && standing !== 'overtaken' ? 'report' : 'none';
  const isEarly = againInSeconds !== null && againInSeconds > 0 && againInSeconds <= LONGEST_CACHED_SECONDS;
  // The answer to the report that has come in the meantime may be the late one to the previous report.
  if (standing === 'overtaken') return isEarly ? 'early' : 'none';
  // `own`: asked because of a move that the mirror has seen and no delta has reported.
  if (told && standing !== 'own') return 'report';
  if (isOpen(row) && row.kept === 'overdue' && !moved) return row.keptOnce ? 'late' : 'none';
  if (againInSeconds === null) return 'none';
  return isEarly ? 'early' : 'second';
}

/**
 * Whether a second look has found a change that may be either of two: one that was reported, and that the previous
 * answer did not have, or a later one that is still to be reported. In a lively market most are later ones.
 */
const isOpen = ({ standing, kept, againInSeconds = null, askedBecause = null }: HeldSecondLook & Standing) =>
  standing === 'own' &&
  (kept === 'waiting' || kept === 'overdue') &&
  (againInSeconds !== null || askedBecause === 'again');

interface Said {
  readonly moved: boolean;
  /** Whether it is a record without a price. */
  readonly isUnpriced: boolean;
}

/**
 * Whether an answer may date from before its SKU came, or came back: its first record, or one that still has no price
 * after a report that came while the first one was asked for.
 */
const mayPrecede = (
  { comparable, kept }: Pick<Standing, 'comparable' | 'kept'>,
  { moved, isUnpriced }: Said,
) => !comparable || (kept === 'reported' && isUnpriced && !moved);

/**
 * Returns what an answer finds, for the audit of the delta: what was reported early does not count as unreported. If
 * the SKU has only just come, its report is not judged before its second look (`isAskedAgain`), and neither is that
 * look: it is no sign that answers are on time, because a cache has nothing old of such a SKU. Pure.
 */
export function findingBeside(
  look: SecondLook,
  row: HeldSecondLook & Standing,
  kind: SkuResult['kind'],
  said: Said,
  isAskedAgain: boolean,
): AuditFinding | null {
  const { moved } = said;
  const isDropped = look === 'none' && isOpen(row) && row.kept === 'waiting' && kind === 'record' && !moved;
  if (look === 'late' || isDropped) return 'left';
  if (look === 'report' && isAskedAgain && mayPrecede(row, said)) return 'overtaken';
  const finding = findingOf(row, kind, moved);
  return look === 'early' && row.kept === 'reported' && finding === 'left' ? null : finding;
}

/**
 * Returns whether a second look shows that the answer before it was late; null if it shows nothing. A change counts
 * only once it is known that no report of it comes; if one comes, it does not count, because the SKU may have moved
 * since. Second looks that find nothing are left out as often, because reports of other moves end the wait. Pure.
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
 * Returns how many seconds after its request a SKU is asked once more; null if it is not. `isDrawn`: whether the SKU
 * is in the part that gets a second look. If an earlier report still waits for its second look, an answer with a
 * change may be the late answer to that report, so the SKU is asked once more, too. If a refresh had found the move
 * before it was reported, a cache answers the price from before that move, so a change counts as nothing new. So does
 * the first record of a SKU that was gone. A first record without a price is always asked for once more. A new SKU's
 * first record with prices dates from after its report, whatever cache answers. Pure.
 */
export function secondLookIn(
  look: SecondLook,
  row: HeldSecondLook & Pick<Standing, 'kept' | 'comparable'>,
  said: Said & { readonly state: string },
  isDrawn: boolean,
): number | null {
  const { againInSeconds = null, kept, comparable } = row;
  if (look === 'early') return againInSeconds;
  if (look !== 'report') return null;
  const waits = againInSeconds !== null || (said.isUnpriced && mayPrecede(row, said));
  const mayBeOfBefore = comparable ? !said.moved || kept !== null : said.state !== 'pending';
  return waits || (mayBeOfBefore && isDrawn) ? LONGEST_CACHED_SECONDS : null;
}
