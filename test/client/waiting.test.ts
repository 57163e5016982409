import { setImmediate } from 'node:timers/promises';
import type { Sql } from 'postgres';
import { expect, test } from 'vitest';
import { follow } from '../../src/client/follow.ts';
import { listenForNews } from '../../src/client/source.ts';

/** Behaves like the driver, which remembers a channel for which LISTEN has failed, and each listener. */
class Driver {
  isStandby = true;
  isAway = false;
  isHanging = false;
  /** Whether its next connection is kept waiting, as in the queue of a pooler. */
  isKeptWaiting = false;
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
        if (this.isKeptWaiting) await new Promise(() => {});
        this.listeners.push(tell);
        const refused = () =>
          Promise.reject(Object.assign(new Error('no LISTEN in recovery'), { code: '25006' }));
        this.asked ??= this.isStandby ? refused() : Promise.resolve();
        await this.asked;
        onListen();
        return {
          unlisten: async () => {
            this.listeners.splice(this.listeners.indexOf(tell), 1);
            if (this.isHanging) await new Promise(() => {});
          },
        };
      },
    } as unknown as Sql;
  }

  /** Behaves as if the next connection after one that listened is to a standby, for as long as that lives. */
  listensAgainOnStandby(): void {
    const refused = Promise.reject(Object.assign(new Error('no LISTEN in recovery'), { code: '25006' }));
    refused.catch(() => {});
    this.asked = refused;
  }
}

/** Tells whether a promise settles before all other work is done. */
const ended = (waited: Promise<unknown>) => Promise.race([waited.then(() => 'ended'), setImmediate('waits')]);

/**
 * Returns a sleep that only lets other work finish, and how long each sleep that was not ended early should have
 * been.
 */
function sleeping() {
  const waits: number[] = [];
  const sleep = async (ms: number, signal: AbortSignal) => {
    await setImmediate();
    if (!signal.aborted) waits.push(ms);
  };
  return { waits, options: { pollMs: 60_000, sleep, signal: undefined } };
}

test('on a standby nothing is heard and no listeners pile up, and notifications arrive once it is promoted', async () => {
  const driver = new Driver();
  const { waits, options } = sleeping();
  const news = listenForNews(driver.sql, options);
  for (let poll = 0; poll < 3; poll += 1) await news.wait();
  driver.isAway = true;
  await news.wait();
  expect(waits).toEqual([5000, 5000, 5000, 5000]);
  expect(driver.listeners).toHaveLength(0);
  driver.isAway = false;
  driver.isStandby = false;
  // Changes that came while nobody listened are asked for at once.
  await news.wait();
  expect(driver.listeners).toHaveLength(1);
  await news.wait();
  expect(waits.slice(4)).toEqual([60_000]);
  await news.wait();
  expect(driver.listeners).toHaveLength(1);
  await news.close();
  expect(driver.listeners).toHaveLength(0);
});

test("a refusal that the driver remembers beyond a standby's promotion is retried ever more rarely", async () => {
  const driver = new Driver();
  driver.isStandby = false;
  driver.listensAgainOnStandby();
  const { waits, options } = sleeping();
  const news = listenForNews(driver.sql, options);
  for (let poll = 0; poll < 5000; poll += 1) await news.wait();
  expect(new Set(waits)).toEqual(new Set([5000]));
  // Each attempt stays in the driver, which tells it of each notification.
  expect(driver.listeners.length).toBeLessThan(20);
  // Its connection was lost at last.
  driver.asked = null;
  for (let poll = 0; poll < 1024; poll += 1) await news.wait();
  expect(waits.at(-1)).toBe(60_000);
});

test('if polls find changes without notifications, polls become more frequent until a notification comes', async () => {
  const driver = new Driver();
  driver.isStandby = false;
  const waits: number[] = [];
  const woken: (() => void)[] = [];
  const news = listenForNews(driver.sql, {
    pollMs: 60_000,
    sleep: async (ms, signal) => {
      await setImmediate();
      if (signal.aborted) return;
      waits.push(ms);
      const { promise, resolve } = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => resolve());
      woken.push(resolve);
      await promise;
    },
    signal: undefined,
  });
  /** Waits for news, which the clock or a notification ends. */
  const waited = async (hasFound: boolean, by: 'poll' | 'notification') => {
    const before = waits.length;
    const waiting = news.wait(hasFound);
    while (waits.length === before) {
      if ((await ended(waiting)) === 'ended') return;
    }
    if (by === 'poll') woken.at(-1)?.();
    else for (const tell of driver.listeners) tell();
    await waiting;
  };
  // It has started to listen, which counts as news.
  await waited(false, 'poll');
  await waited(true, 'poll');
  await waited(false, 'poll');
  await waited(false, 'poll');
  expect(new Set(waits)).toEqual(new Set([60_000]));
  await waited(true, 'poll');
  await waited(true, 'poll');
  await waited(false, 'poll');
  await waited(false, 'notification');
  expect(waits.at(-1)).toBe(5000);
  await waited(true, 'poll');
  expect(waits.at(-1)).toBe(60_000);
});

test('a consumer that is kept waiting for the listening connection polls for changes', async () => {
  const driver = new Driver();
  driver.isStandby = false;
  driver.isKeptWaiting = true;
  const { waits, options } = sleeping();
  const news = listenForNews(driver.sql, options);
  for (let poll = 0; poll < 3; poll += 1) {
    const waiting = news.wait();
    await setImmediate();
    expect(await ended(waiting)).toBe('ended');
  }
  expect(waits).toEqual([5000, 5000, 5000]);
  await news.close();
});

test('ending does not wait for a server that has stopped answering', async () => {
  const driver = new Driver();
  driver.isStandby = false;
  const news = listenForNews(driver.sql, sleeping().options);
  await news.wait();
  driver.isHanging = true;
  expect(await ended(news.close())).toBe('ended');
});

test('ending does not wait for a read without an answer', async () => {
  const stop = new AbortController();
  const silent = { unsafe: () => ({ values: () => new Promise(() => {}) }) } as unknown as Sql;
  const reading = follow({ sql: silent, position: 'now', signal: stop.signal }).next();
  expect(await ended(reading)).toBe('waits');
  stop.abort();
  expect(await ended(reading)).toBe('ended');
});
