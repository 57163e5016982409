import type { Pacer, SentPermit } from '../../src/pace/permit.ts';

/** A permit for one immediate request, whose outcome is not recorded. */
export const FREE_PERMIT: SentPermit = {
  waitedMs: 0,
  halfOpen: false,
  refusals: 0,
  beganBackoff: () => false,
  settle: () => Promise.resolve(),
  cancel: () => Promise.resolve(),
  lapsed: () => false,
};

/** A pacer that grants every request at once. */
export const UNPACED: Pacer = {
  acquire: () => Promise.resolve({ kind: 'granted', permit: FREE_PERMIT, waited: false }),
};
