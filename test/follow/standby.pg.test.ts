import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { eventually } from '../support/eventually.ts';
import { emptyFolder, serving } from '../support/servers-in-turn.ts';
import { movePrices } from './changes.ts';
import { following, retries, sleeps } from './restoring.ts';

/* A follower without a name writes nothing, so it may read from a standby. */

/** Creates a primary with some changes, and a standby that is a copy of it at that time. */
async function withStandby() {
  const folder = await emptyFolder();
  const [primary, standby] = [join(folder, 'primary'), join(folder, 'standby')];
  await serving(primary, async (sql, url) => {
    await migrateDatabase(url);
    await movePrices(sql, 3);
  });
  await promisify(execFile)('cp', ['-a', primary, standby]);
  await writeFile(join(standby, 'pg/standby.signal'), '');
  return { primary, standby };
}

test('on a standby, which refuses LISTEN, a follower polls more often until it is promoted, and reports no loss', async () => {
  const { standby } = await withStandby();
  await serving(
    standby,
    async (sql, url) => {
      const once = following(() => url, { name: null, from: 'oldest', once: true });
      expect(await once.ended).toMatchObject({ end: 'caught-up' });
      expect(once.seen).toHaveLength(3);
      const { asked, clock, enough } = sleeps(3);
      const lost: unknown[] = [];
      const { stop } = following(() => url, { name: null, from: 'oldest' }, undefined, {
        clock,
        storeLost: (error) => void lost.push(error),
      });
      await enough;
      stop.abort();
      expect({ asked, lost }).toEqual({ asked: [5000, 5000, 5000], lost: [] });
      await expectHeard(sql, url);
    },
    'on',
  );
});

/** Follows on a standby that is promoted meanwhile: from then on it hears of changes. */
async function expectHeard(sql: Sql, url: string): Promise<void> {
  const asked: number[] = [];
  const { seen, stop, ended } = following(() => url, { name: null, from: 'now' }, undefined, {
    clock: {
      ...systemClock,
      async sleep(ms, signal) {
        asked.push(ms);
        if (asked.length === 1) await sql`select pg_promote()`;
        else await systemClock.sleep(ms, signal);
      },
    },
  });
  await eventually(() => asked.length === 2);
  await movePrices(sql, 2);
  await eventually(() => seen.length === 2, { within: 10_000 });
  expect(asked.slice(0, 2)).toEqual([5000, 60_000]);
  stop.abort();
  await ended;
}

test('a standby that is behind what was delivered does not count as back, and is retried less and less often', async () => {
  const { primary, standby } = await withStandby();
  const { asked, clock, enough } = sleeps(5);
  const back: string[] = [];
  const later = Promise.withResolvers<string>();
  await serving(primary, async (sql, url) => {
    // More than a sequence is logged in advance on disk.
    await movePrices(sql, 40);
    const urls = [url];
    const { begun } = following(() => urls.pop() ?? later.promise, { name: null, from: 'now' }, undefined, {
      clock: retries(clock),
      storeBack: () => void back.push('back'),
    });
    await begun;
  });
  await serving(
    standby,
    async (_, url) => {
      later.resolve(url);
      await enough;
    },
    'on',
  );
  expect({ asked, back }).toEqual({ asked: [500, 1000, 2000, 4000, 8000], back: [] });
});
