import type { LiveCandidate } from '../store/live.ts';
import { placeLive, releaseSnapshot, unplacedLive } from '../store/live-order.ts';
import type { SyncContext } from './context.ts';
import { type Rate, rateFromPast } from './live-policy.ts';
import { nextLooks } from './next-looks.ts';

const AT_ONCE = 10_000;

/** What is believed of a SKU's rate of change: what looks have taught, else what its past says. */
export function rateOf({
  alpha,
  beta,
  pastMoves,
  pastMinutes,
}: Pick<LiveCandidate, 'alpha' | 'beta' | 'pastMoves' | 'pastMinutes'>): Rate {
  if (alpha !== null && beta !== null) return { alpha, beta };
  return rateFromPast(pastMoves ?? 0, pastMinutes ?? 0);
}

/**
 * Gives SKUs their places in the order of live looks, each as long after its last look as `waitMinutes` says: with `all`
 * those that have a place too, as after a change of the plan. Returns how many.
 */
export async function placeAll(
  ctx: SyncContext,
  waitMinutes: (weight: number, rate: Rate) => number,
  all: boolean,
  incident: boolean,
): Promise<number> {
  let placed = 0;
  let after = '';
  for (;;) {
    const piece = await unplacedLive(ctx.sql, { after, limit: AT_ONCE, placed: all, incident });
    const last = piece.at(-1);
    if (last === undefined) return placed;
    after = last.sku;
    placed += piece.length;
    await placeLive(
      ctx.sql,
      piece.map((sku) => {
        const rate = rateOf(sku);
        const wait = sku.minutes === null ? 0 : waitMinutes(sku.weight, rate) - sku.minutes;
        return { sku: sku.sku, generation: sku.generation, ...rate, inMs: wait * 60_000 };
      }),
    );
  }
}

/** After an incident: everything that the catalog lists as snapshot-priced goes back to its sweep. */
export async function releaseSnapshots(ctx: SyncContext): Promise<void> {
  const { snapshotMs: everyMs, snapshotReason: reason } = nextLooks(ctx.settings);
  let after: string | null = '';
  while (after !== null) {
    after = await releaseSnapshot(ctx.sql, { after, limit: AT_ONCE, everyMs, reason });
  }
}
