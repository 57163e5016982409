import type pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type AnswerLimit, dropUnanswered } from '../../src/store/connection/answer-limit.ts';

const WITHIN_MS = 30_000;

/**
 * A connection whose statements are never answered. `answers` are the replies about it, in order; the last one
 * repeats.
 */
function openSilent(answers: readonly (boolean | Error)[]) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const destroy = vi.fn<(reason: Error) => void>();
  const asked: number[] = [];
  const client = { query: () => new Promise(() => {}), connection: { stream: { destroy } } };
  const limit: AnswerLimit = {
    withinMs: WITHIN_MS,
    isWorking: async () => {
      const answer = answers[Math.min(asked.push(Date.now()), answers.length) - 1];
      if (answer instanceof Error) throw answer;
      return answer === true;
    },
  };
  dropUnanswered(client as unknown as pg.Client, limit);
  const startedAt = Date.now();
  void client.query();
  return { destroy, askedAfterMs: () => asked.map((at) => at - startedAt) };
}

test('a statement that Postgres is working on gets the same time again', async () => {
  const { destroy, askedAfterMs } = openSilent([true, false]);
  await vi.advanceTimersByTimeAsync(WITHIN_MS + 10_000);
  expect(destroy).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(WITHIN_MS);
  expect(askedAfterMs()).toEqual([WITHIN_MS, 2 * WITHIN_MS]);
  expect(destroy).toHaveBeenCalledOnce();
});

test('a statement that cannot be asked about, because all connections are lost, is asked about again at once', async () => {
  const { destroy } = openSilent([new Error('lost'), new Error('lost'), false]);
  await vi.advanceTimersByTimeAsync(WITHIN_MS + 5000);
  expect(destroy).toHaveBeenCalledOnce();
});

test('a connection lives while nobody can say whether Postgres works for it', async () => {
  const { destroy } = openSilent([new Error('lost')]);
  await vi.advanceTimersByTimeAsync(10 * WITHIN_MS);
  expect(destroy).not.toHaveBeenCalled();
});
