import { MANIFEST_SOURCES, UNTESTED } from '../../store/live/hint-state.ts';
import type { LivePlan } from '../../store/live/live.ts';
import {
  type HintPiece,
  type KnownSource,
  storeHints,
  takeHints,
  type TakenHints,
  withHints,
} from '../../store/sellers/hints.ts';
import type { SyncContext } from '../context.ts';
import { hintedMinutes, hintHazard, jointHazard, jointPull, mostWaiting, undonePart } from '../live/hints.ts';
import { type RefreshTerms, rateOf } from '../live/policy.ts';
import { earlyAfter, boostPlan } from '../live/product-lines.ts';

/** Hints that are read before one call, in a few milliseconds. */
const PIECE = 1000;
/** Sellers' sources beyond this number are counted as one. */
const MAX_SOURCES = 50;
const OTHER = 'other';
const OWN: ReadonlySet<string> = new Set(MANIFEST_SOURCES);

/**
 * Reads a piece of the hints that sellers have given, and brings refreshes forward accordingly, unless somebody
 * keeps hints locked.
 */
export async function followHints(ctx: SyncContext, plan: LivePlan): Promise<void> {
  const boost = boostPlan(plan);
  const fresh = await withHints(ctx.sql, async (tx) => {
    const piece = await takeHints(tx, PIECE);
    if (piece.hints.length === 0) return [];
    const { fresh: first, ...taken } = weighHints(piece, boost);
    const pulled = taken.skus.filter(({ inMinutes }) => inMinutes !== null).length;
    const now = plan.now / 60_000;
    await storeHints(tx, { ...taken, early: earlyAfter(plan.releases, pulled, now), earlyAt: now });
    return first;
  });
  for (const source of fresh ?? []) ctx.emit({ event: 'hint.source', source });
}

const hasRoom = (known: ReadonlyMap<string, KnownSource>): boolean =>
  [...known.keys()].filter((source) => !OWN.has(source)).length < MAX_SOURCES;

type Weighed = Omit<TakenHints, 'early' | 'earlyAt'> & { readonly fresh: readonly string[] };

/**
 * Returns what follows from a piece of hints; `fresh`: sources that had given none before. `boost` null: refreshes
 * are not scarce.
 */
function weighHints({ hints, skus, sources }: HintPiece, boost: RefreshTerms | null): Weighed {
  const known = new Map<string, KnownSource>(sources.map((source) => [source.source, source]));
  const fresh: string[] = [];
  const counted = new Map<string, { source: string; hints: number; pulled: number; lastHint: string }>();
  const waiting: TakenHints['waiting'][number][] = [];
  const of = new Map(
    skus.map((sku) => [
      sku.sku,
      { ...sku, hints: [...sku.hints], inMinutes: null as number | null, isHinted: false },
    ]),
  );
  for (const { source: named, sku, hintedAt } of hints) {
    const source = OWN.has(named) || known.has(named) || hasRoom(known) ? named : OTHER;
    if (!known.has(source) && !OWN.has(source)) fresh.push(source);
    const from = known.get(source) ?? { ...UNTESTED, source, waiting: 0 };
    known.set(source, from);
    const count = counted.get(source) ?? { source, hints: 0, pulled: 0, lastHint: hintedAt };
    counted.set(source, { ...count, hints: count.hints + 1, lastHint: hintedAt });
    const at = sku === null ? undefined : of.get(sku);
    if (at === undefined || from.waiting >= mostWaiting(from)) continue;
    if (at.hints.some((other) => other.source === source)) continue;
    const hazard = hintHazard(from);
    const undone = undonePart(from);
    at.hints.push({ source, hazard, undone });
    at.isHinted = true;
    waiting.push({ sku: at.sku, source, hazard, undone, hintedAt });
    known.set(source, { ...from, waiting: from.waiting + 1 });
    if (hazard === 0 || boost === null || !at.movable) continue;
    const dueIn = Math.min(at.dueIn, at.inMinutes ?? Infinity);
    const inMinutes = hintedMinutes({ ...at, rate: rateOf(at), dueIn }, jointPull(at.hints), boost);
    if (inMinutes === null) continue;
    at.inMinutes = inMinutes;
    counted.set(source, { ...count, hints: count.hints + 1, pulled: count.pulled + 1, lastHint: hintedAt });
  }
  const hinted = [...of.values()].filter(({ isHinted }) => isHinted);
  return {
    waiting,
    skus: hinted.map(({ sku, hints: all, inMinutes }) => ({ sku, hazard: jointHazard(all), inMinutes })),
    sources: [...counted.values()],
    fresh,
  };
}
