import type { LiveCandidate } from '../../store/live/refresh.ts';
import { type Rate, rateFromPast } from './policy.ts';

/** What is believed of a SKU's rate of change: what refreshes have taught, else what its past says. */
export function rateOf({
  alpha,
  beta,
  prior,
  pastMoves,
  pastMinutes,
}: Pick<LiveCandidate, 'alpha' | 'beta' | 'prior' | 'pastMoves' | 'pastMinutes'>): Rate {
  if (alpha !== null && beta !== null) return { alpha, beta, prior };
  return rateFromPast(pastMoves ?? 0, pastMinutes ?? 0);
}
