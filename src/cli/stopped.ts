import { systemClock } from '../lib/clock.ts';
import type { Sql, Tx } from '../store/connection/db.ts';
import { stopSignal } from './process.ts';

/** A signal has ended the work. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
  readonly kind = 'stopped';

  constructor(left: string) {
    super(`stopped: ${left}`);
  }
}

/**
 * Does work that SIGINT and SIGTERM end: its signal is then aborted, for the reason Stopped, which says what is left
 * of it.
 */
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
 * Ends what Postgres is at work on for this transaction when the signal comes; then it rejects with the signal's
 * reason.
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

/** Waits for something, but no longer than until the signal comes: then it rejects with the signal's reason. */
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
