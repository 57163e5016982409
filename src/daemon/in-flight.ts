/**
 * Whoever asks while a reading is on its way gets the next one, which begins once that is over and is shared by all who
 * have asked by then: many who ask at once, or again and again, make one reading at a time, and nobody gets one that
 * began before he asked. After `freshMs` a reading counts as lost, and whoever asks then begins another. `now`:
 * monotonic ms.
 */
export function sharedInFlight<T>(
  read: () => Promise<T>,
  freshMs: number,
  now: () => number,
): () => Promise<T> {
  let current: { readonly begunAt: number; readonly reading: Promise<T> } | null = null;
  let next: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    const mine = {
      begunAt: now(),
      reading: read().finally(() => {
        if (current === mine) current = null;
      }),
    };
    current = mine;
    // Who waits for one that is lost waits alone.
    next = null;
    return mine.reading;
  };
  const afterThis = async (reading: Promise<T>): Promise<T> => {
    await reading.catch(() => {});
    return await ask();
  };
  function ask(): Promise<T> {
    if (current === null || now() - current.begunAt >= freshMs) return begin();
    next ??= afterThis(current.reading);
    return next;
  }
  return ask;
}
