import { describe, expect, test } from 'vitest';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { noteBrokenChain } from '../../src/store/catalog/tokens.ts';
import { endTask, startTask } from '../../src/store/ledger/tasks.ts';
import { HOUR, useStore } from './support.ts';

const store = useStore();

/** Sets the mirror's token, and moves the manifest two hours into the future. */
async function standing(token: string): Promise<void> {
  await store.sql`update catalog_internal.sync set snapshot_id = ${token}, chain_broken_at = null`;
  await store.sql`update catalog_internal.tasks set next_at = now() + interval '2 hours' where task = 'manifest'`;
}

/** Returns the minutes until the manifest is fetched, and how often the chain has broken in a row. */
async function seen() {
  const [row] = await store.sql<[{ minutes: number; breaks: number; rejected: string | null }]>`
    select greatest(0, round(extract(epoch from t.next_at - now()) / 60))::int as minutes, s.chain_breaks as breaks,
      s.rejected_snapshot_id as rejected
    from catalog_internal.tasks t, catalog_internal.sync s where t.task = 'manifest'`;
  return row;
}

describe('a broken chain of deltas', () => {
  test('has a manifest fetched at once, and later each time that it breaks again', async () => {
    const waits: number[] = [];
    for (let times = 1; times <= 9; times += 1) {
      await standing(`s${times}`);
      await noteBrokenChain(store.sql, `s${times}`);
      waits.push((await seen()).minutes);
    }
    expect(waits).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60]);
  });

  test('is counted once, however many processes find it broken', async () => {
    await standing('s1');
    for (let times = 0; times < 3; times += 1) await noteBrokenChain(store.sql, 's1');
    expect(await seen()).toEqual({ minutes: 0, breaks: 1, rejected: 's1' });
  });

  test('is ignored if the mirror has another token by now', async () => {
    await standing('s2');
    await noteBrokenChain(store.sql, 's1');
    expect(await seen()).toEqual({ minutes: 120, breaks: 0, rejected: null });
  });

  test('does not postpone a manifest that is due', async () => {
    await standing('s1');
    await store.sql`update catalog_internal.sync set chain_breaks = 5`;
    await store.sql`update catalog_internal.tasks set next_at = now() - interval '1 second' where task = 'manifest'`;
    await noteBrokenChain(store.sql, 's1');
    expect(await seen()).toMatchObject({ minutes: 0, breaks: 6 });
  });

  test('starts its count anew once a delta succeeds', async () => {
    await standing('s1');
    await store.sql`update catalog_internal.sync set chain_breaks = 3`;
    await applyDelta(store.sql, { since: 's1', toSnapshot: 's1', changed: [], removed: [], nowLive: [] });
    expect(await seen()).toMatchObject({ breaks: 0 });
  });

  describe('during a run of the manifest', () => {
    const WEEK = 7 * 24 * HOUR;

    /** Starts a run, does `meanwhile`, and ends the run as merged. */
    async function during(meanwhile: () => Promise<unknown>): Promise<void> {
      await store.sql`update catalog_internal.sync set manifest_applied_at = now() - interval '7 days'`;
      await store.sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
      const run = await startTask(store.sql, 'manifest', HOUR);
      if (run === null) throw new Error('not its time');
      await meanwhile();
      await endTask(store.sql, 'manifest', run.run, { how: 'done', outcome: 'done', nextInMs: WEEK });
    }
    /** Leaves the mirror as the COMMIT of the merge does. */
    const merged = () => store.sql`
      update catalog_internal.sync set manifest_applied_at = clock_timestamp(), chain_broken_at = null, rejected_snapshot_id = null`;

    test.each([
      ['for the first time', 0, 0],
      ['once more', 2, 2],
    ])(
      'has another manifest fetched after the run if that has merged already: %s',
      async (_, before, minutes) => {
        await standing('s1');
        await store.sql`update catalog_internal.sync set chain_breaks = ${before}`;
        await during(async () => {
          await merged();
          await noteBrokenChain(store.sql, 's1');
        });
        expect(await seen()).toEqual({ minutes, breaks: before + 1, rejected: 's1' });
      },
    );

    test('is repaired by a merge that comes later in the run', async () => {
      await standing('s1');
      await during(async () => {
        await noteBrokenChain(store.sql, 's1');
        await merged();
      });
      expect(await seen()).toMatchObject({ minutes: WEEK / 60_000, rejected: null });
    });
  });

  test('has a manifest within the hour, whatever has postponed it', async () => {
    await standing('s1');
    await noteBrokenChain(store.sql, 's1');
    await store.sql`update catalog_internal.tasks set next_at = now() + interval '7 days' where task = 'manifest'`;
    await noteBrokenChain(store.sql, 's1');
    expect(await seen()).toMatchObject({ minutes: 60, breaks: 1 });
    await store.sql`update catalog_internal.tasks set next_at = now() + interval '20 minutes' where task = 'manifest'`;
    await noteBrokenChain(store.sql, 's1');
    expect(await seen()).toMatchObject({ minutes: 20, breaks: 1 });
  });
});
