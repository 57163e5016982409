/**
 * Works through texts in their order, a piece at a time, so that nobody waits long for any of them. `work` is given the
 * last text of the piece before, at first '', and returns that of its own; null ends it.
 */
export async function inPieces(work: (after: string) => Promise<string | null>): Promise<void> {
  for (let after: string | null = ''; after !== null;) after = await work(after);
}
