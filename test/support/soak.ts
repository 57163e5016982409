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
