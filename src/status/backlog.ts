import { formatAge } from '../lib/duration.ts';
import { count } from '../lib/format.ts';
import type { CatalogCounts } from '../store/status/counts.ts';
import type { Facts } from './facts.ts';
import { sum } from './format.ts';
import { degraded, filling, held, type Reason } from './reason.ts';
import { isAllOutside } from './scope.ts';

/** Above this part of SKUs still to be fetched the mirror is filling; below it they are the new ones of every day. */
const FILLING_PART = 0.01;
/**
 * SKUs in errors, as a number and as a part of all: more than both are no longer single SKUs that the partner cannot
 * answer for.
 */
const FAILING_SKUS = 10;
const FAILING_PART = 0.01;
/** How long a SKU may be due that is delayed by other work only. */
const LATE_SECONDS = 3600;

/**
 * Whether the initial load is running: by the SKUs that were never priced, but for those that were asked and failed.
 * It has done its part for these, however long the partner goes on to fail them.
 */
const isFilling = (pending: number, unanswered: number, all: number): boolean =>
  pending - unanswered > all * FILLING_PART;

/** What the counts say. Before a baseline there is no catalog to measure them by. */
export function backlogReasons({ counts, sync }: Facts): Reason[] {
  if (sync.manifestAppliedAt === null) return [];
  // A count from before the first baseline knows no SKU; the next one is under way.
  const isNews = counts !== null && (counts.skus.length > 0 || counts.ofManifest !== null);
  if (!isNews)
    return [
      filling(
        'filling',
        'initial load: the catalog is being counted for the first time',
        'wait for it; if it lasts, see `counts.failed` in the log',
      ),
    ];
  // That nothing is in scope is a reason of its own.
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

/** Whether more SKUs are in errors than single ones, of so many. */
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
