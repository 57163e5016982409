import type { LineRefresh } from '../../src/store/answer/types.ts';
import { type Line, QUIET_LINE } from '../../src/store/live/product-line-state.ts';
import { type LineTransition, NO_RELEASES, weighRefresh } from '../../src/sync/live/releases.ts';

export const NOW = 1_000_000;
export const WHOLESALE = { held: 10, moved: 8 };
export const UNMOVED = { held: 10, moved: 0 };
/** A SKU that hardly ever moves wholesale on its own. */
const CALM = { moves: 0, minutes: 2880 };

export const refresh = (at: number, over: Partial<LineRefresh> = {}): LineRefresh => ({
  at,
  minutes: 60,
  sizes: WHOLESALE,
  wholesale: CALM,
  ...over,
});

/** Weighs refreshes one after the other. Returns the line after them, and its transitions on the way. */
export function weighAll(refreshes: readonly LineRefresh[], from: Line = QUIET_LINE) {
  let line = from;
  const turns: LineTransition[] = [];
  for (const each of refreshes) {
    const weighed = weighRefresh(line, each, NO_RELEASES);
    ({ line } = weighed);
    if (weighed.turn !== null) turns.push(weighed.turn);
  }
  return { line, turns };
}

export const suspected = () => weighAll([refresh(NOW), refresh(NOW + 0.1)]).line;
export const released = () =>
  weighAll(
    Array.from({ length: 6 }, (_, i) => refresh(NOW + 1 + i / 10)),
    suspected(),
  ).line;
