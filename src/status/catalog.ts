import { formatAge } from '../lib/duration.ts';
import { count } from '../lib/format.ts';
import { isFault, type MassMove } from '../store/answer/mass-move.ts';
import type { Scope } from '../store/sellers/scope.ts';
import type { CatalogCounts } from '../store/status/counts.ts';
import type { Facts } from './facts.ts';
import { skusText, sum } from './format.ts';
import { degraded, held, type Reason, filling } from './reason.ts';
import type { MirrorStats } from './status.ts';

/*
 * What health says about the catalog: its scope, backlog, mass moves and late prices. Pure, and part of
 * `judgeHealth` (health.ts).
 */

const skusIn = ({ skus }: Pick<MirrorStats, 'skus'>): number => sum(skus.map((row) => row.count));

/** Returns how much of the catalog is in scope, in words; null if all of it is. */
export function scopeText(stats: Pick<MirrorStats, 'skus' | 'outOfScope'>): string | null {
  if (stats.outOfScope === null) return null;
  const inside = skusIn(stats);
  return `${count(inside)} of ${skusText(inside + stats.outOfScope)}`;
}

/** Returns whether everything that was counted is out of scope. */
const isAllOutside = (counts: Pick<MirrorStats, 'skus' | 'outOfScope'>): boolean =>
  (counts.outOfScope ?? 0) > 0 && skusIn(counts) === 0;

const RULES = 'insert rules into catalog.scope, or set MIRROR_SCOPE=catalog';

/** Returns why nothing is in scope; null if something is, or may be once all is sorted and counted. */
export function whyNothing({ scoped, rules, moving }: Scope, counts: Facts['counts']): string | null {
  if (!scoped) return null;
  if (rules === 0) return 'nothing is priced: MIRROR_SCOPE is scope, and catalog.scope has no rule';
  if (moving || counts === null || !isAllOutside(counts)) return null;
  return `nothing is priced: MIRROR_SCOPE is scope, and none of the rules of catalog.scope (${count(rules)}) includes a SKU`;
}

/** Returns the reasons about the scope: nothing is priced, or daemons disagree about MIRROR_SCOPE. Pure. */
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

/**
 * With more than this part of the SKUs still to be fetched, the mirror is filling; fewer are the new ones of every
 * day.
 */
const FILLING_PART = 0.01;
/**
 * SKUs in errors, as a number and as a part of all: more than both are not just single SKUs that the partner
 * cannot answer for.
 */
const FAILING_SKUS = 10;
const FAILING_PART = 0.01;
/** How long a SKU may be due that is delayed only by other work. */
const LATE_SECONDS = 3600;

/**
 * Decides whether the initial load is running, by how many SKUs were never priced. SKUs that were asked and failed
 * do not count, because the load has done its part for these, however long the partner keeps failing them.
 */
const isFilling = (pending: number, unanswered: number, all: number): boolean =>
  pending - unanswered > all * FILLING_PART;

/** Returns the reasons that counts give. Before a baseline there is no catalog to measure them by. */
export function backlogReasons({ counts, sync }: Facts): Reason[] {
  if (sync.manifestAppliedAt === null) return [];
  // A count from before the first baseline contains no SKU; the next one is under way.
  const isNews = counts !== null && (counts.skus.length > 0 || counts.ofManifest !== null);
  if (!isNews)
    return [
      filling(
        'filling',
        'initial load: the catalog is being counted for the first time',
        'wait for it; if it lasts, see `counts.failed` in the log',
      ),
    ];
  // There is a separate reason if nothing is in scope.
  if (isAllOutside(counts)) return [];
  const total = (states: readonly string[]) =>
    sum(counts.skus.filter(({ state }) => states.includes(state)).map((row) => row.count));
  const all = sum(counts.skus.map((row) => row.count));
  const pending = total(['pending']);
  if (isFilling(pending, counts.unanswered, all))
    return held([
      failingSkus(counts, all),
      filling(
        'filling',
        `initial load: ${count(all - pending)} of ${count(all)} SKUs fetched`,
        'wait, or see `catalog-mirror plan` for what more requests would change',
      ),
    ]);
  if (pending + total(['priced']) === 0)
    return [
      degraded(
        'empty',
        `none of ${count(all)} SKUs is sold, so there are no prices`,
        'check with the partner, then run `catalog-mirror refresh --all`',
      ),
    ];
  // Deferred SKUs and those in error wait for reasons of their own and keep their place by age.
  const ages = counts.due.flatMap(({ reason: why, oldestAgeSeconds }) =>
    why === 'deferred' || why === 'error' ? [] : [oldestAgeSeconds],
  );
  const oldest = Math.max(0, ...ages);
  return held([
    failingSkus(counts, all),
    oldest > LATE_SECONDS &&
      degraded(
        'backlog-late',
        `refreshes are up to ${formatAge(oldest)} late`,
        'raise PARTNER_RATE_SHARE or the target ages; `catalog-mirror plan` estimates the effect',
      ),
  ]);
}

/** Returns a reason if more than single SKUs of `all` are in errors. */
function failingSkus({ due }: Pick<CatalogCounts, 'due'>, all: number): Reason | false {
  const failing = sum(due.filter(({ reason: why }) => why === 'error').map((row) => row.count));
  return (
    failing > Math.max(FAILING_SKUS, all * FAILING_PART) &&
    degraded(
      'skus-failing',
      `the partner answers ${count(failing)} SKUs with an error, or in a form that cannot be read; ` +
        'each is asked again at growing intervals',
      'if it lasts, run `catalog-mirror doctor`, and ask the partner',
    )
  );
}

/** Returns a reason if prices move implausibly in masses: what shows it, and who decides. */
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

/**
 * Returns a reason if the partner reports prices before it answers them: second looks find too many answers to
 * reports wrong.
 */
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

/**
 * Describes what shows that prices move implausibly in masses. The numbers are stored once everything that moved
 * is doubted, and a fault found during a mass move is counted only from then on: until then there are none.
 */
function shownOf({ kind, answers, implausible, move, factor }: MassMove): string {
  const isCounted = implausible > 0;
  const odd = `${count(implausible)} of ${count(answers)}`;
  const by = factor === null ? null : times(factor);
  const shown = `${odd} answers within an hour were hardly prices`;
  switch (kind) {
    case 'lost':
      return isCounted
        ? `${odd} SKUs that were asked within an hour have lost all their prices`
        : 'many SKUs have lost all their prices';
    case 'far':
      return move === null
        ? 'prices have moved further than they usually do'
        : `half of the prices that moved within an hour did so by ${count(Math.round(100 * Math.expm1(move)))} % or more`;
    case 'factor-of-some':
      return `several SKUs${isCounted ? ` among the ${odd} answers` : ''} are ${times(factor ?? 0)} what they were; no others wait`;
    case 'one-price':
      return isCounted
        ? `${shown}, most of them one price for all sizes`
        : 'many SKUs have one price for all sizes';
    default:
      if (by !== null)
        return isCounted
          ? `${shown}, many of them ${by} what they were`
          : `many SKUs are ${by} what they were`;
      return isCounted ? shown : 'many answers were hardly prices';
  }
}

/** Formats a factor (natural logarithm) in words: 100 times, 1/100 of. */
function times(factor: number): string {
  const by = Math.exp(Math.abs(factor));
  const shown = by < 10 ? String(Number(by.toPrecision(3))) : count(Math.round(by));
  return factor >= 0 ? `${shown} times` : `1/${shown} of`;
}
