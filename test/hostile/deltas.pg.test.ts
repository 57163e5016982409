import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { brokenAnswers } from './broken-answers.ts';
import { CATALOG, LEDGER, useHostileMirror } from './mirror.ts';
import { sendBytes, sendJson, skuNumber } from './upstream.ts';

/** An answer is read as a whole, up to 64 MiB: its bytes, its text, and the parsed JSON. */
const HEAP_MIB = 384;
const CEILING_MIB = 640;
const MILLION = 1_000_000;

const KNOWN = skuNumber(1);
const REMOVED = skuNumber(2);
const GOOD = {
  changed: [KNOWN, 'SKU-NEW'],
  removed: [REMOVED],
  now_live: [KNOWN],
  to_snapshot: 'delta-1',
};

const LISTS = ['changed', 'removed', 'now_live'] as const;
const NO_LISTS: unknown[] = [
  KNOWN,
  7,
  true,
  { [KNOWN]: 1 },
  [null],
  [7],
  [true],
  [[KNOWN]],
  [{}],
  [{ id: KNOWN }],
  [{ sku: 7 }],
  [{ sku: null }],
  [{ sku: { sku: KNOWN } }],
  [KNOWN, null],
  Array.from({ length: 1000 }, (_, n) => n),
];
const NO_TOKENS: unknown[] = [
  undefined,
  null,
  '',
  1.5,
  true,
  [],
  {},
  ['delta-1'],
  'a\0b',
  '\ud800',
  'x'.repeat(2049),
];

const saying = (body: unknown) => (response: Parameters<typeof sendJson>[0]) => sendJson(response, body);

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'absent').slice(0, 40);
}

const REFUSED = [
  { name: 'now_live is absent', because: 'unreadable', delta: saying({ ...GOOD, now_live: undefined }) },
  { name: 'has a next page', because: 'unreadable', delta: saying({ ...GOOD, nextCursor: 'p2' }) },
  {
    name: 'changed is there twice, with other SKUs',
    because: 'unreadable',
    delta: saying(`{"changed":["${REMOVED}"],${JSON.stringify(GOOD).slice(1)}`),
  },
  {
    name: 'changed has another name',
    because: 'unreadable',
    delta: saying({ ...GOOD, changed: undefined, changes: [KNOWN] }),
  },
  ...brokenAnswers(JSON.stringify(GOOD)).map(({ name, because, reply }) => ({ name, because, delta: reply })),
  ...LISTS.flatMap((member) => NO_LISTS.map((value) => ({ member, value }))),
  ...NO_TOKENS.map((value) => ({ member: 'to_snapshot', value })),
].map((given) =>
  'delta' in given
    ? given
    : {
        name: `${given.member} is ${shown(given.value)}`,
        because: 'unreadable',
        delta: saying({ ...GOOD, [given.member]: given.value }),
      },
);

const mirror = useHostileMirror(HEAP_MIB);

afterEach(() => mirror.restore());

describe('a delta that cannot be read changes nothing', () => {
  test('in at least sixty variants', () => {
    expect(REFUSED.length).toBeGreaterThanOrEqual(60);
  });

  test.each(REFUSED)('$name', async ({ because, delta }) => {
    const before = await mirror.digest();
    const ended = await mirror.run('delta', { delta });
    expect(ended).toMatchObject({ kind: 'failed', because, error: null });
    expect(await mirror.digest()).toEqual(before);
    expect(ended.moved).toMatchObject({
      [`syncs_total delta ${because}`]: 1,
      [`partner_requests_total delta ${because}`]: 1,
    });
    expect(ended.peakMiB).toBeLessThan(CEILING_MIB);
  });

  test.each(['changed', 'removed', 'now_live'])('with a million numbers in %s', async (member) => {
    const before = await mirror.digest();
    const body = JSON.stringify({ ...GOOD, [member]: Array.from({ length: MILLION }, (_, n) => n) });
    const ended = await mirror.run('delta', { delta: (response) => sendBytes(response, body) });
    expect(ended).toMatchObject({ kind: 'failed', because: 'unreadable' });
    expect(await mirror.digest()).toEqual(before);
    expect(ended.peakMiB).toBeLessThan(CEILING_MIB);
  });
});

