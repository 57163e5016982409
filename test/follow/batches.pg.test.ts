import { describe, expect, test } from 'vitest';
import type { Batch } from '../../src/follow/batch.ts';
import type { Result } from '../../src/follow/delivery.ts';
import { parseFilters } from '../../src/follow/filter.ts';
import { messageOf } from '../../src/follow/webhook.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { listDeadLetters } from '../../src/store/history/follower-list.ts';
import { HOUR, knownSkus, useStore } from '../store/support.ts';
import { movePrices, positionsAfter } from './changes.ts';
import { answer, OK, only, run, session, taken } from './session.ts';

const store = useStore();

const limitedTo = (changes: number) => ({ changes, bytes: 100_000 });
/** Makes the last batch have started to fail this many hours earlier. */
const hoursPass = (hours: number) => store.sql`
  update catalog_internal.followers set failing_since = failing_since - make_interval(hours => ${hours}),
    clock_failing_since = clock_failing_since - make_interval(hours => ${hours})`;
const positionOf = (line: string) => (JSON.parse(line) as { position: number }).position;

describe('a receiver', () => {
  test('that refuses large batches gets smaller ones: every change, in order, with no dead letter', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    await movePrices(store.sql, 25);
    const sizes: number[] = [];
    const { positions, events, end } = await run(
      client,
      held,
      place,
      ({ lines }) => (sizes.push(lines.length), lines.length > 3 ? answer('refused', 413) : OK),
      { attempts: 1, limits: limitedTo(10) },
    );
    expect(end).toBe('caught-up');
    expect(positions).toEqual(await positionsAfter(store.sql, place.position));
    // A size that was refused once is not tried again with each batch.
    expect(sizes.filter((size) => size > 3).length).toBeLessThanOrEqual(3);
    expect(events.filter(({ event }) => event === 'smaller').length).toBe(
      sizes.filter((size) => size > 3).length,
    );
    expect(await only(store)).toMatchObject({ deadLetters: 0, failures: 0, behind: 0 });
  });

  test('that refuses because of its clock is retried for a day, and then gets a dead letter like any other', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    await movePrices(store.sql, 1);
    let passedMs = 0;
    const clock = {
      ...systemClock,
      monotonic: () => passedMs,
      sleep: async (ms: number) => void (passedMs += ms),
    };
    const byClock: Result = { ...answer('failed', 422), retryAfterMs: HOUR, isByClock: true };
    const { events, end } = await run(client, held, place, () => byClock, { attempts: 30, clock });
    expect(end).toBe('caught-up');
    expect(events.at(-1)).toMatchObject({ event: 'buried', attempts: 24 + 30 });
  });

  test('that refuses because of its clock is retried for a day in total, however often the process restarts', async () => {
    const { sql } = store;
    const first = await session(store);
    await taken(first);
    await first.end();
    await movePrices(sql, 1);
    const byClock: Result = { ...answer('failed', 422), isByClock: true };
    const ends: string[] = [];
    for (const hours of [0, 11, 11, 11]) {
      await hoursPass(hours);
      const client = await session(store);
      const { place, held } = await taken(client);
      const { end, events } = await run(client, held, place, () => byClock, { attempts: 1 });
      ends.push(end, ...events.map(({ event }) => event));
      await client.end();
    }
    expect(ends).toEqual([...Array<string>(3).fill('undelivered'), 'caught-up', 'buried']);
  });

  test('that refuses because of its clock is retried for a day of such refusals, not counting other failures', async () => {
    const first = await session(store);
    await taken(first);
    await first.end();
    await movePrices(store.sql, 1);
    const byClock: Result = { ...answer('failed', 422), isByClock: true };
    const ends: string[] = [];
    for (const [hours, said] of [
      [0, answer('failed', 503)],
      [30, byClock],
      // Other failures in between do not restart the day.
      [11, answer('failed', 503)],
      [12, byClock],
      [2, byClock],
    ] as const) {
      await hoursPass(hours);
      const client = await session(store);
      const { place, held } = await taken(client);
      const { end, events } = await run(client, held, place, () => said, { attempts: 1 });
      ends.push(end, ...events.map(({ event }) => event));
      await client.end();
    }
    expect(ends).toEqual([...Array<string>(4).fill('undelivered'), 'caught-up', 'buried']);
    const [{ since }] = await store.sql<[{ since: Date | null }]>`
      select clock_failing_since as since from catalog_internal.followers`;
    expect(since).toBeNull();
  });

  test('that refuses one batch leaves every other batch its full number of attempts', async () => {
    const { sql } = store;
    const killed = new Error('killed');
    const following = async (
      said: readonly (number | 'dies')[],
      filter: readonly string[],
      changes: number,
    ) => {
      const client = await session(store);
      const { place, held } = await taken(client);
      const left = [...said];
      const answers = () => {
        const next = left.shift() ?? 200;
        if (next === 'dies') throw killed;
        return next === 200 ? OK : answer('refused', next);
      };
      const more = { attempts: 3, limits: limitedTo(changes), filter: parseFilters(filter, []) };
      await run(client, held, place, answers, more).catch((error: unknown) => expect(error).toBe(killed));
      await client.end();
      const { deadLetters, failures, failingSince } = await only(store);
      return { left, deadLetters, failures, isFailing: failingSince !== null };
    };
    const isTaken = { left: [], deadLetters: 0, failures: 0, isFailing: false };
    await following([], [], 10);
    // The parts of a batch that is too large are batches of their own.
    await movePrices(sql, 4);
    expect(await following([400, 400, 413, 400, 400, 200, 400, 400], [], 10)).toEqual(isTaken);
    // So is what is cut again, even if the process ends before it is answered.
    await movePrices(sql, 4);
    const first = await following([400, 400, 'dies'], [], 4);
    expect(first).toEqual({ left: [], deadLetters: 0, failures: 2, isFailing: true });
    const anew = await following(['dies'], [], 2);
    expect(anew).toEqual({ left: [], deadLetters: 0, failures: 0, isFailing: false });
    expect(await following([400, 400], [], 2)).toEqual(isTaken);
    // So is what follows a batch of which nothing passes the filter any more.
    await movePrices(sql, 2);
    expect(await following([400, 400, 'dies'], [], 4)).toMatchObject({ failures: 2 });
    expect(await following([], ['sku=nobody'], 4)).toEqual(isTaken);
    await movePrices(sql, 2);
    expect(await following([400, 400], [], 4)).toEqual(isTaken);
    // So is what follows it in the same page.
    await movePrices(sql, 2, 'A');
    await movePrices(sql, 2, 'B');
    expect(await following([400, 400, 'dies'], ['sku=A'], 4)).toMatchObject({ failures: 2 });
    expect(await following([400, 400], ['sku=B'], 4)).toEqual(isTaken);
  });

  test('that refuses a single change as too large gets only that change as a dead letter', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    await movePrices(store.sql, 7);
    const after = await positionsAfter(store.sql, place.position);
    const bad = after[2];
    const { positions, end } = await run(
      client,
      held,
      place,
      ({ lines }) => (lines.some((line) => positionOf(line) === bad) ? answer('refused', 413) : OK),
      { attempts: 2 },
    );
    expect(end).toBe('caught-up');
    expect(positions).toEqual(after.filter((position) => position !== bad));
    expect(await listDeadLetters(store.sql, 'shop')).toMatchObject([
      { changes: 1, positionFrom: String(bad), lastStatus: 413 },
    ]);
  });

  test.each([
    ['after failures is cut anew where less is allowed by now', 1, 2, [2, 2, 2]],
    ['after failures stays as it was where that is allowed', 1, 100, [4, 2]],
    ['that nobody has answered stays as it was', 0, 2, [4, 2]],
  ])('a batch in flight %s', async (_, failures, most, expected) => {
    const client = await session(store);
    const { place, held } = await taken(client);
    await movePrices(store.sql, 6);
    const sendingTo = BigInt((await positionsAfter(store.sql, place.position))[3] ?? 0);
    const at = { ...place, sendingTo, failures };
    const { delivered } = await run(client, held, at, () => OK, { limits: limitedTo(most) });
    expect(delivered.map(({ lines }) => lines.length)).toEqual(expected);
  });
});

