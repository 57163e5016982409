import { expect, test } from 'vitest';
import { applyDelta, type DeltaChange } from '../../src/store/catalog/delta.ts';
import { useStore } from './support.ts';

const store = useStore();

const delta = async (differs: Partial<DeltaChange>) =>
  await applyDelta(store.sql, {
    since: 's1',
    toSnapshot: 's2',
    changed: [],
    removed: [],
    nowLive: [],
    ...differs,
  });

test('a delta whose answer was stored long after its request is dated by the request', async () => {
  const { sql } = store;
  const dates = async () =>
    await sql`
      select (extract(epoch from now() - delta_checked_at) / 60)::int as checked,
        (extract(epoch from now() - snapshot_moved_at) / 60)::int as moved, catalog_internal.delta_is_late(s, g) as late
      from catalog_internal.sync s, catalog_internal.settings g`;
  await sql`update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now()`;
  await sql`update catalog_internal.sync set delta_checked_at = now() - interval '90 minutes'`;
  const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000);
  await delta({ toSnapshot: 's1', askedAt: ago(60) });
  expect(await dates()).toEqual([{ checked: 60, moved: null, late: true }]);
  // First another daemon has asked since; then a check dated in the future counts as none.
  await delta({ toSnapshot: 's1', askedAt: ago(70) });
  expect(await dates()).toEqual([{ checked: 60, moved: null, late: true }]);
  await sql`update catalog_internal.sync set delta_checked_at = now() + interval '1 day'`;
  await delta({ toSnapshot: 's2', isEnd: true, askedAt: ago(50) });
  expect(await dates()).toEqual([{ checked: 50, moved: 50, late: true }]);
  await delta({ since: 's2', askedAt: ago(-5) });
  expect(await dates()).toEqual([{ checked: 0, moved: 50, late: false }]);
});
