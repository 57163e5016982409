import { array, assert, asyncProperty, constantFrom, integer, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Batch } from '../../src/follow/batch.ts';
import type { Result } from '../../src/follow/delivery.ts';
import { parseFilters } from '../../src/follow/filter.ts';
import { messageOf } from '../../src/follow/webhook.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { readChanges } from '../../src/store/history/feed.ts';
import {
  discardLetters,
  listDeadLetters,
  readLetter,
  forgetFollower,
} from '../../src/store/history/follower-list.ts';
import { MAX_DEAD_LETTERS } from '../../src/store/history/follower-name.ts';
import { answerAsked, found, knownSkus, useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { runs } from '../support/soak.ts';
import { movePrices, positionNow, positionsAfter } from './changes.ts';
import { answer, OK, only, run, session, taken } from './session.ts';

const store = useStore();
const from = (after: bigint) => ({ after, seen: after });

describe('the deliveries of a follower', () => {
  test('contain every change, in order and at least once, whatever the receiver and the process do', async () => {
    await assert(
      asyncProperty(
        array(
          record({
            count: integer({ min: 1, max: 9 }),
            faults: array(constantFrom('503', '400', 'no answer', 'killed', 'killed behind it'), {
              maxLength: 4,
            }),
          }),
          { minLength: 1, maxLength: 5 },
        ),
        async (steps) => {
          await forgetFollower(store.sql, 'shop');
          const start = await positionNow(store.sql);
          const seen: number[] = [];
          const first = await session(store);
          await taken(first);
          await first.end();
          for (const { count, faults } of steps) {
            await movePrices(store.sql, count);
            const left = [...faults];
            for (let isOver = false; !isOver;) {
              // Each round is a new process; the last one was killed.
              const client = await session(store);
              const { place, held } = await taken(client);
              const killed = new Error('killed');
              const { end } = await run(client, held, place, async (batch) => {
                const fault = left.shift();
                if (fault === 'killed') throw killed;
                if (fault === '503') return answer('failed', 503);
                if (fault === '400') return answer('refused', 400);
                if (fault === 'no answer') return answer('failed', null);
                seen.push(...batch.lines.map((line) => (JSON.parse(line) as { position: number }).position));
                if (fault === 'killed behind it') throw killed;
                return OK;
              }).catch((error: unknown) => {
                if (error !== killed) throw error;
                return { end: 'killed' };
              });
              isOver = end === 'caught-up';
              await client.end();
            }
          }
          const expected = await positionsAfter(store.sql, start);
          // Repetitions come as whole batches: without them nothing is out of order and nothing is missing.
          let last = 0;
          const fresh = seen.filter((position) => position > last && ((last = position), true));
          expect(fresh).toEqual(expected);
        },
      ),
      { numRuns: runs(12, 100) },
    );
  });

  test('continue from the stored position; a batch in flight is cut as before and keeps its id', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    await movePrices(store.sql, 6);
    const ids: string[] = [];
    const killed = new Error('killed');
    await expect(
      run(client, held, place, (batch) => {
        ids.push(messageOf('shop', batch).messageId);
        throw killed;
      }),
    ).rejects.toBe(killed);
    await client.end();
    await movePrices(store.sql, 5);
    const next = await session(store);
    const again = await taken(next);
    expect(again.place.sendingTo).not.toBeNull();
    const { delivered, positions } = await run(next, again.held, again.place, () => OK, {
      sink: {
        limits: { changes: 100, bytes: 100_000 },
        async deliver(batch) {
          ids.push(messageOf('shop', batch).messageId);
          return OK;
        },
        async close() {},
      },
    });
    expect([delivered, positions]).toEqual([[], []]);
    expect(ids[1]).toBe(ids[0]);
    expect(ids).toHaveLength(3);
    expect((await only(store)).behind).toBe(0);
  });

  test('get a new id if a batch has more changes than one that may have arrived already', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    for (const sku of ['A', 'B', 'A']) await movePrices(store.sql, 1, sku);
    const killed = new Error('killed, after the receiver has taken it');
    const ids: string[] = [];
    const taking = (batch: Batch) => void ids.push(messageOf('shop', batch).messageId);
    const refuse = (batch: Batch) => {
      taking(batch);
      throw killed;
    };
    await expect(run(client, held, place, refuse, { filter: parseFilters(['sku=A'], []) })).rejects.toBe(
      killed,
    );
    await client.end();
    const next = await session(store);
    const again = await taken(next);
    const { positions } = await run(next, again.held, again.place, (batch) => (taking(batch), OK));
    expect(positions).toHaveLength(3);
    // A receiver that skips known ids has all changes.
    expect(new Set(ids).size).toBe(2);
  });

  test('contain what passes the filter, and the position moves past the rest', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B', 'C', 'D']);
    const client = await session(store);
    const { place, held } = await taken(client);
    await answerAsked(
      sql,
      found('A', { 9: 100 }, { brand: ' Nike' }),
      found('B', { 9: 100 }, { brand: 'Adidas' }),
    );
    await sql`insert into catalog_internal.watched (sku, weight) values ('C', 1), ('D', null)`;
    await answerAsked(sql, found('C', { 9: 100 }), found('D', { 9: 100 }));
    const skusOf = async (...filters: string[]) => {
      const problems: string[] = [];
      const page = await readChanges(client, from(place.position), 1000, parseFilters(filters, problems));
      expect(problems).toEqual([]);
      expect(page.readTo).toBe(await positionNow(sql));
      return [...new Set(page.changes.map(({ kind, sku }) => `${kind} ${sku}`))]
        .filter((text) => text.startsWith('pr'))
        .toSorted();
    };
    expect(await skusOf('brand=NIKE')).toEqual(['price A', 'product A']);
    expect(await skusOf('brand=nike', 'brand=adidas', 'kind=price')).toEqual(['price A', 'price B']);
    expect(await skusOf('watchlist', 'kind=price')).toEqual(['price C']);
    expect(await skusOf('sku=D', 'kind=price')).toEqual(['price D']);
    expect(await skusOf('sku=D', 'brand=nike')).toEqual([]);
    // A follower of a brand is told that a SKU has left it.
    const before = await positionNow(sql);
    await answerAsked(sql, found('A', { 9: 100 }, { brand: 'Puma' }));
    const left = await readChanges(client, from(before), 1000, parseFilters(['brand=nike'], []));
    expect(left.changes.map(({ field, newValue }) => [field, newValue])).toContainEqual(['brand', 'Puma']);
    const { positions, end } = await run(client, held, place, () => OK, {
      filter: parseFilters(['sku=nobody'], []),
    });
    expect([positions, end]).toEqual([[], 'caught-up']);
    expect(BigInt((await only(store)).position)).toBe(await positionNow(sql));
  });

  test.each([
    ['brand=nike', 'kind=price'],
    ['watchlist', 'kind=price'],
    ['brand=nike', 'watchlist', 'kind=price'],
  ])('contain the prices of a SKU that was deleted from the catalog, with %s', async (...filters) => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B']);
    await sql`insert into catalog_internal.watched (sku, weight) values ('A', 1)`;
    await answerAsked(
      sql,
      found('A', { 9: 100, 10: 110 }, { brand: 'Nike' }),
      found('B', { 9: 100, 10: 110 }, { brand: 'Puma' }),
    );
    const client = await session(store);
    const readAfter = async (position: bigint) => {
      const { changes } = await readChanges(client, from(position), 1000, parseFilters(filters, []));
      return changes.map(({ sku, size, newPrice }) => [sku, size, newPrice]);
    };
    const before = await positionNow(sql);
    // A price that vanishes while its SKU stays belongs to the brand of the SKU.
    await answerAsked(sql, found('B', { 9: 100 }, { brand: 'Puma' }));
    expect(await readAfter(before)).toEqual([]);
    const deleted = await positionNow(sql);
    await sql`delete from catalog_internal.watched`;
    await sql`delete from catalog.skus where sku = 'A'`;
    const gone = [
      ['A', '10', null],
      ['A', '9', null],
    ];
    expect(await readAfter(deleted)).toEqual(gone);
    // The SKU belongs to no brand until it is answered again.
    await knownSkus(sql, ['A']);
    expect(await readAfter(deleted)).toEqual(gone);
  });

  test('come by themselves when changes are committed, and end when told to', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    const stop = new AbortController();
    const seen: Batch[] = [];
    const running = run(client, held, place, (batch) => (seen.push(batch), OK), {
      once: false,
      stopped: stop.signal,
      clock: systemClock,
    });
    for (const count of [1, 2, 3]) {
      await movePrices(store.sql, count);
      await eventually(() => seen.length === count);
    }
    stop.abort();
    expect((await running).end).toBe('stopped');
  });

  test('start with a full copy in pieces that can be repeated, and continue with the changes', async () => {
    const { sql } = store;
    const skus = Array.from({ length: 130 }, (_, n) => `S${String(n).padStart(3, '0')}`);
    await knownSkus(sql, skus);
    const client = await session(store);
    const { place, held } = await taken(client, { from: 'start' });
    expect(place.afterSku).toBe('');
    let left = 30;
    const killed = new Error('killed');
    const seen: { sku: string; copy?: boolean; position: number }[] = [];
    const note = (batch: Batch) =>
      void seen.push(...batch.lines.map((line) => JSON.parse(line) as (typeof seen)[number]));
    await expect(
      run(client, held, place, (batch) => {
        left -= 1;
        if (left === 0) throw killed;
        note(batch);
        return OK;
      }),
    ).rejects.toBe(killed);
    await client.end();
    await movePrices(sql, 2, 'S000');
    const next = await session(store);
    const again = await taken(next, { from: 'now' });
    const { events, end } = await run(next, again.held, again.place, (batch) => (note(batch), OK));
    expect(end).toBe('caught-up');
    expect(events.filter(({ event }) => event === 'copied')).toHaveLength(1);
    expect([...new Set(seen.filter(({ copy }) => copy).map(({ sku }) => sku))]).toEqual(skus);
    // The whole copy has the position from which changes follow, so that a receiver that skips known positions skips
    // none of these.
    expect([...new Set(seen.filter(({ copy }) => copy).map(({ position }) => position))]).toEqual([
      Number(place.position),
    ]);
    expect(seen.filter(({ copy }) => copy !== true).map(({ position }) => position)).toEqual(
      await positionsAfter(sql, place.position),
    );
    expect(await only(store)).toMatchObject({ afterSku: null, behind: 0 });
  });
});

