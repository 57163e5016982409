import { describe, expect, test } from 'vitest';
import type { Permit } from '../../src/partner/client.ts';
import { answersSince } from '../../src/partner/delta-answer.ts';
import { clientOf as plainClientOf } from './plain-client.ts';
import { answer, serve } from './server.ts';

const DELTA = { changed: ['A'], removed: [], now_live: [], to_snapshot: 's2' };
const NOTHING_NEW = { changed: [], removed: [], now_live: [], to_snapshot: 's1' };

const DATE = 'Sat, 28 Nov 2026 12:00:00 GMT';

/** Returns a client of a partner that answers everything with this body and `Age`. */
async function clientOf(body: object, age: string | null) {
  const baseUrl = await serve((_request, response) => {
    response.setHeader('date', DATE);
    if (age !== null) response.setHeader('age', age);
    answer(response, 200, body);
  });
  const dates: (Date | null)[] = [];
  const client = plainClientOf(baseUrl, { observe: ({ date }) => dates.push(date) });
  const outcomes: string[] = [];
  const permit: Permit = {
    async settle(outcome) {
      outcomes.push(outcome);
    },
  };
  return { client, permit, outcomes, dates };
}

test.each<[string, string | null, object, object]>([
  ['is new', null, DELTA, { toSnapshot: 's2' }],
  ['was kept as long as it may be', '120', NOTHING_NEW, { toSnapshot: 's1' }],
  ['was kept for longer, and leads on', '121', DELTA, { toSnapshot: 's2', isOld: true }],
  ['was kept for longer by one of two caches', '3, 121', DELTA, { toSnapshot: 's2', isOld: true }],
  ['has an age that is none', 'soon', NOTHING_NEW, { toSnapshot: 's1' }],
  [
    'names what it was asked with',
    null,
    { ...DELTA, since: 's1', from_snapshot: 's1' },
    { toSnapshot: 's2' },
  ],
])('a delta that %s is read', async (_, age, body, read) => {
  const { client, permit } = await clientOf(body, age);
  const { isOld, toSnapshot } = await client.delta(permit, 's1');
  expect({ toSnapshot, ...(isOld === undefined ? {} : { isOld }) }).toEqual(read);
});

test.each<[string, string | null, object]>([
  ['has kept for too long that nothing is new', '121', NOTHING_NEW],
  ['has kept for too long that nothing is new, without a token', '9999', { changed: [] }],
  ['has sent for another token', null, { ...DELTA, from_snapshot: 's0' }],
])('a delta that a cache %s is rejected', async (_, age, body) => {
  const { client, permit, outcomes } = await clientOf(body, age);
  await expect(client.delta(permit, 's1')).rejects.toMatchObject({ kind: 'cached-answer', status: 200 });
  expect(outcomes).toEqual(['cached-answer']);
});

test.each([
  ['600', undefined],
  ['601', true],
])('a manifest that a cache held for %s seconds is marked as old: %s', async (age, isOld) => {
  const { client, permit } = await clientOf({ snapshot_id: 's1', url: 'https://files.example/m.gz' }, age);
  expect((await client.manifest(permit)).isOld).toBe(isOld);
});

test.each([
  [null, '12:00:00'],
  ['0', '12:00:00'],
  ['3, 95', '12:01:35'],
])('an answer with an Age of %s is dated %s at the partner', async (age, time) => {
  const { client, permit, dates } = await clientOf(DELTA, age);
  await client.delta(permit, 's1');
  expect(dates.map((date) => date?.toISOString())).toEqual([`2026-11-28T${time}.000Z`]);
});

const RECORD = { code: '0000', message: 'success', size_map: { '9': 4200 }, product: {} };
const BULK = { results: { A: RECORD }, not_found: [], deferred: [], errors: [], requested: 1, deduped: 1 };

test.each([null, '0', '60', 'soon'])('a bulk answer with an Age of %s is read', async (age) => {
  const { client, permit } = await clientOf(BULK, age);
  expect([...(await client.bulk(permit, ['A'])).results.keys()]).toEqual(['A']);
});

test.each(['61', '0, 7200'])('a bulk answer with an Age of %s is rejected', async (age) => {
  const { client, permit, outcomes } = await clientOf(BULK, age);
  await expect(client.bulk(permit, ['A'])).rejects.toMatchObject({
    kind: 'cached-answer',
    route: 'bulk',
    status: 200,
  });
  expect(outcomes).toEqual(['cached-answer']);
});

describe('the start that a delta answer claims is compared with the snapshot in the request:', () => {
  test.each<[string, boolean, unknown, string?]>([
    ['the one that was asked with', true, { since: 's1' }],
    ['none', true, { changed: [] }],
    ['null', true, { since: null, from_snapshot: '' }],
    ['another', false, { since: 's0' }],
    ['another one under another name', false, { fromSnapshot: 's0' }],
    ['both', false, { since: 's1', since_snapshot: 's0' }],
    ['a number', true, { sinceSnapshot: 41 }, '41'],
    ['another number', false, { from_snapshot: 40 }, '41'],
    ['a number that is not exact', true, { since: 2 ** 60 }, '41'],
    ['an object', true, { from_snapshot: { id: 's0' } }],
    ['the time of its build', true, { since: '2026-11-20T10:00:00Z' }],
    [
      'another time, where tokens are times',
      false,
      { since: '2026-11-20T10:00:00Z' },
      '2026-11-20T16:00:00Z',
    ],
    ...['2026-11-20T10:00:00.000Z', '2026-11-20T17:00:00+07:00', '2026-11-20 10:00'].map(
      (since): [string, boolean, unknown, string] => [
        `the same time, written ${since}`,
        true,
        { since },
        '2026-11-20T10:00:00Z',
      ],
    ),
    ['another text that only looks like a time', false, { since: '2026-11-20T10:00x' }, '2026-11-20T10:00y'],
  ])('%s', (_, is, body, since = 's1') => {
    expect(answersSince(body, since)).toBe(is);
  });
});
