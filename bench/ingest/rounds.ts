import { median } from '../frame/measure.ts';
import type { Written } from './databases.ts';

/** One run of one way. */
export interface Run extends Written {
  readonly ms: number;
  readonly rssMb?: number;
}

/** What a way came to in all its rounds: medians, and the most memory. */
export interface Result {
  readonly ms: number;
  readonly walMb: number;
  readonly deadTuples: number;
  readonly rssMb: number;
}

/**
 * Runs every way once a round, in turns, so that whatever else the machine does meanwhile hits all alike. Throws
 * where two ways that begin with the same word do not reach the same end state: they did not do the same work.
 */
export async function inRounds(
  ways: Readonly<Record<string, () => Promise<Run>>>,
  rounds: number,
  tell: (line: string) => void = (line) => process.stderr.write(`${line}\n`),
): Promise<(way: string) => Result> {
  const runs = new Map(Object.keys(ways).map((way): [string, Run[]] => [way, []]));
  const digests = new Map<string, string>();
  for (let round = 1; round <= rounds; round += 1) {
    for (const [way, work] of Object.entries(ways)) {
      const run = await work();
      tell(`round ${round}: ${way} ${Math.round(run.ms)} ms`);
      runs.get(way)?.push(run);
      const [job = ''] = way.split(' ');
      const digest = digests.get(job) ?? run.digest;
      digests.set(job, digest);
      if (run.digest !== digest) throw new Error(`${way}: another end state than the others'`);
    }
  }
  return (way) => {
    const of = (value: (run: Run) => number) => (runs.get(way) ?? []).map(value);
    return {
      ms: median(of(({ ms }) => ms)),
      walMb: median(of(({ walBytes }) => walBytes)) / 1e6,
      deadTuples: median(of(({ deadTuples }) => deadTuples)),
      rssMb: Math.max(...of(({ rssMb = Number.NaN }) => rssMb)),
    };
  };
}
