import { expect, test } from 'vitest';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { createBulkLines, type BacklogCounts } from '../../src/telemetry/log/sync-lines.ts';
import { createLogThrottle } from '../../src/telemetry/log/throttle.ts';

const QUIET = {
  event: 'bulk.applied' as const,
  asked: 100,
  resolved: 95,
  notFound: 3,
  deferred: 2,
  errors: 0,
  omitted: 0,
  contradictory: 0,
  unreadable: 0,
  unexpected: 0,
  late: 0,
  priceChanges: 7,
  metadataChanges: 1,
  unpricedEntries: 0,
  reportSeconds: [],
  promises: { kept: 0, hindered: 0, broken: 0 },
};

function watched(read: () => Promise<BacklogCounts>) {
  let at = 0;
  const clock = { now: () => at, monotonic: () => at, sleep: () => Promise.resolve() };
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    level: 'info',
    secrets: () => [],
    destination: { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const bulk = createBulkLines(log, createLogThrottle(clock), clock, read);
  /** Advances the clock second by second: each runs `each`, then a tick, and lets pending work finish. */
  async function pass(seconds: number, each = (): void => {}): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      each();
      at += 1000;
      bulk.tick();
      await Promise.resolve();
    }
    await new Promise(setImmediate);
  }
  const said = (event: string) => lines.filter((line) => line['event'] === event);
  return { bulk, pass, said, lines };
}

test('a fill logs its progress every minute with the expected end, and then that it has ended', async () => {
  let left = 20_000;
  const { bulk, pass, said } = watched(() => Promise.resolve({ skus: left, unfetched: Math.max(0, left) }));
  await pass(200, () => {
    left = Math.max(0, left - 100);
    bulk.applied(QUIET);
  });
  const progress = said('reprice.progress');
  expect(progress[0]).toMatchObject({
    level: 'info',
    spanSeconds: 10,
    calls: 10,
    skus: 1000,
    resolved: 950,
    notFound: 30,
    deferred: 20,
    priceChanges: 70,
    skusPerMinute: 6000,
    skusLeft: 19_000,
    unfetchedLeft: 19_000,
    remainingSeconds: 190,
  });
  expect(progress.map(({ spanSeconds }) => spanSeconds)).toEqual([10, 60, 60, 60]);
  // The fill ends between two progress lines, and the second one reports it.
  await pass(60, () => bulk.applied(QUIET));
  expect(said('reprice.filled')).toMatchObject([{ durationSeconds: 250, skus: 25_000 }]);
});

test('if other daemons help, the remaining time follows from how fast the backlog shrinks', async () => {
  let left = 40_000;
  const { bulk, pass, said } = watched(() => Promise.resolve({ skus: left, unfetched: left }));
  await pass(130, () => {
    left -= 200;
    bulk.applied(QUIET);
  });
  const last = said('reprice.progress').at(-1);
  expect(last).toMatchObject({ skusPerMinute: 6000, skusLeft: 14_000, remainingSeconds: 70 });
});

test("if the backlog grows, the remaining time follows from this daemon's own rate", async () => {
  let left = 1000;
  const { bulk, pass, said } = watched(() => Promise.resolve({ skus: left, unfetched: left }));
  await pass(130, () => {
    left += 100;
    bulk.applied(QUIET);
  });
  expect(said('reprice.progress').at(-1)).toMatchObject({ skusPerMinute: 6000, remainingSeconds: 140 });
});

test.each([
  [3, 1],
  [20_000, 2],
])('%d new SKUs after a fill: %d fills are reported in all', async (added, fills) => {
  let left = 5000;
  const { bulk, pass, said } = watched(() => Promise.resolve({ skus: left, unfetched: left }));
  const work = () => {
    left = Math.max(0, left - 100);
    bulk.applied(QUIET);
  };
  await pass(600, work);
  // A progress line that falls just after a delta reported changes.
  left = added;
  await pass(300, () => bulk.applied(QUIET));
  await pass(600, work);
  expect(said('reprice.filled')).toHaveLength(fills);
});

