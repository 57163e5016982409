/*
 * How often an answer with nothing new about a report came from a cache, and how many such SKUs are asked again to
 * find out (second looks). Those of all daemons are counted in catalog_internal.beliefs
 * (store/trust/calibration.ts); this file decides what follows. Pure.
 */

/** Prices began or stopped lagging behind the delta's reports. */
export type LatePricesChange =
  | { readonly kind: 'began'; readonly looks: number; readonly found: number }
  | { readonly kind: 'ended'; readonly minutes: number };

/** Prices that lag behind the delta's reports: since when, and what second looks found. */
export interface LatePrices {
  readonly since: Date;
  readonly looks: number;
  readonly found: number;
}

/** The cohort of second looks in catalog.calibration. */
export const AGAIN = 'again';

/** Second looks, how many found a change, and the part of SKUs that get one; old ones fade. */
export interface SecondLooks {
  readonly looks: number;
  readonly found: number;
  readonly share: number;
}

/** How many second looks are remembered, the newest most. */
const MEMORY_LOOKS = 60;
/** What remains of that many once they are answered: enough to know that they find nothing. */
const ENOUGH_LOOKS = MEMORY_LOOKS * (1 - Math.exp(-1));
/**
 * Up to this part of them may find a change by chance (a move that came meanwhile) and still count as finding
 * nothing.
 */
const HARDLY_ANY = 1 / 30;
/** While they find nothing, this part of the SKUs still gets one, to detect a cache that begins later. */
const SAMPLED_SHARE = 1 / 20;
/** What remains of the memory once one of these finds a change: too little to continue with a part of the SKUs. */
const DOUBTED_LOOKS = ENOUGH_LOOKS / 2;

/** Returns what is known after `looks` more second looks, `found` of which found a change. */
export function learnSecondLooks(
  held: SecondLooks,
  { looks, found }: Pick<SecondLooks, 'looks' | 'found'>,
): SecondLooks {
  if (looks === 0) return held;
  const before = held.share < 1 && found > 0 ? fadedTo(held, DOUBTED_LOOKS) : held;
  // As if they had come one by one, spread evenly.
  const left = Math.exp(-looks / MEMORY_LOOKS);
  const weight = (MEMORY_LOOKS * (1 - left)) / looks;
  const known = { looks: before.looks * left + looks * weight, found: before.found * left + found * weight };
  const isSampled = held.share < 1 && found > 0 ? false : findNothing(known);
  return { ...known, share: isSampled ? SAMPLED_SHARE : 1 };
}

/** The belief before any second look is answered, expressed as second looks. */
const PRIOR = { looks: 20, found: 0.2 };

/** Returns how likely an answer with nothing new about a report is wrong, by what second looks found. Pure. */
export const lateMovesOf = ({ looks, found }: Pick<SecondLooks, 'looks' | 'found'>): number =>
  (PRIOR.found + found) / (PRIOR.looks + looks);

/** Prices lag if more than this part of these answers is wrong, and stop lagging at half of it. */
const LAGGING_PART = 0.05;
/** Fewer wrong answers may be chance. */
const LAGGING_FOUND = 3;

/** Decides whether prices lag behind the delta's reports; `lagged`: whether they did before. Pure. */
export function pricesLag(known: Pick<SecondLooks, 'looks' | 'found'>, lagged: boolean): boolean {
  const part = lateMovesOf(known);
  return lagged ? part > LAGGING_PART / 2 : part > LAGGING_PART && known.found >= LAGGING_FOUND - 1e-6;
}

const findNothing = ({ looks, found }: Pick<SecondLooks, 'looks' | 'found'>): boolean =>
  looks >= ENOUGH_LOOKS - 1e-6 && found <= looks * HARDLY_ANY;

function fadedTo(held: SecondLooks, looks: number): SecondLooks {
  const part = Math.min(1, looks / Math.max(held.looks, 1));
  return { ...held, looks: held.looks * part, found: held.found * part };
}
