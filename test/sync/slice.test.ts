import { describe, expect, test } from 'vitest';
import { CONCURRENCY } from '../../src/queues/jobs.ts';
import type { IterationResult } from '../../src/sync/reprice/plan-call.ts';
import { MAX_UNDER_WAY } from '../../src/sync/reprice/slice.ts';
import { CALLED, FOREVER, MINUTE, PACE, TestProcess, WAKE_MS } from './slice-process.ts';

let process: TestProcess;
/** Creates a process whose calls take `ms` to be answered. */
function answering(ms: number | (() => number)): TestProcess {
  process = new TestProcess(async () => {
    await process.clock.sleep(typeof ms === 'number' ? ms : ms());
    return CALLED;
  });
  return process;
}

describe('calls a minute', () => {
  test.each([
    [50, PACE, 1],
    [1000, PACE, 2],
    [2000, PACE, 4],
    [6000, PACE, 12],
    [10_000, PACE, 20],
    [15_000, PACE, 30],
    [20_000, (MAX_UNDER_WAY * MINUTE) / 20_000, MAX_UNDER_WAY],
    [30_000, (MAX_UNDER_WAY * MINUTE) / 30_000, MAX_UNDER_WAY],
  ])('at answers of %i ms: %i, with %i calls under way', async (ms, calls, underWay) => {
    const { mostPlanning, mostUnderWay } = await measured(ms, calls);
    expect(mostPlanning).toBe(1);
    expect(mostUnderWay).toBe(underWay);
  });

  /** Runs for four minutes and checks the calls of each. */
  async function measured(ms: number, calls: number): Promise<TestProcess> {
    const daemon = answering(ms);
    await daemon.run(4 * MINUTE);
    for (const minute of daemon.aMinute(4)) expect(Math.abs(minute - calls)).toBeLessThanOrEqual(1);
    return daemon;
  }

  test('at answers of varying lengths: as many as the pace allows, without a pause between slices', async () => {
    let n = 0;
    const daemon = answering(() => [200, 25_000, 6000, 9000, 1000][(n += 1) % 5] ?? 0);
    await daemon.run(3 * MINUTE);
    const gaps = daemon.sentAt.slice(1).map((at, i) => at - (daemon.sentAt[i] ?? 0));
    expect(Math.max(...gaps)).toBeLessThan((1.01 * MINUTE) / PACE);
    expect(daemon.ends).toContain('over');
    expect(daemon.mostPlanning).toBe(1);
  });
});

describe('jobs that the queue starts', () => {
  test('take turns: one plans, the second takes over when its time is over, and others end after ten seconds', async () => {
    const daemon = answering(60_000);
    await daemon.run(5000);
    expect([daemon.jobs, daemon.ends]).toEqual([5, []]);
    await daemon.run(8500);
    expect(daemon.mostPlanning).toBe(1);
    // The third came when there were two, and was the second when its ten seconds were over.
    expect(daemon.ends).toEqual(['enough']);
    await daemon.run(MINUTE);
    expect(new Set(daemon.ends)).toEqual(new Set(['enough', 'over']));
  });

  test('leave most work to another process if one hangs, even if that one is offered each job first', async () => {
    const hung = new TestProcess(
      () => Promise.resolve(CALLED),
      () => new Promise<null>(() => {}),
    );
    const well: TestProcess = new TestProcess(
      async () => {
        await well.clock.sleep(1000);
        return CALLED;
      },
      undefined,
      hung.clock,
    );
    for (let at = 0; at < 3 * MINUTE; at += WAKE_MS) {
      void (hung.jobs < CONCURRENCY.reprice ? hung : well).start();
      await well.clock.pass(WAKE_MS);
    }
    for (const calls of well.aMinute(3)) expect(calls).toBeGreaterThan(0.9 * PACE);
  });

  test('wait at most half a minute for a job that hangs before its call is sent', async () => {
    let plans = 0;
    const daemon: TestProcess = new TestProcess(
      () => Promise.resolve(CALLED),
      () => {
        plans += 1;
        return plans === 3 ? new Promise<null>(() => {}) : null;
      },
    );
    await daemon.run(29_000);
    expect(daemon.sentAt).toHaveLength(2);
    await daemon.run(MINUTE);
    expect(daemon.sentAt.length).toBeGreaterThan(0.9 * PACE);
  });

  test('end independently: when the first ends, the second reads again what is due', async () => {
    const nothing: IterationResult[] = [
      { kind: 'linger', forMs: 400 },
      { kind: 'idle', nextInMs: null },
      { kind: 'wait', forMs: 1, because: 'calls-failing' },
    ];
    const daemon = new TestProcess(
      () => Promise.resolve(CALLED),
      () => nothing.shift() ?? null,
    );
    void daemon.start();
    void daemon.start();
    await daemon.clock.pass(500);
    expect(daemon.ends).toEqual(['idle', 'wait']);
    expect([daemon.jobs, daemon.sentAt]).toEqual([0, []]);
  });

  test('read what is due every half second while a call lingers', async () => {
    let read = 0;
    const daemon = new TestProcess(
      () => Promise.resolve(CALLED),
      () => {
        read += 1;
        return read < 5 ? { kind: 'linger', forMs: 4000 } : { kind: 'idle', nextInMs: 1 };
      },
    );
    void daemon.start();
    await daemon.clock.pass(1900);
    expect([read, daemon.ends]).toEqual([4, []]);
    await daemon.clock.pass(200);
    expect(daemon.ends).toEqual(['idle']);
  });
});

