import { count } from '../lib/format.ts';
import type { Scope } from '../store/sellers/scope.ts';
import type { Facts } from './facts.ts';
import { skusText, sum } from './format.ts';
import { degraded, held, type Reason } from './reason.ts';
import type { MirrorStats } from './stats.ts';

/*
 * What is in scope, in words, and where that is hardly what anybody means. Pure, and part of `judgeHealth` (health.ts).
 */

const skusIn = ({ skus }: Pick<MirrorStats, 'skus'>): number => sum(skus.map((row) => row.count));

/** How much of the catalog is in scope; null where all of it is. */
export function scopeText(stats: Pick<MirrorStats, 'skus' | 'outOfScope'>): string | null {
  if (stats.outOfScope === null) return null;
  const inside = skusIn(stats);
  return `${count(inside)} of ${skusText(inside + stats.outOfScope)}`;
}

/** Whether everything that was counted is out of scope. */
export const isAllOutside = (counts: Pick<MirrorStats, 'skus' | 'outOfScope'>): boolean =>
  (counts.outOfScope ?? 0) > 0 && skusIn(counts) === 0;

const RULES = 'insert rules into catalog.scope, or set MIRROR_SCOPE=catalog';

/** Why nothing is in scope; null where something is, or may be once all is sorted and counted. */
export function whyNothing({ scoped, rules, moving }: Scope, counts: Facts['counts']): string | null {
  if (!scoped) return null;
  if (rules === 0) return 'nothing is priced: MIRROR_SCOPE is scope, and catalog.scope has no rule';
  if (moving || counts === null || !isAllOutside(counts)) return null;
  return `nothing is priced: MIRROR_SCOPE is scope, and none of the rules of catalog.scope (${count(rules)}) includes a SKU`;
}

/** What the judge of health says of the scope: nothing is priced, or daemons disagree about MIRROR_SCOPE. Pure. */
export function scopeReasons({ scope, counts }: Pick<Facts, 'scope' | 'counts'>): Reason[] {
  const nothing = whyNothing(scope, counts);
  const { scoped, otherwise } = scope;
  const daemons = otherwise === 1 ? 'a running daemon has' : `${count(otherwise)} running daemons have`;
  return held([
    nothing !== null && degraded('scope-empty', nothing, RULES),
    otherwise > 0 &&
      degraded(
        'scope-differs',
        `${daemons} another MIRROR_SCOPE than ${scoped ? 'scope' : 'catalog'}, which counts for all of them`,
        'give all daemons on this database the same one, and restart those that have another',
      ),
  ]);
}
