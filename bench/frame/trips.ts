import { connect, type Socket } from 'node:net';
import postgres from 'postgres';
import type { Sql } from '../../src/store/connection/db.ts';

/** A client of one connection that counts its round trips. */
export interface CountingClient {
  readonly sql: Sql;
  /** How often the client sent something while nothing it had sent was unanswered. */
  readonly trips: () => number;
}

/** Connects to Postgres, without TLS, through a socket that counts what is asked and what is answered. */
export function countingClient(url: string): CountingClient {
  const { hostname, port } = new URL(url);
  let trips = 0;
  // The option is known to the driver and missing in its types.
  const options: postgres.Options<Record<string, never>> & { socket: () => Promise<Socket> } = {
    max: 1,
    onnotice: () => {},
    socket: async () => counted(await connected(hostname, Number(port)), () => (trips += 1)),
  };
  const sql = postgres(url, options);
  return { sql, trips: () => trips };
}

async function connected(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port });
  await new Promise((resolve, reject) => {
    socket.once('connect', resolve).once('error', reject);
  });
  return socket;
}

/**
 * Tells of each piece that is sent while no statement is under way: each ends with Sync or is a Query, and is
 * answered by ReadyForQuery.
 */
function counted(socket: Socket, onTrip: () => void): Socket {
  // The beginning of the connection is answered by a ReadyForQuery, too.
  let asked = 1;
  let answered = 0;
  const sent = messages(false);
  const received = messages(true);
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = (...args: unknown[]) => {
    const piece = args[0] as Buffer;
    if (asked === answered) onTrip();
    asked += sent(piece).filter((type) => type === 'S' || type === 'Q').length;
    return write(...args);
  };
  socket.on('data', (piece: Buffer) => {
    answered += received(piece).filter((type) => type === 'Z').length;
  });
  return socket;
}

/** Reads the types of the messages in the pieces of one direction. The client's first message has no type. */
function messages(typedFromStart: boolean): (piece: Buffer) => string[] {
  let rest = Buffer.alloc(0);
  let typed = typedFromStart;
  return (piece) => {
    rest = Buffer.concat([rest, piece]);
    const types: string[] = [];
    for (;;) {
      const head = typed ? 1 : 0;
      if (rest.length < head + 4) return types;
      const end = head + rest.readInt32BE(head);
      if (rest.length < end) return types;
      if (typed) types.push(String.fromCharCode(rest[0] ?? 0));
      rest = rest.subarray(end);
      typed = true;
    }
  };
}
