import { describe, expect, test } from 'vitest';
import { PartnerError } from '../../src/partner/errors.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import { judgeOffer } from '../../src/sync/manifest-decision.ts';
import { baseline, line, marks, skuRow } from '../store/manifest.ts';
import { useStore } from '../store/support.ts';
import { built, SKUS, useFollowed } from './followed.ts';

/* Snapshots are rebuilt under names that were used before, for example after the partner has restored a backup. */

const store = useStore();
const { partner, run, rest, minutesLater, found } = useFollowed(store);

/** Deltas lead from s6 by s9 to s12. */
async function lead(): Promise<void> {
  const next: Record<string, string> = { s6: 's9', s9: 's12' };
  partner.answers = (since) => ({ toSnapshot: next[since] ?? since });
  await run('delta');
}

/** Lets half a day pass. */
async function halfDayLater(): Promise<void> {
  await store.sql`update catalog_internal.left_tokens set left_at = left_at - interval '12 hours'`;
  await store.sql`
    update catalog_internal.sync set token_at = token_at - interval '12 hours', named_snapshots = (
      select jsonb_agg(n || jsonb_build_object('named', (n ->> 'named')::timestamptz - interval '12 hours',
        'seen', (n ->> 'seen')::timestamptz - interval '12 hours') order by nth)
      from jsonb_array_elements(named_snapshots) with ordinality as o (n, nth)
    )`;
  await rest();
}

/** Deltas led to s12 half a day ago, and the manifest route named s12 then. */
async function ledTo12(): Promise<void> {
  await lead();
  partner.named = { ...partner.named, snapshotId: 's12', generatedAt: built(12) };
  await run('catalog-check');
  await halfDayLater();
}

describe('a snapshot that deltas have left is named with a time later than when they left it:', () => {
  test('it was rebuilt, so the delta, which reports nothing new, is behind', async () => {
    await ledTo12();
    partner.named = { ...partner.named, snapshotId: 's9', generatedAt: built(20) };
    expect(await run('catalog-check')).toBe(30);
    expect(await found()).toMatchObject({ doubt: 'suspected', asked: false });
    await minutesLater(31);
    await run('catalog-check');
    expect(await found()).toMatchObject({ doubt: 'behind', asked: true, catalogState: 'stale' });
  });

  test('its manifest sets the token, and reports what no delta has', async () => {
    await ledTo12();
    const [moved = '', ...others] = SKUS;
    await store.sql`update catalog.skus set reported_at = clock_timestamp() where sku = ${moved}`;
    const lines = [line(moved, { hash: 'h2' }), ...others.map((sku) => line(sku))];
    const { lagSeconds } = await baseline(store.url, lines, {
      token: { snapshotId: 's9', generatedAt: built(20) },
    });
    expect(lagSeconds).toBeNull();
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotId: 's9' });
    expect(await skuRow(store.sql, moved)).toMatchObject({ hash: 'h2' });
    expect(await marks(store.sql)).toEqual({ [moved]: 'changed' });
  });

  test('times of each answer, from a route that lags, cost one manifest instead of one each time', async () => {
    await ledTo12();
    const lines = SKUS.map((sku) => line(sku));
    const asked: boolean[] = [];
    for (let hour = 18; hour < 23; hour += 1) {
      partner.named = { ...partner.named, snapshotId: 's9', generatedAt: built(hour) };
      await run('catalog-check');
      const { behind } = await found();
      asked.push(behind);
      if (behind) {
        await baseline(store.url, lines, { token: { snapshotId: 's9', generatedAt: built(hour) } });
        await lead();
        await halfDayLater();
      }
      await minutesLater(31);
    }
    expect(asked).toEqual([false, true, false, false, false]);
    // Once one stands still, times are of builds.
    await run('catalog-check');
    await run('catalog-check');
    expect(await found()).toMatchObject({ doubt: 'suspected' });
  });

  test('it is also recognised if the manifest route never named the token, but the other one of that id', async () => {
    await lead();
    await halfDayLater();
    partner.named = { ...partner.named, snapshotId: 's6', generatedAt: built(20) };
    await run('catalog-check');
    await minutesLater(31);
    await run('catalog-check');
    expect(await found()).toMatchObject({ doubt: 'behind' });
  });
});

test('a delta that was behind and stands still is behind again for an id named before the manifest came', async () => {
  await ledTo12();
  await store.sql`delete from catalog_internal.left_tokens`;
  await store.sql`update catalog_internal.sync set delta_doubt = 'distrusted'`;
  partner.named = { ...partner.named, snapshotId: 's6', generatedAt: built(18) };
  await run('catalog-check');
  expect(await found()).toMatchObject({ doubt: 'distrusted' });
  await run('delta');
  await run('catalog-check');
  expect(await found()).toMatchObject({ doubt: 'behind' });
});

test('a snapshot rebuilt under the id of the rejected token is accepted, whoever has named it', async () => {
  partner.answers = () => {
    throw new PartnerError('snapshot-expired', 'delta', { status: 400 });
  };
  await run('delta');
  await store.sql`update catalog_internal.sync set manifest_refused = 'rejected-token'`;
  await rest();
  await run('catalog-check');
  expect(await found()).toMatchObject({ asked: false });
  for (let times = 0; times < 2; times += 1) {
    partner.named = { ...partner.named, generatedAt: built(7) };
    await run('catalog-check');
    expect(await found()).toMatchObject({ asked: true });
    const offered = { snapshotId: 's6', generatedAt: built(7) };
    expect(judgeOffer(offered, await readSyncState(store.sql))).toBeNull();
    await rest();
  }
});

test('the mirror’s own snapshot, rebuilt while a delta ran, is found by the next check despite its equal time', async () => {
  await store.sql`update catalog_internal.tasks set running_until = now() where task = 'delta'`;
  partner.named = { ...partner.named, generatedAt: built(7) };
  await run('catalog-check');
  expect(await found()).toMatchObject({ catalogDifference: null });
  await store.sql`update catalog_internal.tasks set running_until = null where task = 'delta'`;
  await run('catalog-check');
  expect(await found()).toMatchObject({ catalogDifference: { rebuilt: true } });
});