test('the beginning of a copy is marked in its first batch only, even after a restart', async () => {
  const { sql } = store;
  const skus = Array.from({ length: 250 }, (_, n) => `S${String(n).padStart(3, '0')}`);
  await knownSkus(sql, skus);
  const copying = async (...sku: string[]) => {
    const client = await session(store);
    const { place, held } = await taken(client, { from: 'start', reset: true });
    const filter = parseFilters(
      sku.map((one) => `sku=${one}`),
      [],
    );
    const begins: boolean[] = [];
    const note = (batch: Batch) => {
      const { data } = JSON.parse(messageOf('shop', batch).body) as { data: { copy_begins?: true } };
      begins.push(data.copy_begins === true);
    };
    return { client, place, held, filter, begins, note };
  };
  const all = await copying();
  await run(all.client, all.held, all.place, (batch) => (all.note(batch), OK));
  expect(all.begins.length).toBeGreaterThan(3);
  expect(all.begins).toEqual(all.begins.map((_, at) => at === 0));
  await all.client.end();
  // Nothing of the first pages passes the filter; then the process is killed and loses its session.
  const few = await copying('S240', 'S249');
  const killed = new Error('killed');
  const die = (batch: Batch) => {
    few.note(batch);
    throw killed;
  };
  await expect(run(few.client, few.held, few.place, die, { filter: few.filter })).rejects.toBe(killed);
  await few.client.end();
  const next = await session(store);
  const again = await taken(next);
  expect(again.place).toMatchObject({ afterSku: '' });
  await run(next, again.held, again.place, (batch) => (few.note(batch), OK), {
    filter: few.filter,
    limits: limitedTo(1),
  });
  expect(few.begins.slice(0, 2)).toEqual([true, true]);
  expect(few.begins.length).toBeGreaterThan(2);
  expect(few.begins.slice(2)).not.toContain(true);
  expect(await only(store)).toMatchObject({ afterSku: null, behind: 0 });
});
