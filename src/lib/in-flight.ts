/**
 * Whoever asks while a reading is on its way gets that one: many who ask at once, or again and again, make no more
 * work than one. After `freshMs` it counts as lost, and whoever asks then begins another. `now`: monotonic ms.
 */
export function sharedInFlight<T>(
  read: () => Promise<T>,
  freshMs: number,
  now: () => number,
): () => Promise<T> {
  let last: { readonly begunAt: number; readonly reading: Promise<T> } | null = null;
  return () => {
    if (last !== null && now() - last.begunAt < freshMs) return last.reading;
    const mine = {
      begunAt: now(),
      reading: read().finally(() => {
        if (last === mine) last = null;
      }),
    };
    last = mine;
    return mine.reading;
  };
}
