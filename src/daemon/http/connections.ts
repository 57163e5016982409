import { IncomingMessage, type ServerOptions, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import { peerOf } from './listen.ts';

/**
 * What a connection waits for: that its client has sent a whole request, that the daemon answers, or that the client
 * reads.
 */
type Phase = 'request' | 'answer' | 'reader';

export interface HeldConnection {
  /** Of the client, or of the proxy that stands for many. */
  readonly address: string;
  readonly phase: Phase;
}

export interface Room {
  /** Connections at once. */
  readonly most: number;
  /** How many of them are kept for clients that have not asked yet, and no answer can take. */
  readonly newcomers: number;
}

/** Under every usual limit of open files, with those of Postgres and Redis. */
const ROOM: Room = { most: 256, newcomers: 64 };
/** Requests of one connection whose answers are not read yet. No usual client sends a second one. */
const MAX_AT_ONCE = 4;
/**
 * How long an answer may be read. Beside the time-out of a connection on which nothing moves, for readers of a byte
 * now and then.
 */
const READ_WITHIN_MS = 15_000;

/**
 * The connection to close so that a new one has room; null while there is room. In: all, the new one too, in order of
 * their last progress. Connections without a request go first; if there are few of them (`newcomers`), those whose
 * client does not read, and only then those whose answer is not there yet. Among these it is one of the address that
 * has most, so that no client crowds out others; there is no limit per address, because a proxy has the connections of
 * all its clients. Of that address it is the one that has waited longest, because a client that asks at once has asked
 * long before its turn to go.
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
  /** Of its last progress, by the monotonic clock. */
  since: number;
  /** Requests whose answers are not gone yet, and how many of these answers are made. */
  open: number;
  made: number;
}

export interface Connections {
  /** Takes in a new connection, and closes another one where there is no room. */
  readonly opened: (socket: Socket) => void;
  /** For the server: how requests are read. */
  readonly reading: Pick<ServerOptions, 'IncomingMessage' | 'shouldUpgradeCallback'>;
  /** A request has come, and `response` is for its answer. */
  asked(socket: Socket, response: ServerResponse): void;
  /** More requests at once than a connection may send. */
  flooded(socket: Socket): void;
  /** The answer is made, and goes on its way now. */
  answered(socket: Socket): void;
  /** Closes connections whose client has not read its answer in time. Call this about once a second. */
  readonly expire: () => void;
}

/**
 * Reads no further request of a connection that `isFull`. By itself Node.js parses all requests that have come,
 * hundreds in one go, while the event loop does nothing else. It stops only at a request that changes the protocol, so
 * the one too many is declared to be such a request, and `upgrade` is emitted for it. Requests that do ask for an
 * upgrade are read like others.
 */
function readingUpTo(isFull: (socket: Socket) => boolean): Connections['reading'] {
  class Request extends IncomingMessage {
    readonly #oneTooMany = isFull(this.socket);
    get upgrade(): boolean {
      return this.method === 'CONNECT' || this.#oneTooMany;
    }
    // Node.js says here whether the headers ask for one.
    set upgrade(_asked: boolean) {}
  }
  return { IncomingMessage: Request, shouldUpgradeCallback: () => true };
}

/** Keeps the connections of a server few. `crowded` is told of each that had to make room. */
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
    // What an unread answer has in the kernel's buffers would stay there, long after the connection has gone.
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
