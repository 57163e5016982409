/**
 * Shares readings among callers. A caller who asks while a reading is under way gets the next one, which begins when
 * that is over and is shared by all who have asked by then. So however many callers there are, one reading runs at a
 * time, and nobody gets a reading that began before the call. After `freshMs` a reading counts as lost, and the next
 * caller begins another. `now`: monotonic milliseconds.
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
    // Later callers do not join those that wait for a lost reading.
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
