import { isIP, type LookupFunction, Socket } from 'node:net';
import { vi } from 'vitest';

interface Target {
  readonly host?: string;
  readonly port?: number | string;
  readonly lookup?: LookupFunction;
}

/** Sockets that this process opens while it is watched. */
export interface Watch extends Disposable {
  /** How many went to a port. Filtered, because leftovers of earlier tests may still connect to their own ports. */
  readonly count: (port: number) => number;
  /** Addresses outside this machine to which a socket would have connected. None does: it is destroyed instead. */
  readonly strays: readonly string[];
}

const isHere = (address: string) => /^(?:127\.|::1$|::ffff:127\.)/.test(address);

/** Watches every socket of this process, and keeps all of them on this machine, whatever the code under test does. */
export function watchSockets(): Watch {
  const strays: string[] = [];
  const ports: number[] = [];
  // eslint-disable-next-line typescript/unbound-method
  const real = Socket.prototype.connect as (...args: unknown[]) => Socket;
  const stop = (socket: Socket, address: string) => {
    strays.push(address);
    setImmediate(() => socket.destroy(new Error('as far as it may get')));
    return socket;
  };
  const spy = vi.spyOn(Socket.prototype, 'connect').mockImplementation(function connect(
    this: Socket,
    ...args: unknown[]
  ) {
    const first: unknown = Array.isArray(args[0]) ? args[0][0] : args[0];
    const target = first as Target & { lookup?: LookupFunction };
    ports.push(Number(target.port));
    const host = target.host ?? 'localhost';
    if (isIP(host) !== 0) return isHere(host) ? real.apply(this, args) : stop(this, host);
    const { lookup } = target;
    if (lookup === undefined) return stop(this, host);
    target.lookup = (name, options, done) =>
      lookup(name, options, (error, found, family) => {
        const addresses = typeof found === 'string' ? [found] : found.map(({ address }) => address);
        const away = error === null ? addresses.filter((address) => !isHere(address)) : [];
        strays.push(...away);
        done(away.length === 0 ? error : new Error('as far as it may get'), found, family);
      });
    return real.apply(this, args);
  });
  return {
    strays,
    count: (port) => ports.filter((one) => one === port).length,
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}
