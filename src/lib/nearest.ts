/** Counts the edits (insert, delete, replace) from one name to the other. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Returns the candidate that takes the fewest edits, if no more than `most` allows for it; of equals the first. */
export function nearest(
  name: string,
  candidates: readonly string[],
  most: (candidate: string) => number,
): string | undefined {
  const far = candidates.map((candidate) => [candidate, distance(name, candidate)] as const);
  return far
    .filter(([candidate, edits]) => edits <= most(candidate))
    .toSorted(([, a], [, b]) => a - b)[0]?.[0];
}
