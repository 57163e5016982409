import { formatAge } from '../lib/duration.ts';
import { count } from '../lib/format.ts';
import { isFault, type MassMove } from '../store/answer/move-counts.ts';
import type { Facts } from './facts.ts';
import { degraded, type Reason } from './reason.ts';

/** That prices move implausibly in masses, what shows it, and who decides. */
export function massMoveReasons({
  now,
  doubts: { implausible, massMoved, last, massMove },
}: Facts): Reason[] {
  if (massMove === null) return [];
  const { since, kind } = massMove;
  const shown = shownOf(massMove);
  const age = formatAge(Math.max(0, (now.getTime() - since.getTime()) / 1000));
  const what = kind === 'factor-of-some' ? 'prices of some SKUs have' : 'prices have';
  const many = kind === 'factor-of-some' ? 'by one factor' : 'in masses';
  return [
    degraded(
      'mass-move',
      `${what} moved implausibly ${many} for ${age} (${shown}); ${count(implausible + massMoved)} SKUs ` +
        `wait for ${isFault(kind) ? 'your word' : 'a second answer'}${last === null ? '' : `, last ${last}`}`,
      'if the market did move, run `catalog-mirror refresh --accept`; else tell the partner',
    ),
  ];
}

/** That the partner reports prices before it answers them: second looks find too many answers to reports wrong. */
export function lateReasons({ latePrices = null, now }: Facts): Reason[] {
  if (latePrices === null) return [];
  const { since, looks, found } = latePrices;
  const age = formatAge(Math.max(0, (now.getTime() - since.getTime()) / 1000));
  return [
    degraded(
      'prices-lag',
      `prices have lagged behind the delta's reports for ${age}: ${count(Math.round(found))} of the last ` +
        `${count(Math.round(looks))} answers with the prices of before were wrong when they were seen again`,
      'it is probably a cache of the partner: tell them; such prices are not acted on until they are seen again',
    ),
  ];
}

/** What shows that prices move implausibly in masses. */
function shownOf({ kind, answers, implausible, move, factor }: MassMove): string {
  const odd = `${count(implausible)} of ${count(answers)}`;
  if (kind === 'lost') return `${odd} SKUs that were asked within an hour have lost all their prices`;
  if (kind === 'far')
    return `half of the prices that moved within an hour did so by ${count(Math.round(100 * Math.expm1(move ?? 0)))} % or more`;
  if (kind === 'factor-of-some')
    return `several SKUs among the ${odd} answers are ${times(factor ?? 0)} what they were; no others wait`;
  const shown = `${odd} answers within an hour were hardly prices`;
  if (kind === 'one-price') return `${shown}, most of them one price for all sizes`;
  return factor === null ? shown : `${shown}, many of them ${times(factor)} what they were`;
}

/** A factor (natural logarithm) as one says it: 100 times, 1/100 of. */
function times(factor: number): string {
  const by = Math.exp(Math.abs(factor));
  const shown = by < 10 ? String(Number(by.toPrecision(3))) : count(Math.round(by));
  return factor >= 0 ? `${shown} times` : `1/${shown} of`;
}