describe('a call that', () => {
  test("fails so that all must wait ends its slice once the slice's other calls have ended", async () => {
    const refused: IterationResult = { kind: 'wait', forMs: 0, because: 'throttled-or-forbidden' };
    process = new TestProcess(async (n) => {
      await process.clock.sleep(n === 1 ? 2000 : 5000);
      return n === 1 ? refused : CALLED;
    });
    void process.start();
    await process.clock.pass(4000);
    const sent = process.sentAt.length;
    expect([sent, process.ends]).toEqual([5, []]);
    await process.clock.pass(5000);
    expect([process.sentAt.length, process.ends]).toEqual([sent, ['wait']]);
  });

  test("throws fails its slice once the slice's other calls have ended, and no other slice", async () => {
    const lost = new Error('the connection is lost');
    process = new TestProcess(async (n) => {
      await process.clock.sleep(n === 1 ? 12_000 : 15_000);
      if (n === 1) throw lost;
      return CALLED;
    });
    await process.run(13_000);
    expect(process.ends).not.toContain(lost);
    await process.run(13_000);
    expect(process.ends.filter((end) => end !== 'enough')).toEqual([lost]);
    expect(process.mostPlanning).toBe(1);
    expect(process.sentAt.length).toBeGreaterThan(45);
  });

  test('throws limits calls to one at a time until one has succeeded', async () => {
    let isFull = true;
    process = new TestProcess(async () => {
      await process.clock.sleep(5000);
      if (isFull) throw new Error('the disk is full');
      return CALLED;
    });
    await process.run(7000);
    const together = process.sentAt.length;
    expect(together).toBeGreaterThan(9);
    await process.run(MINUTE);
    // Those under way fail, too, and then one in five seconds.
    expect(process.sentAt.length - together).toBeLessThanOrEqual(12);
    process.mostUnderWay = 0;
    await process.run(MINUTE);
    expect(process.mostUnderWay).toBe(1);
    isFull = false;
    await process.run(MINUTE);
    expect(process.mostUnderWay).toBe(10);
  });

  test('fails limits calls to four at a time until one works: an outage would lose all that are under way', async () => {
    let isOut = false;
    process = new TestProcess(async () => {
      await process.clock.sleep(10_000);
      return isOut ? { kind: 'called', skus: 0 } : CALLED;
    });
    await process.run(MINUTE);
    expect(process.mostUnderWay).toBe(20);
    isOut = true;
    await process.run(MINUTE);
    process.mostUnderWay = 0;
    await process.run(MINUTE);
    expect(process.mostUnderWay).toBe(4);
    isOut = false;
    await process.run(MINUTE);
    expect(process.mostUnderWay).toBe(20);
  });

  test('throws before it was sent fails the slice, and the next one continues', async () => {
    const lost = new Error('the connection is lost');
    let planned = 0;
    process = new TestProcess(
      async () => await process.clock.sleep(3000).then(() => CALLED),
      () => {
        planned += 1;
        if (planned === 3) throw lost;
        return null;
      },
    );
    void process.start();
    void process.start();
    await process.clock.pass(2000);
    expect(process.sentAt.length).toBeGreaterThan(3);
    expect(process.ends).toEqual([]);
    await process.clock.pass(3000);
    expect(process.ends).toEqual([lost]);
  });

  test('throws together with others fails the slice with the first error, and no rejection is unhandled', async () => {
    process = new TestProcess(async (n) => {
      await process.clock.sleep(2000 + n);
      throw new Error(`call ${n}`);
    });
    void process.start();
    await process.clock.pass(10_000);
    expect(process.ends).toEqual([new Error('call 1')]);
  });

  test('is never answered keeps its slice, and delays no other', async () => {
    process = new TestProcess(async (n) => {
      await process.clock.sleep(n === 1 ? FOREVER : 1000);
      return CALLED;
    });
    await process.run(3 * MINUTE);
    const calls = process.aMinute(3).reduce((sum, n) => sum + n, 0);
    expect(Math.abs(calls - 2 * PACE)).toBeLessThanOrEqual(1);
  });
});

describe('a stop', () => {
  test('ends planning at once; slices end with their calls, which `hard` aborts', async () => {
    process = new TestProcess(async () => {
      await process.clock.sleep(FOREVER, process.hard.signal);
      return { kind: 'wait', forMs: 0, because: 'aborted' };
    });
    await process.run(12_000);
    process.stopping.abort();
    await process.clock.pass(1000);
    const sent = process.sentAt.length;
    // The idle job has no call to wait for.
    expect(process.ends.filter((end) => end !== 'enough')).toEqual(['stopping']);
    expect(process.underWay).toBe(sent);
    process.hard.abort();
    await process.clock.pass(10);
    expect([process.underWay, process.jobs, process.sentAt.length]).toEqual([0, 0, sent]);
  });

  test('does so even if the maximum of calls is under way', async () => {
    process = new TestProcess(async () => {
      await process.clock.sleep(FOREVER, process.hard.signal);
      return CALLED;
    });
    await process.run(MINUTE);
    expect(process.underWay).toBe(MAX_UNDER_WAY);
    process.stopping.abort();
    process.hard.abort();
    await process.clock.pass(10);
    expect([process.underWay, process.jobs, process.sentAt.length]).toEqual([0, 0, MAX_UNDER_WAY]);
  });
});
