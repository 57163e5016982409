/**
 * Weighted freshness of the best fixed schedule for known rates at `refreshes` a minute, each SKU refreshed evenly: the
 * problem of Cho & Garcia-Molina (2003), solved for the multiplier at which one more refresh anywhere gains the same.
 */
export function knownRatesOptimum(rates: Float64Array, weights: Float64Array, refreshes: number): number {
  const frequencies = new Float64Array(rates.length);
  let [low, high] = [-80, 40];
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    let spent = 0;
    for (let i = 0; i < rates.length; i += 1) {
      const rate = rates[i] as number;
      const gain = (Math.exp(middle) * rate) / (weights[i] as number);
      // Not worth a single refresh at this price.
      const frequency = gain >= 1 ? 0 : rate / ratioAt(gain);
      frequencies[i] = frequency;
      spent += frequency;
    }
    if (spent > refreshes) low = middle;
    else high = middle;
  }
  let fresh = 0;
  let total = 0;
  for (let i = 0; i < rates.length; i += 1) {
    const x = (rates[i] as number) / (frequencies[i] as number);
    fresh += (weights[i] as number) * (Number.isFinite(x) ? -Math.expm1(-x) / x : 0);
    total += weights[i] as number;
  }
  return fresh / total;
}

/** Inverse of g(x) = 1 − e^(−x) − x·e^(−x), the marginal gain of a refresh at changes-per-refresh x, tabulated once. */
const TABLE = Array.from({ length: 4001 }, (_, i) => {
  const x = 10 ** (-6 + (i * 9) / 4000);
  return { x, gain: 1 - Math.exp(-x) - x * Math.exp(-x) };
});

function ratioAt(gain: number): number {
  let [low, high] = [0, TABLE.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((TABLE[middle]?.gain ?? 1) < gain) low = middle + 1;
    else high = middle;
  }
  const above = TABLE[low] ?? { x: 1e3, gain: 1 };
  const below = TABLE[Math.max(0, low - 1)] ?? above;
  const part = above.gain === below.gain ? 0 : (gain - below.gain) / (above.gain - below.gain);
  return below.x + part * (above.x - below.x);
}
