import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** How data passes. Changes also affect existing connections. */
export interface Weather {
  /** Milliseconds by which each piece is delayed, in each direction. */
  readonly latencyMs: number;
  /** Size in bytes of the pieces that are passed on; Infinity = as they come. */
  readonly sliceBytes: number;
  /** Bytes per second, in each direction of each connection. */
  readonly bytesPerSecond: number;
  /** Swallows everything and passes nothing on. */
  readonly blackHole: boolean;
  /** Resets new connections. */
  readonly refuse: boolean;
}

const FAIR: Weather = {
  latencyMs: 0,
  sliceBytes: Infinity,
  bytesPerSecond: Infinity,
  blackHole: false,
  refuse: false,
};

export type Direction = 'to-server' | 'to-client';

/**
 * What happens to a piece: it is passed on, passed on with a reset after it, or replaced by a reset. With
 * 'silence' all connections fall silent, either including this piece or after it.
 */
export type PieceResult =
  | 'pass'
  | 'pass-and-cut'
  | 'cut'
  | 'pass-and-half-close'
  | 'silence'
  | 'pass-and-silence';

/** Inspects each piece of one connection before it is passed on. */
export type Watcher = (piece: Buffer, direction: Direction) => PieceResult;

/** A connection to a server that can be disturbed. */
export interface Proxy extends AsyncDisposable {
  readonly port: number;
  /** Connections made so far, and those that are alive. */
  readonly connections: number;
  readonly living: number;
  /** Bytes swallowed by the black hole. */
  readonly swallowed: number;
  /** Changes some of the conditions. */
  set(change: Partial<Weather>): void;
  /**
   * Lets everything pass again, without watchers; resets connections with swallowed data, because nobody will
   * answer it.
   */
  heal(): void;
  /** Resets (RST) every connection; returns how many. */
  reset(): number;
  /**
   * Stops all data on the existing connections, in both directions, without closing any, even if one end is
   * closed; new ones are served. Returns how many have fallen silent.
   */
  silence(): number;
  /** Ends one direction of every connection. */
  halfClose(direction: Direction): void;
  /** Gives each connection, existing ones included, its own watcher from now on. */
  watch(watcher: () => Watcher): void;
  /** Sets where new connections lead. */
  aim(url: string): void;
}

interface Pipe {
  readonly client: Socket;
  readonly server: Socket;
  watcher: Watcher;
  swallowed: boolean;
  silent: boolean;
}

const unwatched: Watcher = () => 'pass';

/** Opens a proxy to the host and port of `url`. */
export async function proxyTo(url: string): Promise<Proxy> {
  let target = new URL(url);
  let weather = FAIR;
  let makeWatcher = () => unwatched;
  let connections = 0;
  let swallowed = 0;
  const pipes = new Set<Pipe>();

  const cut = ({ client, server }: Pipe) => {
    client.resetAndDestroy();
    server.resetAndDestroy();
  };

  const silence = () => {
    let fallen = 0;
    for (const pipe of pipes) {
      fallen += Number(!pipe.silent);
      pipe.silent = true;
    }
    return fallen;
  };

  async function pass(pipe: Pipe, direction: Direction): Promise<void> {
    const [from, to] = direction === 'to-server' ? [pipe.client, pipe.server] : [pipe.server, pipe.client];
    for await (const piece of from as AsyncIterable<Buffer>) {
      if (weather.blackHole || pipe.silent) {
        pipe.swallowed = true;
        swallowed += piece.length;
        continue;
      }
      const result = pipe.watcher(piece, direction);
      if (result === 'cut') return cut(pipe);
      if (result === 'silence') {
        silence();
        continue;
      }
      await send(piece, to);
      if (result === 'pass-and-silence') silence();
      if (result === 'pass-and-cut') return cut(pipe);
      if (result === 'pass-and-half-close') return void to.end();
    }
    if (!weather.blackHole && !pipe.silent) to.end();
  }

  async function send(piece: Buffer, to: Socket): Promise<void> {
    if (weather.latencyMs > 0) await after(weather.latencyMs);
    for (let at = 0; at < piece.length;) {
      const { sliceBytes, bytesPerSecond } = weather;
      const most = Math.min(sliceBytes, Number.isFinite(bytesPerSecond) ? bytesPerSecond / 20 : Infinity);
      const slice = piece.subarray(at, Math.min(piece.length, at + Math.max(1, Math.floor(most))));
      at += slice.length;
      if (to.destroyed || !to.writable) return;
      await new Promise<void>((resolve) => to.write(slice, () => resolve()));
      if (Number.isFinite(bytesPerSecond)) await after((slice.length * 1000) / bytesPerSecond);
    }
  }

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    connections += 1;
    client.on('error', () => {});
    if (weather.refuse) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({
      host: target.hostname,
      port: Number(target.port),
      allowHalfOpen: true,
      noDelay: true,
    });
    const pipe: Pipe = { client, server, watcher: makeWatcher(), swallowed: false, silent: false };
    pipes.add(pipe);
    const gone = () => {
      if (pipe.silent) return;
      pipes.delete(pipe);
      client.destroy();
      server.destroy();
    };
    server.on('error', () => {
      if (!pipe.silent) client.resetAndDestroy();
    });
    server.on('close', gone);
    client.on('close', gone);
    void pass(pipe, 'to-server').catch(() => {});
    void pass(pipe, 'to-client').catch(() => {});
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');

  const reset = () => {
    const all = [...pipes];
    for (const pipe of all) cut(pipe);
    return all.length;
  };
  return {
    port: (listener.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    get living() {
      return pipes.size;
    },
    get swallowed() {
      return swallowed;
    },
    set(change) {
      weather = { ...weather, ...change };
    },
    heal() {
      weather = FAIR;
      makeWatcher = () => unwatched;
      for (const pipe of pipes) {
        pipe.watcher = unwatched;
        if (pipe.swallowed && !pipe.silent) cut(pipe);
      }
    },
    reset,
    silence,
    halfClose(direction) {
      for (const { client, server } of pipes) (direction === 'to-server' ? server : client).end();
    },
    watch(watcher) {
      makeWatcher = watcher;
      for (const pipe of pipes) pipe.watcher = watcher();
    },
    aim(to) {
      target = new URL(to);
    },
    async [Symbol.asyncDispose]() {
      const closed = once(listener, 'close');
      listener.close();
      for (const pipe of pipes) pipe.silent = false;
      reset();
      await closed;
    },
  };
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/**
 * Applies `result` to the piece that brings a connection's direction to `bytes`, or that completes `pattern`:
 * `times` times in all, then everything passes. `hits` returns how often.
 */
export function when(
  direction: Direction,
  what: { readonly bytes: number } | { readonly pattern: string },
  result: PieceResult,
  times = 1,
): { readonly watcher: () => Watcher; hits(): number } {
  let hits = 0;
  const watcher = (): Watcher => {
    let passed = 0;
    let tail = '';
    return (piece, where) => {
      if (where !== direction || hits >= times) return 'pass';
      passed += piece.length;
      const text = tail + piece.toString('latin1');
      if ('pattern' in what) tail = text.slice(-(what.pattern.length - 1));
      const there = 'bytes' in what ? passed >= what.bytes : text.includes(what.pattern);
      if (!there) return 'pass';
      hits += 1;
      return result;
    };
  };
  return { watcher, hits: () => hits };
}