describe('a receiver that refuses', () => {
  test('gets its batch as a dead letter after so many refusals, as it was sent, and what follows is delivered', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    await movePrices(store.sql, 10);
    const [bad = 0] = await positionsAfter(store.sql, place.position);
    const { positions, events, end } = await run(
      client,
      held,
      place,
      (batch, attempt) =>
        Number(batch.first) === bad ? (attempt === 2 ? answer('failed', 503) : answer('refused', 422)) : OK,
      { attempts: 3 },
    );
    expect(end).toBe('caught-up');
    expect(positions).toEqual((await positionsAfter(store.sql, place.position)).slice(4));
    expect(events.filter(({ event }) => event === 'buried')).toMatchObject([{ attempts: 4, changes: 4 }]);
    const [letter, ...more] = await listDeadLetters(store.sql, 'shop');
    expect(more).toEqual([]);
    expect(letter).toMatchObject({
      positionFrom: String(bad),
      changes: 4,
      attempts: 4,
      lastStatus: 422,
      lastSaid: 'so it is',
    });
    const kept = await readLetter(store.sql, letter!.id);
    expect(kept?.messageId).toBe(letter!.messageId);
    expect((JSON.parse(kept!.body) as { data: { first: number } }).data.first).toBe(bad);
    expect(await only(store)).toMatchObject({ deadLetters: 1, failures: 0, behind: 0 });
    expect(await discardLetters(store.sql, 'shop')).toBe(1);
  });

  test('is retried ever more rarely, and never earlier than it asks; the next batch starts over', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    await movePrices(store.sql, 5);
    const waits: number[] = [];
    const clock = { ...systemClock, sleep: async (ms: number) => void waits.push(ms) };
    const answers = (_: Batch, attempt: number): Result => {
      if (attempt === 3) return { ...answer('failed', 503), retryAfterMs: 90_000 };
      return attempt === 5 || attempt === 7 ? OK : answer('failed', null);
    };
    const { events } = await run(client, held, place, answers, { clock });
    expect(waits).toEqual([500, 1000, 90_000, 4000, 500]);
    expect(events.flatMap((event) => (event.event === 'failed' ? [event.retryInMs] : []))).toEqual(waits);
  });

  test('blocks everything once the maximum of dead letters is reached', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    await movePrices(store.sql, 4 * MAX_DEAD_LETTERS + 1);
    const { end } = await run(client, held, place, () => answer('refused', 422), { attempts: 1 });
    expect(end).toBe('undelivered');
    expect(await only(store)).toMatchObject({ deadLetters: MAX_DEAD_LETTERS, behind: 1, lastStatus: 422 });
  });

  test('for good (410) ends the follower, and the position stays', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    await movePrices(store.sql, 1);
    expect((await run(client, held, place, () => answer('unwanted', 410))).end).toBe('unwanted');
    expect(await only(store)).toMatchObject({ position: String(place.position), behind: 1, lastStatus: 410 });
  });
});
