/** How many times as long the property tests run: SOAK=10 is `npm run test:histories`; 1 otherwise. */
const FACTOR = Math.max(1, Number(process.env['SOAK'] ?? 1) || 1);
/** In `npm run test:long`. */
const IS_LONG = process.env['LONG_RUN'] === '1';

/**
 * Runs of a property: `usual` ones in `npm test`, `long` ones in `npm run test:long`, as many times more as SOAK says.
 */
export function runs(usual: number, long = usual): number {
  return Math.round((IS_LONG ? long : usual) * FACTOR);
}

/** So many of the cases, drawn anew each time, in `npm test`; all of them in `npm run test:long`. */
export function some<T>(cases: readonly T[], usual: number): readonly T[] {
  if (IS_LONG) return cases;
  return cases
    .map((one) => ({ one, key: Math.random() }))
    .toSorted((a, b) => a.key - b.key)
    .slice(0, usual)
    .map(({ one }) => one);
}