test('after a fill there is a line every five minutes, and none while nothing is called', async () => {
  const { bulk, pass, said } = watched(() => Promise.resolve({ skus: 0, unfetched: 0 }));
  bulk.applied(QUIET);
  await pass(3600);
  expect(said('reprice.progress')).toHaveLength(1);
  await pass(3600, () => bulk.applied(QUIET));
  expect(said('reprice.progress').length).toBeLessThanOrEqual(13);
  expect(said('reprice.filled')).toEqual([]);
});

test('if Postgres cannot tell what is left, the line leaves it out', async () => {
  const { bulk, pass, said } = watched(() => Promise.reject(new Error('away')));
  bulk.applied(QUIET);
  await pass(20);
  expect(said('reprice.progress')).toMatchObject([{ calls: 1, skusLeft: null, remainingSeconds: null }]);
});

test('answers that do not add up are logged at once, then summed up over ten minutes', async () => {
  const { bulk, pass, said } = watched(() => Promise.resolve({ skus: 0, unfetched: 0 }));
  await pass(1200, () => bulk.applied({ ...QUIET, omitted: 2 }));
  const [first, second, ...more] = said('bulk.unaccounted');
  expect(first).toMatchObject({ level: 'warn', calls: 1, omitted: 2, asked: 100 });
  expect(second).toMatchObject({ level: 'warn', calls: 599, omitted: 1198, asked: 59_900 });
  expect(more).toHaveLength(1);
});

test('entries without a readable price are logged at once, then summed up hourly, even after a pause', async () => {
  const { bulk, pass, said } = watched(() => Promise.resolve({ skus: 0, unfetched: 0 }));
  bulk.applied({ ...QUIET, unpricedEntries: 1 });
  await pass(2 * 3600);
  await pass(3600, () => bulk.applied({ ...QUIET, unpricedEntries: 3 }));
  await pass(3600);
  expect(said('bulk.unpriced-entries').map(({ entries }) => entries)).toEqual([1, 3, 3 * 3599]);
});

test('corrections of size_type are logged at once, then counted with a sample of the SKUs', async () => {
  const { bulk, pass, said } = watched(() => Promise.resolve({ skus: 0, unfetched: 0 }));
  bulk.sizeTypes(['A']);
  for (let n = 0; n < 30; n += 1) bulk.sizeTypes([`B${n}`]);
  await pass(10 * 60);
  const [first, second, ...more] = said('size-type.changed');
  expect(first).toMatchObject({ level: 'warn', count: 1, skus: ['A'] });
  expect(second).toMatchObject({ count: 30 });
  expect(second?.['skus']).toHaveLength(20);
  expect(more).toEqual([]);
});

test('failing calls are logged as one error, which ends with the first answer', async () => {
  const { bulk, pass, lines } = watched(() => Promise.resolve({ skus: 0, unfetched: 0 }));
  const failure = { because: 'network', hint: 'look', problem: 'bulk: network' };
  for (let n = 0; n < 5; n += 1) {
    bulk.failed({ event: 'bulk.failed', skus: 100, pausedMs: 1000 * 2 ** n, ...failure });
    await pass(5);
  }
  bulk.applied(QUIET);
  expect(lines).toMatchObject([
    { level: 'warn', event: 'bulk.failed', times: 1, skus: 100, pausedMs: 1000, because: 'network' },
    { level: 'info', event: 'bulk.recovered', times: 5, lastedSeconds: 25 },
  ]);
});

test('SKUs whose every call fails are named at once, then summed up over ten minutes', async () => {
  const { bulk, pass, said } = watched(() => Promise.resolve({ skus: 0, unfetched: 0 }));
  const failure = { because: 'bad-request', hint: 'look', problem: 'bulk: bad-request', httpStatus: 400 };
  bulk.failed({ event: 'bulk.failed', skus: 50, pausedMs: 0, ...failure });
  expect(said('bulk.set-aside')).toEqual([]);
  for (let n = 0; n < 30; n += 1)
    bulk.failed({ event: 'bulk.failed', skus: 1, sku: `S${n}`, pausedMs: 0, ...failure });
  await pass(10 * 60);
  const [first, second, ...more] = said('bulk.set-aside');
  expect(first).toMatchObject({
    level: 'warn',
    count: 1,
    skus: ['S0'],
    because: 'bad-request',
    httpStatus: 400,
  });
  expect(second).toMatchObject({ count: 29 });
  expect(second?.['skus']).toHaveLength(20);
  expect(more).toEqual([]);
});
