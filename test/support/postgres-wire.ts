import type { Watcher } from './proxy.ts';

/** Where a connection is lost around the end of a transaction. */
export type CommitCut = 'before COMMIT arrives' | 'after COMMIT, before its answer' | 'right behind COMMIT';

/**
 * Returns a reader that extracts the statements of a client, prepared ones included, from the pieces of one
 * connection.
 */
function statementReader(): (piece: Buffer) => string[] {
  let rest = Buffer.alloc(0);
  let begun = false;
  const prepared = new Map<string, string>();
  return (piece) => {
    rest = Buffer.concat([rest, piece]);
    const statements: string[] = [];
    for (;;) {
      // The first message of a connection has no type.
      const head = begun ? 1 : 0;
      if (rest.length < head + 4) return statements;
      const end = head + rest.readInt32BE(head);
      if (rest.length < end) return statements;
      const type = begun ? String.fromCharCode(rest[0] ?? 0) : '';
      const [first = '', second = ''] = rest.toString('utf8', head + 4, end).split('\0');
      rest = rest.subarray(end);
      begun = true;
      if (type === 'Q') statements.push(first);
      else if (type === 'P') prepared.set(first, second);
      else if (type === 'B') statements.push(prepared.get(second) ?? '');
    }
  };
}

/**
 * Cuts the connection at the COMMIT of transactions in which a statement matched `of`, `times` times in all. Set
 * it before the connections are made, because statements prepared earlier cannot be recognised.
 */
export function atCommit(
  of: RegExp,
  cut: CommitCut,
  times = 1,
): { readonly watcher: () => Watcher; hits(): number } {
  let hits = 0;
  const watcher = (): Watcher => {
    const read = statementReader();
    let matched = false;
    let committing = false;
    return (piece, direction) => {
      if (direction === 'to-client') return committing ? 'cut' : 'pass';
      let here = false;
      for (const statement of read(piece)) {
        if (/^\s*begin/i.test(statement)) matched = false;
        if (of.test(statement)) matched = true;
        if (/^\s*commit/i.test(statement) && matched) here = true;
      }
      if (!here || hits >= times) return 'pass';
      hits += 1;
      if (cut === 'before COMMIT arrives') return 'cut';
      if (cut === 'right behind COMMIT') return 'pass-and-cut';
      committing = true;
      return 'pass';
    };
  };
  return { watcher, hits: () => hits };
}

/**
 * Cuts every connection that sends a statement like `of`, before the server sees it. Set it before they are made.
 */
export function atStatement(of: RegExp): { readonly watcher: () => Watcher; hits(): number } {
  let hits = 0;
  const watcher = (): Watcher => {
    const read = statementReader();
    return (piece, direction) => {
      if (direction === 'to-client' || !read(piece).some((statement) => of.test(statement))) return 'pass';
      hits += 1;
      return 'cut';
    };
  };
  return { watcher, hits: () => hits };
}
