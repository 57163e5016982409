/** Milliseconds that `work` takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** The value below which the part `q` of the samples lies. */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5);

/**
 * Runs every work once a round, in turns, so that whatever else the machine does meanwhile hits all alike; the first
 * round only warms up. Returns the milliseconds of each, by name.
 */
export async function inTurns(
  works: Readonly<Record<string, () => Promise<unknown>>>,
  rounds: number,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const times = new Map(Object.keys(works).map((name): [string, number[]] => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, work] of Object.entries(works)) {
      const ms = await timed(work);
      if (round > 0) times.get(name)?.push(ms);
    }
  }
  return times;
}
