import { IncomingMessage, type ServerOptions, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import { peerOf } from './listen.ts';

/**
 * What a connection waits for: its client sending a whole request, the daemon's answer, or its client reading that.
 */
type Phase = 'request' | 'answer' | 'reader';

export interface HeldConnection {
  /** The address of the client, or of a proxy that has many clients. */
  readonly address: string;
  readonly phase: Phase;
}

export interface Room {
  /** Connections at once. */
  readonly most: number;
  /** How many of them are reserved for clients that have not sent a request yet; answers cannot take these. */
  readonly newcomers: number;
}

/** Below every usual limit of open files, including those for Postgres and Redis. */
const ROOM: Room = { most: 256, newcomers: 64 };
/** How many requests of one connection may have unread answers. A usual client does not even send a second one. */
const MAX_AT_ONCE = 4;
/**
 * How long a client may take to read an answer, even if it reads a byte now and then, which the time-out of an idle
 * connection allows.
 */
const READ_WITHIN_MS = 15_000;

/**
 * Returns the connection to close so that a new one has room; null while there is room. `held` contains all,
 * including the new one, in order of their last progress. Connections without a request go first. If there are few
 * of them (`newcomers`), those whose client does not read go next, and only then those whose answer is not ready.
 * Among these it is one from the address with the most, so that no client crowds out others; there is no limit per
 * address, because a proxy has the connections of all its clients. Of that address it is the one that has waited
 * longest, because a client that asks at once has asked long before its turn comes.
 */
export function crowdedOut<C extends HeldConnection>(held: readonly C[], room: Room): C | null {
  if (held.length <= room.most) return null;
  const within = (phase: Phase) => held.filter((one) => one.phase === phase);
  const [asking, reading] = [within('request'), within('reader')];
  const pool = asking.length > room.newcomers ? asking : reading.length > 0 ? reading : within('answer');
  const counts = new Map<string, number>();
  for (const { address } of pool) counts.set(address, (counts.get(address) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return pool.find(({ address }) => counts.get(address) === most) ?? null;
}

interface Connection extends HeldConnection {
  readonly socket: Socket;
  phase: Phase;
  /** Time of its last progress, by the monotonic clock. */
  since: number;
  /** Requests whose answers are not fully sent, and how many of these answers are ready. */
  open: number;
  made: number;
}

export interface Connections {
  /** Takes in a new connection, and closes one if there is no room. */
  readonly opened: (socket: Socket) => void;
  readonly reading: Pick<ServerOptions, 'IncomingMessage' | 'shouldUpgradeCallback'>;
  /** Notes that a request has come, to be answered by `response`. */
  asked(socket: Socket, response: ServerResponse): void;
  /** Closes a connection that sends too many requests at once. */
  flooded(socket: Socket): void;
  /** Notes that the answer is ready and is being sent. */
  answered(socket: Socket): void;
  /** Closes connections whose client has not read its answer in time. Call this about once a second. */
  readonly expire: () => void;
}

/**
 * Stops reading requests from a connection that `isFull`. By default Node.js parses all requests that have arrived,
 * hundreds at a time, while the event loop does nothing else. It stops only at a request that changes the protocol,
 * so the one too many is declared to be such a request, and `upgrade` is emitted for it. Requests that really ask
 * for an upgrade are read like others.
 */
function readingUpTo(isFull: (socket: Socket) => boolean): Connections['reading'] {
  class Request extends IncomingMessage {
    readonly #oneTooMany = isFull(this.socket);
    get upgrade(): boolean {
      return this.method === 'CONNECT' || this.#oneTooMany;
    }
    // Node.js stores here whether the headers ask for an upgrade.
    set upgrade(_asked: boolean) {}
  }
  return { IncomingMessage: Request, shouldUpgradeCallback: () => true };
}

/** Limits the number of a server's connections. `crowded` is called for each one that had to make room. */
export function createConnections(
  clock: Pick<Clock, 'monotonic'>,
  crowded: (address: string) => void,
): Connections {
  /** In order of their last progress. */
  const held = new Map<Socket, Connection>();

  function moved(connection: Connection): void {
    const { socket, open, made } = connection;
    if (!held.delete(socket)) return;
    connection.phase = open === 0 ? 'request' : made < open ? 'answer' : 'reader';
    connection.since = clock.monotonic();
    held.set(socket, connection);
  }

  function close({ socket, phase }: Connection): void {
    held.delete(socket);
    // The unread part of an answer would stay in the kernel's buffers long after the connection is gone.
    if (phase === 'reader') socket.resetAndDestroy();
    else socket.destroy();
  }

  return {
    opened(socket) {
      const address = peerOf(socket) ?? '';
      const since = clock.monotonic();
      held.set(socket, { socket, address, phase: 'request', since, open: 0, made: 0 });
      socket.once('close', () => held.delete(socket));
      const surplus = crowdedOut([...held.values()], ROOM);
      if (surplus === null) return;
      close(surplus);
      crowded(surplus.address);
    },
    reading: readingUpTo((socket) => (held.get(socket)?.open ?? 0) >= MAX_AT_ONCE),
    asked(socket, response) {
      const connection = held.get(socket);
      if (connection === undefined) return;
      connection.open += 1;
      moved(connection);
      response.once('close', () => {
        connection.open -= 1;
        connection.made -= 1;
        moved(connection);
      });
    },
    flooded(socket) {
      const connection = held.get(socket);
      if (connection !== undefined) close(connection);
    },
    answered(socket) {
      const connection = held.get(socket);
      if (connection === undefined) return;
      connection.made += 1;
      moved(connection);
    },
    expire() {
      const latest = clock.monotonic() - READ_WITHIN_MS;
      for (const connection of held.values())
        if (connection.phase === 'reader' && connection.since < latest) close(connection);
    },
  };
}
