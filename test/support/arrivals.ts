/** Returns the most of these times in any window of `spanMs`; one exactly as old as the window no longer counts. */
export function mostWithin(times: readonly number[], spanMs: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  let first = 0;
  return sorted.reduce((most, at, i) => {
    while ((sorted[first] ?? at) <= at - spanMs) first += 1;
    return Math.max(most, i - first + 1);
  }, 0);
}

/** Returns how many of these times lie in [from, to). */
export function countIn(times: readonly number[], from: number, to: number): number {
  return times.filter((at) => at >= from && at < to).length;
}
