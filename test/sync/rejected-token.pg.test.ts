import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { armFailpoints } from '../../src/lib/failpoint.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { PartnerError, type PartnerErrorKind } from '../../src/partner/errors.ts';
import { SecretUrl } from '../../src/partner/secret-url.ts';
import { runTask } from '../../src/queues/task-run.ts';
import { readLearnedNames } from '../../src/store/catalog/learned-names.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import { noteChainRestored } from '../../src/store/catalog/tokens.ts';
import { endTask, requestTask, startTask } from '../../src/store/ledger/tasks.ts';
import { checkCatalog } from '../../src/sync/catalog-check.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { syncDelta } from '../../src/sync/delta.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { syncManifest } from '../../src/sync/manifest.ts';
import { knownSkus, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';
import { UNPACED } from '../support/unpaced.ts';

const store = useStore();
const settings = settingsWith();
const MINUTE = 60_000;
const DAY = 24 * 60;

/** How the delta route answers the token: an error, or null for nothing new. */
let rejects: PartnerErrorKind | null;
/** What the delta removes, moving on to s2. */
let removed: string[];
/** How the delta route answers from the second request of a run on. Null: no error. */
let rejectsNext: PartnerErrorKind | null;
/** The newest snapshot that the manifest route names. Null: that route fails. */
let named: string | null;
let asked: { delta: number; manifest: number };
let events: SyncEvent[];
let ctx: SyncContext;

beforeEach(async () => {
  [removed, rejectsNext] = [[], null];
  [rejects, named, asked, events] = [null, 's1', { delta: 0, manifest: 0 }, []];
  ctx = {
    sql: store.sql,
    databaseUrl: () => store.url,
    client: {
      async delta(_: unknown, since: string) {
        asked.delta += 1;
        if (rejects !== null) throw new PartnerError(rejects, 'delta', { status: 400 });
        rejects = rejectsNext;
        const toSnapshot = removed.length > 0 ? 's2' : since;
        return { changed: [], removed, nowLive: [], toSnapshot, skipped: 0 };
      },
      async manifest() {
        asked.manifest += 1;
        if (named === null) throw new PartnerError('service-fault', 'manifest', { status: 500 });
        const url = new SecretUrl(new URL('https://files.example/m.gz'));
        const counts = { skuCount: null, livePricedSkuCount: null };
        return { snapshotId: named, url, generatedAt: null, ...counts };
      },
    },
    pacer: UNPACED,
    clock: systemClock,
    random: Math.random,
    emit: (event: SyncEvent) => events.push(event),
    settings,
    tracer: NO_TRACER,
  } as unknown as SyncContext;
  await store.sql`
    update catalog_internal.sync set snapshot_id = 's1', snapshot_generated_at = now(), manifest_applied_at = now(),
      delta_checked_at = now()`;
  await store.sql`update catalog_internal.tasks set next_at = now() + interval '7 days'`;
});

/** Runs the task as due. Returns in how many minutes it is due again. */
async function run(task: 'delta' | 'manifest' | 'catalog-check'): Promise<number> {
  const { sql } = store;
  await sql`update catalog_internal.tasks set next_at = now() where task = ${task}`;
  const runner = { sql, clock: systemClock, signal: new AbortController().signal, report: () => {} };
  await runTask(runner, task, async (of) =>
    task === 'delta'
      ? await syncDelta(ctx, of)
      : task === 'manifest'
        ? await syncManifest(ctx, of)
        : await checkCatalog(ctx, of),
  );
  return (await taskOf(task)).minutes;
}

async function taskOf(task: string) {
  const [row] = await store.sql<[{ minutes: number; failures: number; outcome: string | null }]>`
    select round(greatest(0, extract(epoch from next_at - clock_timestamp())) / 60)::int as minutes, failures, outcome
    from catalog_internal.tasks where task = ${task}`;
  return row;
}

/** Breaks the chain: the delta rejects the token, and the manifest route offers no other. */
async function broken(kind: PartnerErrorKind = 'snapshot-expired'): Promise<void> {
  rejects = kind;
  await run('delta');
  await run('manifest');
}

describe('a token that the delta rejected, while the manifest route offers no other,', () => {
  test.each(['snapshot-expired', 'bad-request', 'since-missing'] as const)(
    'is retried within minutes after one stray %s, and the mirror continues without a download',
    async (kind) => {
      rejects = kind;
      expect(await run('delta')).toBe(1);
      expect(await taskOf('manifest')).toMatchObject({ minutes: 0 });
      await run('manifest');
      expect(await readSyncState(store.sql)).toMatchObject({
        catalogState: 'stale',
        manifestRefused: 'rejected-token',
      });
      rejects = null;
      expect(await run('delta')).toBe(settings.intervals.deltaMs / MINUTE);
      expect(await readSyncState(store.sql)).toMatchObject({
        catalogState: 'ok',
        chainBrokenAt: null,
        rejectedSnapshotId: null,
        manifestRefused: null,
      });
      // The manifest was only requested for another token: its next run follows the schedule.
      expect(await taskOf('manifest')).toMatchObject({ minutes: 7 * DAY, failures: 0 });
      expect(asked).toEqual({ delta: 2, manifest: 1 });
    },
  );

  test('leaves the manifest its schedule, too, if the process never heard that its answer was committed', async () => {
    await broken();
    rejects = null;
    armFailpoints((at) => {
      if (at === 'delta.committed') throw new Error('lost');
    });
    await run('delta').finally(() => armFailpoints(() => {}));
    expect(await readSyncState(store.sql)).toMatchObject({ chainBrokenAt: null });
    await run('delta');
    expect(await taskOf('manifest')).toMatchObject({ minutes: 7 * DAY, failures: 0 });
  });

  test('leaves the manifest its schedule, too, if its answer leads to a token that is not answered', async () => {
    await broken();
    [rejects, rejectsNext, removed] = [null, 'service-fault', ['A']];
    await run('delta');
    expect(await taskOf('delta')).toMatchObject({ outcome: 'service-fault' });
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotId: 's2', chainBrokenAt: null });
    expect(await taskOf('manifest')).toMatchObject({ minutes: 7 * DAY, failures: 0 });
  });

  test('does not cancel a manifest that was requested during the run of the manifest task', async () => {
    const { sql } = store;
    await broken();
    await sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
    const started = await startTask(sql, 'manifest', MINUTE);
    await requestTask(sql, 'manifest');
    await sql`update catalog_internal.sync set chain_broken_at = null`;
    const end = { how: 'failed', outcome: 'rejected-token', nextInMs: MINUTE } as const;
    await endTask(sql, 'manifest', started?.run ?? '', end);
    await noteChainRestored(sql, settings.intervals.manifestMs);
    expect((await taskOf('manifest')).minutes).toBe(0);
  });

  test.each([
    ['snapshot-expired', 1, false],
    ['snapshot-expired', 0, true],
    ['bad-request', 1, true],
    ['delta-too-large', 1, true],
  ] as const)(
    'for %s, after %i such manifests, keeps the field of the identifier: %s',
    async (kind, before, isKnown) => {
      const { sql } = store;
      await sql`insert into catalog_internal.learned_names (name, value) values ('snapshot_id', 'version')`;
      await sql`update catalog_internal.sync set chain_breaks = ${before}`;
      rejects = kind;
      await run('delta');
      const { manifest } = await readLearnedNames(sql);
      expect(manifest.snapshotId).toBe(isKnown ? 'version' : null);
    },
  );

  test('is retried ever more rarely, but at least every ten minutes, and the broken chain is reported once', async () => {
    rejects = 'snapshot-expired';
    const waits: number[] = [];
    for (let times = 0; times < 7; times += 1) waits.push(await run('delta'));
    expect(waits).toEqual([1, 1, 2, 4, 8, 10, 10]);
    expect(events.filter(({ event }) => event === 'delta.chain-broken')).toHaveLength(1);
    expect(await taskOf('delta')).toMatchObject({ outcome: 'snapshot-expired', failures: 6 });
  });

  test('is in the end retried only once an hour if the answer is too large', async () => {
    rejects = 'answer-too-large';
    let wait = 0;
    for (let times = 0; times < 10; times += 1) wait = await run('delta');
    expect(wait).toBe(60);
  });

  test('keeps the catalog stale until it is answered', async () => {
    await broken();
    for (let times = 0; times < 3; times += 1) {
      await run('delta');
      expect((await readSyncState(store.sql)).catalogState).toBe('stale');
    }
  });
});

