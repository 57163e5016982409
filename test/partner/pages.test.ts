import { expect, test } from 'vitest';
import { readDelta } from '../../src/partner/delta-answer.ts';

const names = { priceFields: ['price'], skuField: 'sku' };
const json = (text: string): unknown => JSON.parse(text);
const good = { changed: ['A', 'A', { sku: 'B' }], removed: [], now_live: ['B'], to_snapshot: 's2' };

test.each([
  ['nextToken', { ...good, nextToken: 'p2' }],
  ['next_token', { ...good, next_token: 'p2' }],
  ['LastEvaluatedKey', { ...good, LastEvaluatedKey: { sku: { S: 'B' } } }],
  ['continuation-token', { ...good, 'continuation-token': 'p2' }],
  ['@odata.nextLink', { ...good, '@odata.nextLink': 'https://x/delta?skip=2' }],
  ['cursor', { ...good, cursor: 'p2' }],
  ['next', { ...good, next: { href: '/delta?page=2' } }],
  ['next', { ...good, next: json('['.repeat(100_000) + '1' + ']'.repeat(100_000)) }],
  ['next', { ...good, next: '/partner/catalog/delta?since=s1&page=2' }],
  ['next', { ...good, next: { href: '/partner/catalog/delta?since=s2&cursor=p2' } }],
  ['total_pages', { ...good, page: 1, total_pages: 3 }],
  ['pages', { ...good, pages: '2' }],
  ['pagination.next', { ...good, pagination: { next: 2, pages: 2 } }],
  ['meta.cursor', { ...good, meta: { cursor: 'p2' } }],
  ['page.totalPages', { ...good, page: { number: 0, totalPages: 2 } }],
  ['paging.HasMore', { ...good, paging: { HasMore: 'true' } }],
])('a delta answer is unreadable as a whole for %s', (member, body) => {
  expect(readDelta(body, names, 's1')).toEqual({
    ok: false,
    problem: `${member}: the answer is one page of several`,
  });
});

test.each<[string, object]>([
  [
    'a last page, in other words',
    {
      to_snapshot: 's2',
      nextToken: '',
      LastEvaluatedKey: {},
      truncated: 'false',
      next_cursor: '0',
      page: 1,
      total_pages: 1,
      pagination: { next: null, has_next: false, pages: '1', endCursor: 'x' },
      cursor: { present: 'p1', next: null },
      _links: { self: { href: '/delta' }, next: { href: null } },
    },
  ],
  ['where it begins and ends once more', { to_snapshot: 's2', since: 's1', cursor: 's1', next: 's2' }],
  ['where it was asked to begin', { to_snapshot: 's2', cursor: 's1' }],
  [
    'where the next poll begins, as an address',
    {
      to_snapshot: 's2',
      next: '/partner/catalog/delta?since=s2',
      _links: { next: { href: 'https://partner.example/delta?since=s%32' } },
    },
  ],
  [
    'maps that have the name of such a member for a SKU',
    {
      to_snapshot: 's2',
      reasons: Object.fromEntries(
        [...Array.from({ length: 60 }, (_, n) => `X${n}`), 'next'].map((k) => [k, 1]),
      ),
    },
  ],
])('a delta answer may have %s', (_, body) => {
  const value = { changed: [], removed: [], nowLive: [], toSnapshot: 's2', skipped: 0 };
  expect(readDelta(body, names, 's1')).toEqual({ ok: true, value });
});

test('a delta answer may repeat its end as text if the end is a number', () => {
  const read = readDelta({ changed: [], to_snapshot: 17, cursor: '17' }, names, '16');
  expect(read).toMatchObject({ ok: true, value: { toSnapshot: '17' } });
});