const NAMES = ['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'prototype'];
const none = { changed: [], removed: [], now_live: [] };

/** A delta (text or value) that is odd but unambiguous, the SKUs that it changes, and the token that it moves to. */
const APPLIED: { name: string; delta: unknown; moves: string[]; to?: string }[] = [
  { name: 'nothing odd', delta: GOOD, moves: [KNOWN, REMOVED, 'SKU-NEW'] },
  { name: 'names of prototypes as SKUs', delta: { ...GOOD, ...none, changed: NAMES }, moves: NAMES },
  { name: 'the same, removed', delta: { ...GOOD, ...none, removed: NAMES }, moves: NAMES },
  {
    name: 'the same, in objects',
    delta: { ...GOOD, ...none, now_live: NAMES.map((sku) => ({ sku })) },
    moves: NAMES,
  },
  {
    name: 'members under __proto__ beside the own ones',
    delta: `{"__proto__":{"changed":["${REMOVED}"]},"changed":["${KNOWN}"],"removed":[],"now_live":[],"to_snapshot":"delta-1"}`,
    moves: [KNOWN],
  },
  {
    name: 'members that are there twice, and say nothing or the same the first time',
    delta: `{"changed":[],"removed":null,"to_snapshot":"delta-1",${JSON.stringify(GOOD).slice(1)}`,
    moves: [KNOWN, REMOVED, 'SKU-NEW'],
  },
  {
    name: 'SKUs that no table holds among good ones',
    delta: { ...GOOD, ...none, changed: ['\0', 'a\0b', '\ud800', 'x\udc00', '', 'x'.repeat(513), KNOWN] },
    moves: [KNOWN],
  },
  {
    name: 'one SKU in all lists',
    delta: { ...GOOD, changed: [KNOWN], removed: [KNOWN], now_live: [KNOWN] },
    moves: [KNOWN],
  },
  {
    name: 'one SKU a million times',
    delta: { ...GOOD, ...none, changed: Array.from({ length: MILLION }, () => KNOWN) },
    moves: [KNOWN],
  },
  {
    name: 'a million SKUs that no table holds',
    delta: { ...GOOD, ...none, changed: Array.from({ length: MILLION }, () => '\0') },
    moves: [],
  },
  {
    name: 'a token beyond 2^53',
    delta: `{"changed":["${KNOWN}"],"removed":[],"now_live":[],"to_snapshot":20261101060000123}`,
    moves: [KNOWN],
    to: '20261101060000123',
  },
];

describe('an odd delta changes the SKUs that it names and nothing else', () => {
  test.each(APPLIED)('$name', async ({ delta, moves, to = 'delta-1' }) => {
    const ended = await mirror.run('delta', { delta: (response) => sendJson(response, delta) });
    expect(ended).toMatchObject({ kind: 'done', error: null, moved: { 'syncs_total delta ok': 1 } });
    expect(await mirror.moved([...CATALOG, LEDGER])).toEqual(moves.toSorted());
    const [state] = await mirror.sql`
      select (select snapshot_id from catalog_internal.sync) as token,
        (select count(*)::int from catalog_internal.due where due_at <= now() and sku = any(${moves})) as owed`;
    expect(state).toEqual({ token: to, owed: moves.length });
    expect(ended.peakMiB).toBeLessThan(CEILING_MIB);
  });
});

test('an incompressible token of the maximum length is stored, sent back, and left again', async () => {
  const long = randomBytes(1536).toString('base64');
  expect(long).toHaveLength(2048);
  const asked: (string | null)[] = [];
  for (const to_snapshot of [long, 'delta-2'])
    await mirror.run('delta', {
      delta: (response) => {
        asked.push(new URL(response.req.url ?? '', 'http://x').searchParams.get('since'));
        return sendJson(response, { ...GOOD, to_snapshot });
      },
    });
  expect(asked.slice(1)).toContain(long);
  const [state] = await mirror.sql`
    select snapshot_id, exists (select from catalog_internal.left_tokens where token = ${long}) as left
    from catalog_internal.sync`;
  expect(state).toEqual({ snapshot_id: 'delta-2', left: true });
});