test('a chain is repaired even if the manifest is refused or fails for another reason, which stays', async () => {
  for (const outcome of ['shrunk', 'service-fault']) {
    named = null;
    await broken();
    if (outcome === 'shrunk') {
      await store.sql`update catalog_internal.sync set manifest_refused = 'shrunk'`;
      await store.sql`update catalog_internal.tasks set outcome = 'shrunk' where task = 'manifest'`;
    }
    rejects = null;
    await run('delta');
    expect(await readSyncState(store.sql)).toMatchObject({
      chainBrokenAt: null,
      manifestRefused: outcome === 'shrunk' ? 'shrunk' : null,
    });
    expect(await taskOf('manifest')).toMatchObject({ outcome, failures: 1, minutes: 1 });
    await store.sql`update catalog_internal.sync set manifest_refused = null`;
    await store.sql`update catalog_internal.tasks set failures = 0`;
  }
});

test('while a chain is broken, the catalog check requests a manifest as soon as one has another token', async () => {
  await broken();
  await run('catalog-check');
  expect((await taskOf('manifest')).minutes).toBe(1);
  named = 's2';
  await run('catalog-check');
  expect(await taskOf('manifest')).toMatchObject({ minutes: 0, failures: 0 });
});

test('while the delta is late, the catalog check requests no manifest of a snapshot that deltas have left', async () => {
  await store.sql`update catalog_internal.sync set delta_checked_at = now() - interval '1 day'`;
  await store.sql`insert into catalog_internal.left_tokens values ('s0', now() - interval '2 days')`;
  for (const [snapshotId, minutes] of [
    ['s0', 7 * DAY],
    ['s2', 0],
  ] as const) {
    named = snapshotId;
    await run('catalog-check');
    expect((await taskOf('manifest')).minutes).toBe(minutes);
  }
});

