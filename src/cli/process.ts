import { constants } from 'node:os';
import { format } from 'node:util';
import { type Clock, systemClock } from '../lib/clock.ts';
import type { Sql, Tx } from '../store/connection/db.ts';

/**
 * From here on, an uncaught error or unhandled rejection is passed to `report` and ends the process with exit code 1.
 * Node.js's own report would print every member of the error, including URLs and headers.
 */
export function endOnCrash(report: (error: unknown) => void): void {
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error: unknown) => {
    try {
      report(error);
    } finally {
      process.exit(1);
    }
  });
}

/**
 * From here on, what libraries write to the console and Node.js's own warnings go to `tell`. On stdout and stderr they
 * would be neither log lines nor scrubbed.
 */
export function captureLibraryOutput(tell: (from: string, text: string) => void): void {
  for (const method of ['debug', 'log', 'info', 'warn', 'error', 'trace'] as const)
    console[method] = (...said: unknown[]) => tell(`console.${method}`, format(...said));
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => tell(name, message));
}

/**
 * From here on, everything written to stderr is first scrubbed. For a process whose libraries are told to print what
 * they do (DEBUG, NODE_DEBUG), which includes passwords and signed URLs.
 */
export function scrubStderr(scrub: (text: string) => string): void {
  const write = process.stderr.write.bind(process.stderr);
  process.stderr.write = (piece: string | Uint8Array, ...rest: unknown[]) => {
    const text = typeof piece === 'string' ? piece : Buffer.from(piece).toString('utf8');
    return write(scrub(text), ...(rest as []));
  };
}

/**
 * A terminal sends Ctrl-C to npm and to the program, and npm passes it on some milliseconds later. Nobody who gives up
 * waiting is that quick.
 */
const SAME_SIGNAL_MS = 1000;

interface Signals {
  readonly on: (signal: NodeJS.Signals, listener: NodeJS.SignalsListener) => unknown;
  readonly off: (signal: NodeJS.Signals, listener: NodeJS.SignalsListener) => unknown;
  readonly exit: (code: number) => unknown;
}

/**
 * From here on, SIGTERM and SIGINT end process 1 as they end any other, unless something waits for them: the kernel has
 * no default action for the first process of a container. The exit code is what a shell derives from the signal.
 */
export function endFirstProcess(
  signals: Omit<Signals, 'off'> & {
    readonly pid: number;
    readonly listenerCount: (signal: NodeJS.Signals) => number;
  } = process,
): void {
  if (signals.pid !== 1) return;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    signals.on(signal, () => {
      if (signals.listenerCount(signal) === 1) signals.exit(128 + constants.signals[signal]);
    });
}

/**
 * Resolves with the first SIGTERM or SIGINT. Signals within a second of it count as the same one; a later one ends the
 * process at once.
 */
export function stopSignal(
  clock: Pick<Clock, 'monotonic'>,
  signals: Signals = process,
): { readonly promise: Promise<NodeJS.Signals>; readonly dispose: () => void } {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let firstAt: number | null = null;
  const listener = (signal: NodeJS.Signals) => {
    const now = clock.monotonic();
    firstAt ??= now;
    if (now - firstAt >= SAME_SIGNAL_MS) signals.exit(1);
    resolve(signal);
  };
  signals.on('SIGTERM', listener);
  signals.on('SIGINT', listener);
  return {
    promise,
    dispose() {
      signals.off('SIGTERM', listener);
      signals.off('SIGINT', listener);
    },
  };
}

/** A signal has ended the work. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
  readonly kind = 'stopped';

  constructor(left: string) {
    super(`stopped: ${left}`);
  }
}

/** Runs `work`. SIGINT or SIGTERM aborts its signal with the reason Stopped, which says what is `left`. */
export async function untilStopped<T>(left: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = stopSignal(systemClock);
  const stopped = new AbortController();
  void signal.promise.then(() => stopped.abort(new Stopped(left)));
  try {
    return await work(stopped.signal);
  } finally {
    signal.dispose();
  }
}

/**
 * Runs `work` in this transaction. If the signal aborts, cancels its statement in Postgres, and rejects with the
 * signal's reason.
 */
export async function cancelledBy(
  signal: AbortSignal,
  sql: Sql,
  tx: Tx,
  work: () => Promise<void>,
): Promise<void> {
  const [session] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const cancel = () => void sql`select pg_cancel_backend(${session?.pid ?? 0})`.catch(() => {});
  signal.addEventListener('abort', cancel);
  try {
    signal.throwIfAborted();
    await work();
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** Waits for `waited`, but rejects with the signal's reason as soon as the signal aborts. */
export async function orStopped(waited: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = () => resolve();
  signal.addEventListener('abort', stop);
  try {
    await Promise.race([waited, promise]);
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
