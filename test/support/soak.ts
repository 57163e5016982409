/** Factor by which property tests run longer: SOAK=10 is `npm run test:histories`; 1 otherwise. */
const FACTOR = Math.max(1, Number(process.env['SOAK'] ?? 1) || 1);
/** Whether this is `npm run test:long`. */
const IS_LONG = process.env['LONG_RUN'] === '1';

/** Returns the runs of a property: `usual` in `npm test`, `long` in `npm run test:long`, times SOAK. */
export function runs(usual: number, long = usual): number {
  return Math.round((IS_LONG ? long : usual) * FACTOR);
}

/** Returns `usual` of the cases, drawn anew each time, in `npm test`; all of them in `npm run test:long`. */
export function some<T>(cases: readonly T[], usual: number): readonly T[] {
  if (IS_LONG) return cases;
  return cases
    .map((one) => ({ one, key: Math.random() }))
    .toSorted((a, b) => a.key - b.key)
    .slice(0, usual)
    .map(({ one }) => one);
}
