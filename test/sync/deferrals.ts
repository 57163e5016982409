import { CEILING_MET, MOST_UNCOUNTED } from '../../src/store/ledger/due.ts';

/** What the ledger knows about a live SKU's consecutive deferrals. */
export interface Deferrals {
  readonly deferrals: number;
  readonly lastError: typeof CEILING_MET | 'reported' | null;
  readonly lane: 'urgent' | 'live' | 'new' | 'error';
}

export const UNDEFERRED: Deferrals = { deferrals: 0, lastError: null, lane: 'live' };

/** Returns how many deferrals may have reasons of the SKU's own (store/ledger/due.ts). */
export const ownOf = ({ deferrals, lastError }: Omit<Deferrals, 'lane'>): number =>
  lastError === CEILING_MET && deferrals <= MOST_UNCOUNTED ? 0 : deferrals;

/** Returns the state after an error. Deferrals from while the ceiling was met no longer count for the ceiling. */
export const afterError = (before: Deferrals): Deferrals => ({
  deferrals: ownOf(before),
  lastError: 'reported',
  lane: 'error',
});

/** Returns the state after another deferral (store/answer/writes.ts), with the ceiling met or not. */
export function afterDeferral(before: Deferrals, isCeilingMet: boolean): Deferrals {
  const own = ownOf(before);
  const deferrals = own === 0 && !isCeilingMet ? 1 : before.deferrals + 1;
  const lastError = own === 0 && isCeilingMet ? CEILING_MET : null;
  const isSetBack = own > 0 || deferrals > MOST_UNCOUNTED;
  return { deferrals, lastError, lane: isSetBack ? 'error' : before.lane };
}
