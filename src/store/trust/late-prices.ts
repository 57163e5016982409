/*
 * How often an answer that had nothing new of what was reported was a cache's, and how many such SKUs are asked once
 * more to find out. Second looks of all daemons are counted in catalog_internal.beliefs (store/trust/calibration.ts);
 * here is what follows. Pure.
 */

/** Prices began to lag behind the delta's reports, or do so no longer. */
export type LatePricesChange =
  | { readonly kind: 'began'; readonly looks: number; readonly found: number }
  | { readonly kind: 'ended'; readonly minutes: number };

/** Prices that lag behind the delta's reports: since when, and what second looks have found. */
export interface LatePrices {
  readonly since: Date;
  readonly looks: number;
  readonly found: number;
}

/** Their cohort in catalog.calibration. */
export const AGAIN = 'again';

/** Second looks, those that found a change, and the part of SKUs that gets one; old ones fade. */
export interface SecondLooks {
  readonly looks: number;
  readonly found: number;
  readonly share: number;
}

/** So many second looks are remembered, the newest most. */
const MEMORY_LOOKS = 60;
/** What is left of as many once they are answered: enough to know that they find nothing. */
const ENOUGH_LOOKS = MEMORY_LOOKS * (1 - Math.exp(-1));
/** Up to this part of them may find a change by chance, a move that came meanwhile, and still they find nothing. */
const HARDLY_ANY = 1 / 30;
/** While they find nothing, this part of the SKUs still gets one, to find a cache that begins later. */
const SAMPLED_SHARE = 1 / 20;
/** What is left of the memory once one of these finds a change: too little to go on with a part. */
const DOUBTED_LOOKS = ENOUGH_LOOKS / 2;

/** What is known after `looks` more second looks, `found` of which found a change. */
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

/** What is believed before any second look was answered, as so many of them. */
const PRIOR = { looks: 20, found: 0.2 };

/** How likely an answer is wrong that had nothing new of what was reported, by what second looks have found. Pure. */
export const lateMovesOf = ({ looks, found }: Pick<SecondLooks, 'looks' | 'found'>): number =>
  (PRIOR.found + found) / (PRIOR.looks + looks);

/** Prices lag where more of these answers are wrong, and no longer where half as many are. */
const LAGGING_PART = 0.05;
/** Fewer that were wrong may be chance. */
const LAGGING_FOUND = 3;

/** Whether prices lag behind the delta's reports, by what is known; `lagged`: they did. Pure. */
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
