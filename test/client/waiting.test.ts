import type { Sql } from 'postgres';
import { expect, test } from 'vitest';
import { listenForNews } from '../../src/client/source.ts';

/** A driver as it is: of a channel for which LISTEN has failed it remembers that, and each listener. */
class Driver {
  isStandby = true;
  isAway = false;
  readonly listeners: (() => void)[] = [];
  asked: Promise<void> | null = null;

  get sql(): Sql {
    return {
      unsafe: () => ({
        values: async () => {
          if (this.isAway) throw Object.assign(new Error('away'), { code: 'CONNECTION_CLOSED' });
          return [[String(this.isStandby)]];
        },
      }),
      listen: async (_: string, tell: () => void, onListen: () => void) => {
        this.listeners.push(tell);
        const refused = () =>
          Promise.reject(Object.assign(new Error('no LISTEN in recovery'), { code: '25006' }));
        this.asked ??= this.isStandby ? refused() : Promise.resolve();
        await this.asked;
        onListen();
        return {
          unlisten: async () => void this.listeners.splice(this.listeners.indexOf(tell), 1),
        };
      },
    } as unknown as Sql;
  }
}

test('on a standby nothing is heard and nothing piles up, and once it is promoted notifications are', async () => {
  const driver = new Driver();
  const waits: number[] = [];
  const news = listenForNews(driver.sql, {
    pollMs: 60_000,
    sleep: async (ms) => void waits.push(ms),
    signal: undefined,
  });
  for (let poll = 0; poll < 3; poll += 1) await news.wait();
  driver.isAway = true;
  await news.wait();
  expect(waits).toEqual([5000, 5000, 5000, 5000]);
  expect(driver.listeners).toHaveLength(0);
  driver.isAway = false;
  driver.isStandby = false;
  // What came while nobody listened is asked for at once.
  await news.wait();
  expect(driver.listeners).toHaveLength(1);
  await news.wait();
  expect(waits.slice(4)).toEqual([60_000]);
  await news.wait();
  expect(driver.listeners).toHaveLength(1);
  await news.close();
  expect(driver.listeners).toHaveLength(0);
});
