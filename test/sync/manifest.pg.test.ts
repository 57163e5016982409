import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { SecretUrl } from '../../src/partner/secret-url.ts';
import { readLearnedNames } from '../../src/store/catalog/learned-names.ts';
import { noteManifestRefused } from '../../src/store/catalog/sync-state.ts';
import { startTask } from '../../src/store/ledger/tasks.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { syncManifest } from '../../src/sync/manifest.ts';
import { fileOf } from '../partner/manifest-reading.ts';
import { serve } from '../partner/server.ts';
import { HOUR, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';
import { UNPACED } from '../support/unpaced.ts';

const store = useStore();
/** Lines that are read from a file at a time. */
const BATCH = 500;
let events: SyncEvent[];

beforeEach(() => {
  events = [];
});

/** Syncs one manifest, given the bytes of its file and the number of lines that it claims. */
async function sync(
  file: Buffer,
  skuCount: number | null,
  livePricedSkuCount: number | null = null,
  { age, builtMsAgo, clock = systemClock }: { age?: string; builtMsAgo?: number; clock?: Clock } = {},
) {
  const base = await serve((_request, response) => {
    if (age !== undefined) response.setHeader('age', age);
    response.end(file);
  });
  const meta = {
    snapshotId: 's1',
    url: new SecretUrl(new URL('/m.gz', base)),
    generatedAt: builtMsAgo === undefined ? null : new Date(Date.now() - builtMsAgo),
    skuCount,
    livePricedSkuCount,
    readBy: { url: 'file.url', snapshotId: 'version' },
  };
  const ctx = {
    sql: store.sql,
    databaseUrl: () => store.url,
    client: { manifest: () => Promise.resolve(meta) },
    pacer: UNPACED,
    clock,
    random: Math.random,
    emit: (event: SyncEvent) => events.push(event),
    settings: { ...settingsWith(), partner: { ...settingsWith().partner, baseUrl: base.href } },
    tracer: NO_TRACER,
  } as unknown as SyncContext;
  await store.sql`update catalog_internal.tasks set next_at = now() + interval '1 hour' where task <> 'manifest'`;
  const run = await startTask(store.sql, 'manifest', HOUR);
  if (run === null) throw new Error('not its time');
  return await syncManifest(ctx, run);
}

const skus = () =>
  store.sql<[{ count: number }]>`select count(*)::int as count from catalog.skus`.then(([row]) => row.count);

describe('a file that is exactly as long as announced', () => {
  test('is applied, and what was reported since it was built is requested at once', async () => {
    expect(await sync(gzipSync(fileOf(BATCH)), BATCH)).toMatchObject({
      kind: 'done',
      counts: { lines: BATCH, rejected: 0, added: BATCH, because: 'fill' },
    });
    const due = await store.sql`
      select task from catalog_internal.tasks where next_at <= clock_timestamp() and task <> 'manifest' order by task`;
    expect(due.map(({ task }) => task as string)).toEqual(['delta', 'live-plan']);
    expect(await skus()).toBe(BATCH);
    const { manifest } = await readLearnedNames(store.sql);
    expect(manifest).toEqual({ url: 'file.url', snapshotId: 'version' });
  });

  test('is refused at the end of a batch if there is one line more', async () => {
    expect(await sync(gzipSync(fileOf(BATCH + 1)), BATCH)).toMatchObject({
      kind: 'failed',
      because: 'line-count-mismatch',
    });
    expect(await skus()).toBe(0);
    expect((await readLearnedNames(store.sql)).manifest).toEqual({ url: null, snapshotId: null });
  });

  test('is refused at the end of a batch if it is damaged after its last line', async () => {
    const whole = gzipSync(fileOf(BATCH));
    const damaged = Buffer.from(whole);
    damaged.writeUInt32LE(whole.readUInt32LE(whole.length - 8) ^ 1, whole.length - 8);
    expect(await sync(damaged, BATCH)).toMatchObject({ kind: 'failed', because: 'file-corrupt' });
    expect(await skus()).toBe(0);
  });
});

test('counts of a refused file start no incident, counts of an applied one do', async () => {
  const began = () => events.filter(({ event }) => event === 'incident.began').length;
  const file = gzipSync(fileOf(BATCH));
  await sync(file, BATCH + 1, BATCH + 1);
  expect(began()).toBe(0);
  await store.sql`update catalog_internal.tasks set next_at = now(), running_until = null where task = 'manifest'`;
  const allLive = fileOf(BATCH).toString().replaceAll('"snapshot"', '"live"');
  expect(await sync(gzipSync(allLive), BATCH, BATCH)).toMatchObject({ kind: 'done' });
  expect(began()).toBe(1);
});

test('counts of an applied file that lists hardly any live SKU start no incident, and end one', async () => {
  const turns = () => events.flatMap(({ event }) => (event.startsWith('incident.') ? [event] : []));
  const file = gzipSync(fileOf(BATCH));
  for (const because of [null, 'live-count']) {
    await store.sql`
      update catalog_internal.tasks set next_at = now(), running_until = null, failures = 3 where task = 'manifest'`;
    await noteManifestRefused(store.sql, 'live-count-mismatch');
    await store.sql`update catalog_internal.live_plan set incident_because = ${because}, incident_since = now()`;
    expect(await sync(file, BATCH, BATCH)).toMatchObject({ kind: 'done' });
    expect(turns()).toEqual(because === null ? [] : ['incident.ended']);
  }
});

test('a file with an unexpected number of live SKUs is read again, and in the end accepted with a warning', async () => {
  const file = gzipSync(fileOf(BATCH));
  const again = (failures: number) => store.sql`
    update catalog_internal.tasks set next_at = now(), running_until = null, failures = ${failures} where task = 'manifest'`;
  // Three runs may have failed for other reasons, for example because the files origin was down.
  for (const failures of [3, 0, 2]) {
    await again(failures);
    expect(await sync(file, BATCH, 1)).toMatchObject({ kind: 'failed', because: 'live-count-mismatch' });
  }
  expect(await skus()).toBe(0);
  await again(3);
  expect(await sync(file, BATCH, 1)).toMatchObject({ kind: 'done' });
  expect(events).toContainEqual({ event: 'manifest.live-count-differs', live: 0, announced: 1 });
});

const failedBefore = (failures: number) => store.sql`
  update catalog_internal.tasks set next_at = now(), running_until = null, failures = ${failures} where task = 'manifest'`;

test('a cached file that predates its snapshot is read again, and in the end accepted with a warning', async () => {
  const file = gzipSync(fileOf(BATCH));
  const kept = { age: '9000', builtMsAgo: HOUR };
  for (const failures of [0, 1, 2]) {
    await failedBefore(failures);
    expect(await sync(file, BATCH, null, kept)).toMatchObject({ kind: 'failed', because: 'kept-file' });
  }
  expect(await skus()).toBe(0);
  await failedBefore(3);
  expect(await sync(file, BATCH, null, kept)).toMatchObject({ kind: 'done' });
  expect(events).toContainEqual({
    event: 'manifest.kept-file',
    keptSince: expect.any(Date),
    builtAt: expect.any(Date),
  });
});

test('a refused request does not count as a try to read the file', async () => {
  const kept = () => sync(gzipSync(fileOf(BATCH)), BATCH, null, { age: '9000', builtMsAgo: HOUR });
  await noteManifestRefused(store.sql, 'kept-file');
  await failedBefore(3);
  await store.sql`insert into catalog_internal.refused_tasks (task, refusals) values ('manifest', 1)`;
  expect(await kept()).toMatchObject({ kind: 'failed', because: 'kept-file' });
  await failedBefore(4);
  expect(await kept()).toMatchObject({ kind: 'done' });
});

test('the age of a cached file is measured by the clock of Postgres', async () => {
  const behind: Clock = { ...systemClock, now: () => Date.now() - 8 * HOUR };
  await failedBefore(3);
  await noteManifestRefused(store.sql, 'live-count-mismatch');
  const ofNow = { age: '1', builtMsAgo: 2000, clock: behind };
  expect(await sync(gzipSync(fileOf(BATCH)), BATCH, 1, ofNow)).toMatchObject({ kind: 'done' });
});

test('twenty rejected lines of a file are kept, whatever batches they are in', async () => {
  const bad = Array.from({ length: 2 * BATCH + 30 }, (_, n) => `no line ${n}\n`).join('');
  await sync(Buffer.from(bad), null);
  const kept = await store.sql`select sample from catalog_internal.quarantine order by id`;
  expect(kept.map(({ sample }) => sample as string)).toEqual(
    Array.from({ length: 20 }, (_, n) => `no line ${n}`),
  );
  expect(events).toContainEqual({
    event: 'manifest.rejected-lines',
    rejected: 2 * BATCH + 30,
    reasons: { 'not-json': 2 * BATCH + 30 },
  });
});

test('lines of a later batch are kept if the earlier ones had fewer than twenty rejected lines', async () => {
  const good = fileOf(BATCH - 15).toString();
  const bad = Array.from({ length: 30 }, (_, n) => `no line ${n}\n`).join('');
  await sync(Buffer.from(good + bad), null);
  const kept = await store.sql`select sample from catalog_internal.quarantine`;
  expect(kept).toHaveLength(20);
});

test('a long manifest reports its progress and remaining time every three seconds, also for an unknown size', async () => {
  let elapsed = 0;
  // A second passes each time it is read, so that batches take as long as on a slow line.
  const slow: Clock = { ...systemClock, monotonic: () => (elapsed += 1000) };
  await sync(gzipSync(fileOf(10 * BATCH)), 10 * BATCH, null, { clock: slow });
  const told = events.flatMap((event) => (event.event === 'manifest.progress' ? [event] : []));
  expect(told.length).toBeGreaterThan(1);
  expect(told.length).toBeLessThanOrEqual(4);
  for (const { lines, of, remainingSeconds } of told) {
    expect([Number(lines) % BATCH, of]).toEqual([0, 10 * BATCH]);
    expect(remainingSeconds === 0).toBe(lines === of);
  }
  events = [];
  await store.sql`update catalog_internal.tasks set next_at = now(), running_until = null where task = 'manifest'`;
  await sync(gzipSync(fileOf(10 * BATCH)), null, null, { clock: slow });
  expect(events.find(({ event }) => event === 'manifest.progress')).toMatchObject({
    of: null,
    remainingSeconds: null,
  });
});
