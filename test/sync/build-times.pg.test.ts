import { expect, test } from 'vitest';
import { DAY_MS } from '../../src/lib/duration.ts';
import { useStore } from '../store/support.ts';
import { built, useFollowed } from './followed.ts';

const store = useStore();
const { partner, run } = useFollowed(store);

test.each([-3 * DAY_MS, 3 * DAY_MS])(
  'a build time in the future is recognised by the clock of Postgres, though the host’s is %i ms off',
  async (hostAheadMs) => {
    partner.hostAheadMs = hostAheadMs;
    const seenAt = async (generatedAt: Date) => {
      partner.named = { ...partner.named, snapshotId: `s${generatedAt.getTime()}`, generatedAt };
      await run('catalog-check');
      const [row] = await store.sql<[{ at: Date | null }]>`
        select seen_generated_at as at from catalog_internal.sync`;
      return row.at;
    };
    expect(await seenAt(new Date(Date.now() + DAY_MS))).toBeNull();
    expect(await seenAt(built(12))).toEqual(built(12));
  },
);
