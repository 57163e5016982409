import { describe, expect, test } from 'vitest';
import { createStorePause, type StoreEvent } from '../../src/queues/store-pause.ts';

class Refusal extends Error {
  readonly code: string;
  readonly routine: string | undefined;
  /** Takes a SQLSTATE, followed by the function of Postgres that raises it if that matters. */
  constructor(of: string) {
    super(`refused with ${of}`);
    [this.code = '', this.routine] = of.split(' ');
  }
}

function setUp() {
  let now = 0;
  const events: StoreEvent[] = [];
  let left = 0;
  const pause = createStorePause(
    { monotonic: () => now },
    (event) => events.push(event),
    () => (left += 1),
  );
  let calls = 0;
  const refuse = (code: string) => async () => {
    calls += 1;
    await Promise.resolve();
    throw new Refusal(code);
  };
  const work = async (): Promise<'done'> => {
    calls += 1;
    return await Promise.resolve('done');
  };
  return {
    pause,
    events,
    refuse,
    work,
    calls: () => calls,
    left: () => left,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

describe('the pause of a store', () => {
  test.each([
    ['53100', 'disk-full'],
    ['53200', 'out-of-memory'],
    ['53300', 'too-many-connections'],
    ['25006', 'read-only'],
    ['54000 PreCommit_Notify', 'notify-queue-full'],
    ['54000 GetNewTransactionId', 'out-of-transaction-ids'],
  ])('pauses a job that meets SQLSTATE %s because of %s', async (code, kind) => {
    const { pause, refuse, events } = setUp();
    expect(await pause.guard('reprice', refuse(code))).toBe('paused');
    expect(pause.failure()).toBe(kind);
    expect(events).toEqual([{ event: 'store.paused', kind, job: 'reprice', ms: 1000 }]);
  });

  test('leaves read-only sessions before a job is retried, at most once a second', async () => {
    const { pause, refuse, left, pass } = setUp();
    for (const job of ['reprice', 'delta']) await pause.guard(job, refuse('25006'));
    expect(left()).toBe(0);
    pass(1000);
    for (const job of ['reprice', 'delta']) await pause.guard(job, refuse('25006'));
    expect(left()).toBe(1);
    pass(2000);
    await pause.guard('reprice', refuse('25006'));
    expect(left()).toBe(2);
  });

  test('keeps the sessions of a store that is full', async () => {
    const { pause, refuse, left, pass } = setUp();
    await pause.guard('reprice', refuse('53100'));
    pass(1000);
    await pause.guard('reprice', refuse('53100'));
    expect(left()).toBe(0);
  });

  test('stops the work of one job, but not of others', async () => {
    const { pause, refuse, work, calls, pass } = setUp();
    await pause.guard('reprice', refuse('53100'));
    pass(999);
    expect(await pause.guard('reprice', work)).toBe('paused');
    expect(calls()).toBe(1);
    expect(await pause.guard('delta', work)).toBe('done');
  });

  test('doubles with each failure, up to a minute, and ends with a success that is reported once', async () => {
    const { pause, refuse, work, events, pass } = setUp();
    const waits = [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000];
    for (const ms of waits) {
      expect(await pause.guard('reprice', refuse('53100'))).toBe('paused');
      pass(ms);
    }
    expect(events.map((event) => (event.event === 'store.paused' ? event.ms : event.event))).toEqual(waits);
    expect(await pause.guard('reprice', work)).toBe('done');
    expect(events.at(-1)).toEqual({ event: 'store.resumed', kind: 'disk-full', job: 'reprice' });
    expect(pause.failure()).toBeNull();
    await pause.guard('reprice', work);
    expect(events.filter(({ event }) => event === 'store.resumed')).toHaveLength(1);
    await pause.guard('reprice', refuse('53100'));
    expect(events.at(-1)).toMatchObject({ ms: 1000 });
  });

  test('ends with a single attempt; failures that were in flight together count once', async () => {
    const { pause, refuse, work, events, pass } = setUp();
    await Promise.all([1, 2, 3, 4].map(() => pause.guard('reprice', refuse('53100'))));
    expect(events).toHaveLength(1);
    pass(1000);
    const paused = Promise.withResolvers<'done'>();
    const probe = pause.guard('reprice', () => paused.promise);
    expect(await pause.guard('reprice', work)).toBe('paused');
    paused.resolve('done');
    expect(await probe).toBe('done');
    expect(await pause.guard('reprice', work)).toBe('done');
  });

  test('does not end with work that attempted nothing, which lets the next attempt go ahead', async () => {
    const { pause, refuse, work, events, pass } = setUp();
    await pause.guard('reprice', refuse('53100'));
    pass(1000);
    expect(await pause.guard('reprice', async () => await Promise.resolve('enough'), 'enough')).toBe(
      'enough',
    );
    expect(pause.failure()).toBe('disk-full');
    expect(await pause.guard('reprice', work, 'enough')).toBe('done');
    expect(events.map(({ event }) => event)).toEqual(['store.paused', 'store.resumed']);
  });

  test('lets other errors pass through, and the next attempt go ahead', async () => {
    const { pause, refuse, work, events, pass } = setUp();
    await expect(pause.guard('reprice', refuse('23505'))).rejects.toThrow('23505');
    expect(events).toEqual([]);
    await pause.guard('reprice', refuse('53100'));
    pass(1000);
    await expect(pause.guard('reprice', refuse('23505'))).rejects.toThrow('23505');
    expect(pause.failure()).toBe('disk-full');
    expect(await pause.guard('reprice', work)).toBe('done');
  });

  test('starts for queues that reject writes only when no job has come for a while, and ends with the next job', () => {
    const { pause, events, pass } = setUp();
    pass(4999);
    pause.queuesFail(new Refusal('25006'));
    expect(pause.failure()).toBeNull();
    pass(1);
    pause.queuesFail(new Refusal('08006'));
    expect(pause.failure()).toBeNull();
    pause.queuesFail(new Refusal('25006'));
    pause.queuesFail(new Refusal('25006'));
    expect(pause.failure()).toBe('read-only');
    pause.queuesWork();
    pause.queuesWork();
    expect(pause.failure()).toBeNull();
    pause.queuesFail(new Refusal('25006'));
    expect(pause.failure()).toBeNull();
    expect(events).toEqual([
      { event: 'store.paused', kind: 'read-only', job: 'queues', ms: 1000 },
      { event: 'store.resumed', kind: 'read-only', job: 'queues' },
    ]);
  });

  test("reports a job's failure rather than that of the queues", async () => {
    const { pause, refuse, pass } = setUp();
    pass(10_000);
    pause.queuesFail(new Refusal('53300'));
    await pause.guard('reprice', refuse('53100'));
    expect(pause.failure()).toBe('disk-full');
  });
});
