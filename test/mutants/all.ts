import { HOLES } from './holes.ts';
import { LOCKS } from './locks.ts';
import type { Mutant } from './mutant.ts';
import { PARTNER_CASES } from './partner-cases.ts';
import { SAFETY } from './safety.ts';

/** Every fault that can be planted, by the list that it is in. */
export const LISTS: Readonly<Record<string, readonly Mutant[]>> = {
  'partner-cases': PARTNER_CASES,
  locks: LOCKS,
  safety: SAFETY,
  holes: HOLES,
};
