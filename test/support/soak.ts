/** How many times as long the property tests run: SOAK=10 is `npm run test:histories`; 1 otherwise. */
const FACTOR = Math.max(1, Number(process.env['SOAK'] ?? 1) || 1);

/** Runs of a property: `usual` ones in `npm test`, as many times more as SOAK says. */
export function runs(usual: number): number {
  return Math.round(usual * FACTOR);
}