describe('a delta', () => {
  const SKUS = ['A', 'B', 'C', 'D'];
  const states = async () =>
    (await store.sql`select state from catalog.skus where sku = any(${SKUS}) order by sku`).map(
      ({ state }) => state as string,
    );

  beforeEach(async () => {
    await knownSkus(store.sql, SKUS, { hash: 'h' });
    await store.sql`update catalog_internal.sync set manifest_lines = ${SKUS.length}`;
  });

  test('is applied if it removes half of the catalog', async () => {
    removed = ['A', 'B', 'never listed', 'nor this'];
    await run('delta');
    expect(await states()).toEqual(['removed', 'removed', 'pending', 'pending']);
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotId: 's2', chainBrokenAt: null });
  });

  test('counts as too large if it removes more: the token stays, and the manifest decides', async () => {
    removed = ['A', 'B', 'C'];
    expect(await run('delta')).toBe(1);
    expect(await states()).toEqual(['pending', 'pending', 'pending', 'pending']);
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotId: 's1', rejectedSnapshotId: 's1' });
    expect(await taskOf('manifest')).toMatchObject({ minutes: 0 });
    expect(events).toMatchObject([
      {
        event: 'delta.chain-broken',
        because: 'delta-too-large',
        problem: 'delta: delta-too-large (it removes 3 of 4 listed SKUs, and the last manifest had 4)',
      },
    ]);
  });

  test('counts as too large if the deltas since the manifest together remove more', async () => {
    removed = ['A'];
    await run('delta');
    expect(await states()).toEqual(['removed', 'pending', 'pending', 'pending']);
    removed = ['B', 'C'];
    await run('delta');
    expect(await states()).toEqual(['removed', 'pending', 'pending', 'pending']);
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotId: 's2', rejectedSnapshotId: 's2' });
  });

  test('is applied if it removes only unlisted SKUs, however few are left of the last manifest', async () => {
    await store.sql`update catalog_internal.sync set manifest_lines = 100`;
    removed = Array.from({ length: 6 }, (_, n) => `never listed ${n}`);
    await run('delta');
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotId: 's2', chainBrokenAt: null });
  });

  test('is applied whatever it removes once a person has confirmed that the catalog shrinks', async () => {
    removed = SKUS;
    await store.sql`update catalog_internal.sync set shrink_confirmed = true`;
    await run('delta');
    expect(await states()).toEqual(['removed', 'removed', 'removed', 'removed']);
  });
});
