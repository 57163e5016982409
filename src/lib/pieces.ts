/**
 * Works through texts in order, one piece at a time, so that nobody waits long for any of them. `work` gets the last
 * text of the previous piece ('' at first) and returns the last of its own, or null to end.
 */
export async function inPieces(work: (after: string) => Promise<string | null>): Promise<void> {
  for (let after: string | null = ''; after !== null;) after = await work(after);
}
