import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { eventually } from '../support/eventually.ts';
import { proxyTo } from '../support/proxy.ts';
import { movePrices, positionNow } from './changes.ts';
import { cutOff, following, withBackup } from './restoring.ts';

/* A follower whose Postgres goes away after it has started. */

/**
 * Returns a clock that skips every sleep except the minute until the next poll, and how long each sleep should
 * have been.
 */
function impatient() {
  const asked: number[] = [];
  const clock = {
    ...systemClock,
    async sleep(ms: number, signal?: AbortSignal) {
      if (ms >= 60_000) return await systemClock.sleep(ms, signal);
      asked.push(ms);
    },
  };
  return { asked, clock };
}

const NOWHERE = 'postgres://nobody@127.0.0.1:1/nothing';

test('with --once, a follower that cannot reach Postgres gives up after as many attempts as for a receiver', async () => {
  const { source } = await withBackup({ known: false });
  const { asked, clock } = impatient();
  let url = source.url;
  const { ended } = following(
    () => url,
    { from: 'oldest', once: true },
    async () => {
      url = NOWHERE;
      await cutOff(source.sql);
    },
    { clock },
  );
  await expect(ended).rejects.toMatchObject({ kind: 'database-away', hint: expect.any(String) });
  expect(asked).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
});

test('with --once, a follower that can read but never store its position gives up as well', async () => {
  const { source } = await withBackup({ known: false });
  const { asked, clock } = impatient();
  const back: string[] = [];
  const { seen, ended } = following(
    () => source.url,
    { from: 'oldest', once: true },
    async () => void (await cutOff(source.sql)),
    { clock, storeBack: () => void back.push('back') },
  );
  await expect(ended).rejects.toMatchObject({ kind: 'database-away' });
  expect(asked).toHaveLength(9);
  expect(asked.slice(0, 4)).toEqual([500, 1000, 2000, 4000]);
  // The receiver has received all of it ten times.
  expect(seen).toHaveLength(30);
  expect(back).toHaveLength(9);
});

test('a stored position resets the back-off', async () => {
  const { source } = await withBackup({ known: true });
  const { asked, clock } = impatient();
  const { begun, seen, stop, ended } = following(() => source.url, {}, undefined, { clock });
  await begun;
  for (let times = 1; times <= 3; times += 1) {
    await cutOff(source.sql);
    await eventually(() => asked.length === times);
    await movePrices(source.sql, 1);
    const position = String(await positionNow(source.sql));
    await eventually(async () => {
      const [kept] = await source.sql`select position from catalog_internal.followers`;
      return kept?.['position'] === position;
    });
  }
  expect({ asked, seen: seen.length }).toEqual({ asked: [500, 500, 500], seen: 3 });
  stop.abort();
  await ended;
});

test.each(['silent while it follows', 'silent while it connects'])(
  'a follower that is told to stop ends even if Postgres is %s',
  async (when) => {
    const { source } = await withBackup({ known: true });
    const proxy = await proxyTo(source.url);
    onTestFinished(() => proxy[Symbol.asyncDispose]());
    const url = Object.assign(new URL(source.url), { port: String(proxy.port) }).href;
    const { begun, stop, ended } = following(() => url);
    await begun;
    if (when === 'silent while it connects') {
      proxy.set({ blackHole: true });
      proxy.reset();
      await eventually(() => proxy.connections > 1);
    } else {
      proxy.silence();
      await movePrices(source.sql, 1);
    }
    const from = performance.now();
    stop.abort();
    expect((await ended).end).toBe('stopped');
    // A server that does not answer is given a second to close.
    expect(performance.now() - from).toBeLessThan(5000);
  },
);
