import type { Standing } from '../catalog/audit.ts';
import type { SkuResult } from './types.ts';

/*
 * An answer to a report that has exactly the prices of before may be a cache's: the partner has moved the price, and
 * still answers the old one. Nothing reports the SKU again, so it would be wrong until its sweep. It is asked once
 * more when no cache can have the old price any longer. How many of them are is learned (store/trust/late-prices.ts).
 */

/**
 * The longest that an answer may have been kept on its way by what the partner declares of single prices: 300 seconds
 * by the client (max-age), after 600 (s-maxage) and 120 more (stale-while-revalidate) in a shared cache. Bulk answers
 * are not cached (partner rule 4.1.5), but what they are made of may be.
 */
export const LONGEST_CACHED_SECONDS = 300 + 600 + 120;

/** What is known of a SKU's second look before an answer: columns of a locked SKU. */
export interface HeldSecondLook {
  /** Whether a delta or a manifest has said that it changed, and it was not asked since; absent: no. */
  readonly told?: boolean;
  readonly live: boolean;
  /** From how many seconds after the request on an answer is the second look; absent or null: none is to come. */
  readonly againInSeconds?: number | null;
}

/**
 * What an answer is to its SKU's second look. `report`: it answers a report, so it is the first. `second`: it is
 * that look, or has found a change before it. `early`: it has found nothing, and may be out of the same cache. `none`:
 * no second look is to come, or it is not waited for any longer.
 */
export type SecondLook = 'report' | 'second' | 'early' | 'none';

/** Judges one answer. A time that is further away than any was planned is a wrong clock's: it has come. Pure. */
export function secondLookOf(
  { told = false, live, againInSeconds = null, standing, comparable }: HeldSecondLook & Standing,
  kind: SkuResult['kind'],
  moved: boolean,
): SecondLook {
  if (kind !== 'record' || live || !comparable) return 'none';
  if (standing === 'overtaken') return 'none';
  // `own`: asked for a move that the mirror has seen and no delta has reported.
  if (told && standing !== 'own') return 'report';
  if (againInSeconds === null) return 'none';
  const hasCome = againInSeconds <= 0 || againInSeconds > LONGEST_CACHED_SECONDS;
  return moved || hasCome ? 'second' : 'early';
}

/**
 * In how many seconds after its request a SKU is asked once more; null: it is not. `isDrawn`: whether it is of the
 * part of SKUs that get a second look. Where an earlier report still waits for its own, an answer with a change may
 * be the late one to that report: it is asked once more, too. Pure.
 */
export function againIn(
  look: SecondLook,
  { againInSeconds = null }: HeldSecondLook,
  moved: boolean,
  isDrawn: boolean,
): number | null {
  if (look === 'early') return againInSeconds;
  if (look !== 'report') return null;
  const waits = againInSeconds !== null;
  return (moved ? waits : waits || isDrawn) ? LONGEST_CACHED_SECONDS : null;
}
