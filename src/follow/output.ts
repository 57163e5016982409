import type { Writable } from 'node:stream';
import type { Batch } from './batch.ts';
import type { Sink } from './sink.ts';

/** A batch of lines that are written at once. */
const LIMITS = { changes: 1000, bytes: 256 * 1024 };

/**
 * Lines on a stream. A batch counts as delivered when the stream has taken it; while its reader is slow, that waits, and nothing is read ahead.
 * A reader that has closed it wants no more.
 */
export function createOutput(stream: Writable): Sink {
  return {
    limits: LIMITS,
    async deliver({ lines }: Batch, signal) {
      if (stream.destroyed || stream.writableEnded) return CLOSED;
      const { promise, resolve } = Promise.withResolvers<'delivered' | 'unwanted' | 'given-up'>();
      const giveUp = () => resolve('given-up');
      signal.addEventListener('abort', giveUp, { once: true });
      stream.write(`${lines.join('\n')}\n`, (error) =>
        resolve(error === null || error === undefined ? 'delivered' : 'unwanted'),
      );
      const end = await promise;
      signal.removeEventListener('abort', giveUp);
      if (end === 'delivered') return { verdict: 'delivered', status: null, said: null, retryAfterMs: null };
      return end === 'unwanted' ? CLOSED : { ...CLOSED, verdict: 'failed', said: 'the reader takes nothing' };
    },
    async close() {},
  };
}

const CLOSED = {
  verdict: 'unwanted',
  status: null,
  said: 'the reader has closed the output',
  retryAfterMs: null,
} as const;
