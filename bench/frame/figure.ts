import { cpus } from 'node:os';

/** What a simulation reaches, and what it is to reach. */
export interface Figure {
  readonly what: string;
  /** Mean over the seeds, or the worst where a limit must hold for each. */
  readonly value: number;
  /** The least and the most of all seeds. */
  readonly spread: readonly [number, number];
  readonly reach?: { readonly is: '≥' | '≤'; readonly limit: number };
  readonly ok: boolean;
}

/** Mean over `values`, or with `worst` the one furthest from the limit. */
export function figure(
  what: string,
  values: readonly number[],
  is?: '≥' | '≤',
  limit?: number,
  worst = false,
): Figure {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const furthest = is === '≥' ? Math.min(...values) : Math.max(...values);
  const value = worst ? furthest : mean;
  const spread = [Math.min(...values), Math.max(...values)] as const;
  if (is === undefined || limit === undefined) return { what, value, spread, ok: true };
  const ok = is === '≥' ? value >= limit : value <= limit;
  return { what, value, spread, reach: { is, limit }, ok };
}

/** Prints figures as they come, or all of them as JSON. Sets exit code 1 when one is missed. */
export function printFigures(figures: Iterable<Figure>, seeds: readonly number[], json: boolean): void {
  const out = (line: string) => {
    if (!json) process.stdout.write(`${line}\n`);
  };
  out(
    `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores, Node.js ${process.versions.node}; seeds ${seeds.join(', ')}`,
  );
  const all: Figure[] = [];
  for (const { what, value, spread, reach, ok } of figures) {
    all.push({ what, value, spread, ok, ...(reach === undefined ? {} : { reach }) });
    const limit = reach === undefined ? '' : `reach ${reach.is} ${reach.limit}`;
    out(
      `${ok ? ' ' : '✗'} ${what.padEnd(58)}${value.toFixed(4).padStart(10)}  ${seeds.length > 1 ? `${spread.map((end) => end.toFixed(4)).join(' to ')}  ` : ''}${limit}`,
    );
  }
  if (json) process.stdout.write(`${JSON.stringify({ seeds, figures: all }, null, 2)}\n`);
  process.exitCode = all.every(({ ok }) => ok) ? 0 : 1;
}
