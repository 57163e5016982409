import { beforeEach, describe, expect, test } from 'vitest';
import { armFailpoints } from '../../src/lib/failpoint.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import { useStore } from '../store/support.ts';
import { useFollowed } from './followed.ts';

const store = useStore();
const { partner, run, rest, found } = useFollowed(store);

describe('answers of the delta that move the token', () => {
  const isRead = async () => {
    const [row] = await store.sql<[{ read: boolean }]>`
      select delta_checked_at > now() - interval '10 minutes' as read from catalog_internal.sync`;
    return row.read;
  };
  /** Leads on from s6 by so many snapshots, with a SKU in the last. */
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

  test('of which there are more than a run reads do not count as read', async () => {
    partner.answers = (since) => ({ ...chain(200)(since), changed: since === 's7' ? ['A01'] : [] });
    await run('delta');
    expect([(await readSyncState(store.sql)).snapshotId, await isRead()]).toEqual(['s106', false]);
  });

  test('each to one of its own, without any SKU, are told by a hundred of them; then three are the end, until one stands still', async () => {
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

  test('and that a cache has kept for long are no end, though they lead back', async () => {
    partner.answers = (since) => ({ toSnapshot: since === 's6' ? 's7' : 's6', isOld: true });
    await run('delta');
    expect(await isRead()).toBe(false);
  });
});

describe('a number of SKUs in `changed` that may be the most there is', () => {
  const many = (count: number) => Array.from({ length: count }, (_, n) => `B${n}`);

  /** Deltas of so many SKUs, a poll each. Whether the manifest was asked for, and said why, after each. */
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

  test('the same round one twice has the manifest asked for, once in some hours', async () => {
    expect(await deltasOf(500, 20, 500, 500)).toEqual([false, false, true, false]);
    await store.sql`update catalog_internal.sync set limit_suspected_at = now() - interval '6 hours 1 minute'`;
    expect(await deltasOf(500)).toEqual([true]);
  });

  test('has it asked for also where the process ends as soon as that is committed', async () => {
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
  ])('one %s says nothing', async (_, counts) => {
    expect(await deltasOf(...counts)).not.toContain(true);
  });

  test('each is applied whole, and the next is asked for at once', async () => {
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
