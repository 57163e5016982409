import { beforeEach, describe, expect, test } from 'vitest';
import { armFailpoints } from '../../src/lib/failpoint.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import { useStore } from '../store/support.ts';
import { useFollowed } from './followed.ts';

const store = useStore();
const { partner, run, rest, found } = useFollowed(store);

describe('delta answers that move the token', () => {
  const isRead = async () => {
    const [row] = await store.sql<[{ read: boolean }]>`
      select delta_checked_at > now() - interval '10 minutes' as read from catalog_internal.sync`;
    return row.read;
  };
  /** Leads on from s6 by `most` snapshots, with a SKU in the last one. */
  const chain = (most: number) => (since: string) => {
    const at = Number(since.slice(1));
    if (at >= most) return {};
    return { toSnapshot: `s${at + 1}`, changed: at + 1 === most ? ['A01'] : [] };
  };

  beforeEach(async () => {
    await store.sql`update catalog_internal.sync set delta_checked_at = now() - interval '12 hours'`;
  });

  test('without any SKU, as after an outage, are followed to the end', async () => {
    partner.answers = chain(60);
    await run('delta');
    const { snapshotId } = await readSyncState(store.sql);
    expect([snapshotId, partner.polls, await isRead()]).toEqual(['s60', 55, true]);
    const [{ due }] = await store.sql<
      [{ due: number }]
    >`select count(*)::int as due from catalog_internal.due where sku = 'A01'`;
    expect(due).toBe(1);
  });

  test('do not count as read if there are more than a run reads', async () => {
    partner.answers = (since) => ({ ...chain(200)(since), changed: since === 's7' ? ['A01'] : [] });
    await run('delta');
    expect([(await readSyncState(store.sql)).snapshotId, await isRead()]).toEqual(['s106', false]);
  });

  test('to new ones each time, without SKUs, are recognised after 100; then three suffice until one stands still', async () => {
    partner.answers = (since) => ({ toSnapshot: `s${Number(since.slice(1)) + 1}` });
    await run('delta');
    expect([partner.polls, await isRead()]).toEqual([100, true]);
    await store.sql`update catalog_internal.sync set delta_checked_at = now() - interval '12 hours'`;
    await run('delta');
    expect([partner.polls, await isRead()]).toEqual([103, true]);
    partner.answers = () => ({});
    await run('delta');
    partner.answers = chain(120);
    partner.polls = 0;
    await run('delta');
    expect([partner.polls, (await readSyncState(store.sql)).snapshotId]).toEqual([12, 's120']);
  });

  test('that a cache held for long do not count as the end, though they lead back', async () => {
    partner.answers = (since) => ({ toSnapshot: since === 's6' ? 's7' : 's6', isOld: true });
    await run('delta');
    expect(await isRead()).toBe(false);
  });
});

describe('a round number of SKUs in `changed`, which may be a limit,', () => {
  const many = (count: number) => Array.from({ length: count }, (_, n) => `B${n}`);

  /**
   * Plays deltas of these sizes, a poll each. Returns after each whether the manifest was requested, with the
   * reason logged.
   */
  async function deltasOf(...counts: number[]): Promise<boolean[]> {
    const asked: boolean[] = [];
    for (const [n, count] of counts.entries()) {
      await rest();
      const { snapshotId } = await readSyncState(store.sql);
      partner.answers = (since) =>
        since === snapshotId ? { toSnapshot: `to ${n}`, changed: many(count) } : {};
      partner.events = [];
      await run('delta');
      const { asked: isAsked, said } = await found();
      expect(said).toEqual(isAsked ? ['delta.limit-suspected'] : []);
      asked.push(isAsked);
    }
    return asked;
  }

  test('requests the manifest when it occurs twice, once in some hours', async () => {
    expect(await deltasOf(500, 20, 500, 500)).toEqual([false, false, true, false]);
    await store.sql`update catalog_internal.sync set limit_suspected_at = now() - interval '6 hours 1 minute'`;
    expect(await deltasOf(500)).toEqual([true]);
  });

  test('requests the manifest even if the process ends as soon as the delta is committed', async () => {
    await deltasOf(500);
    await rest();
    partner.answers = () => ({ toSnapshot: 'cut', changed: many(500) });
    armFailpoints((at) => {
      if (at === 'delta.committed') throw new Error('killed');
    });
    await run('delta').finally(() => armFailpoints(() => {}));
    expect((await readSyncState(store.sql)).snapshotId).toBe('cut');
    expect((await found()).asked).toBe(true);
  });

  test.each([
    ['that is small', [400, 400]],
    ['that is not round', [550, 550]],
    ['that a larger one refutes', [500, 501, 500]],
    ['of which the larger counts', [600, 500, 500]],
  ])('%s means nothing', async (_, counts) => {
    expect(await deltasOf(...counts)).not.toContain(true);
  });

  test('does not hold up its deltas: each is applied whole, and the next is requested at once', async () => {
    partner.answers = (since) => {
      const n = Number(since.slice(1)) - 6;
      return n < 2 ? { toSnapshot: `s${n + 7}`, changed: many(500 * (n + 1)).slice(500 * n) } : {};
    };
    await run('delta');
    expect(partner.polls).toBe(3);
    const [{ count }] = await store.sql<
      [{ count: number }]
    >`select count(*)::int as count from catalog.skus where in_manifest`;
    expect(count).toBe(1020);
    expect((await found()).asked).toBe(true);
  });
});
