import { CEILING_MET, MOST_UNCOUNTED } from '../../src/store/ledger/due.ts';

/** What the ledger has of a live SKU's deferrals in a row. */
export interface Deferrals {
  readonly deferrals: number;
  readonly lastError: typeof CEILING_MET | 'reported' | null;
  readonly lane: 'urgent' | 'live' | 'new' | 'error';
}

export const UNDEFERRED: Deferrals = { deferrals: 0, lastError: null, lane: 'live' };

/** How many may be for reasons of its own (store/ledger/due.ts). */
export const ownOf = ({ deferrals, lastError }: Omit<Deferrals, 'lane'>): number =>
  lastError === CEILING_MET && deferrals <= MOST_UNCOUNTED ? 0 : deferrals;

/** After an error: what was in vain while the ceiling was met counts no more for it. */
export const afterError = (before: Deferrals): Deferrals => ({
  deferrals: ownOf(before),
  lastError: 'reported',
  lane: 'error',
});

/** After another one (store/answer/writes.ts), while the ceiling was met or not. */
export function afterDeferral(before: Deferrals, isCeilingMet: boolean): Deferrals {
  const own = ownOf(before);
  const deferrals = own === 0 && !isCeilingMet ? 1 : before.deferrals + 1;
  const lastError = own === 0 && isCeilingMet ? CEILING_MET : null;
  const isSetBack = own > 0 || deferrals > MOST_UNCOUNTED;
  return { deferrals, lastError, lane: isSetBack ? 'error' : before.lane };
}
