import { beforeEach, describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import {
  type Member,
  memberChanges,
  membersAlone,
  MemberWatch,
  type MutedChange,
  storeMuted,
} from '../../src/store/answer/members.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { pruneMemberHistory } from '../../src/store/history/retention.ts';
import { eventually } from '../support/eventually.ts';
import { claimAll, found, knownSkus, mark, REFRESH, useStore } from './support.ts';

const store = useStore();
const SKUS = Array.from({ length: 30 }, (_, i) => `S${String(i).padStart(2, '0')}`);
let watch: MemberWatch;

beforeEach(async () => {
  watch = new MemberWatch();
  await knownSkus(store.sql, SKUS);
});

/** Refreshes all SKUs; `product` and `entry` return the partner's objects for each. */
async function refresh(
  product: (sku: string) => Record<string, unknown>,
  entry: (sku: string) => Record<string, unknown> = () => ({}),
  by = watch,
): Promise<MutedChange> {
  await mark(store.sql, SKUS, 'changed');
  const claim = await claimAll(store.sql);
  const results = claim.skus.map(({ sku }): SkuResult => {
    const { name } = product(sku);
    const sizes = ['40', '41'].map((size) => ({
      size,
      price: 1000,
      entry: JSON.stringify({ price: 1000, ...entry(sku) }),
    }));
    return found(sku, sizes, {
      name: (name as string | undefined) ?? null,
      product: JSON.stringify(product(sku)),
    });
  });
  return (
    await applyAnswer(store.sql, claim, results, REFRESH, { observers: { ...NO_OBSERVERS, members: by } })
  ).members;
}

const history = async () => {
  const rows = await store.sql<{ sku: string; move: string }[]>`
    select sku, field || ': ' || coalesce(old_value, '') || ' → ' || coalesce(new_value, '') as move
    from catalog.product_history order by id`;
  return rows;
};
const positions = async () => (await store.sql`select from catalog.changes(0, 10000)`).length;
const VIEWS = { part: 'product', path: '["stats","views"]' };
const SEEN = { part: 'entry', path: '["seen"]' };

describe('a member of the product that moves with each refresh', () => {
  const product =
    (n: number, more: object = {}) =>
    (sku: string) => ({ name: `N${sku}`, stats: { views: n, kind: 'a' }, ...more });

  test('is muted: stored, but without history or changes; other moves are recorded as ever', async () => {
    const turned: MutedChange[] = [];
    for (let n = 1; n <= 30; n += 1) turned.push(await refresh(product(n)));
    // The first moves of each SKU, until this was noticed; it would be 580 rows otherwise.
    const before = await history();
    expect(before.length).toBeLessThanOrEqual(3 * SKUS.length);
    expect(before[0]).toEqual({ sku: 'S00', move: 'product: {"stats":{"views":1}} → {"stats":{"views":2}}' });
    expect(turned.flatMap(({ muted }) => muted)).toEqual([VIEWS]);
    expect(turned.flatMap(({ unmuted }) => unmuted)).toEqual([]);
    const stored =
      await store.sql`select distinct product #>> '{stats,views}' as views from catalog.products`;
    expect([...stored]).toEqual([{ views: '30' }]);
    const [{ changed }] = await store.sql<
      [{ changed: Date }]
    >`select max(changed_at) as changed from catalog.products`;

    const at = await positions();
    await refresh((sku) => ({
      ...product(31)(sku),
      ...(sku === 'S05' && { colour: 'red', name: 'New' }),
      stats: { views: 31, kind: sku === 'S06' ? 'b' : 'a' },
    }));
    expect((await history()).slice(before.length)).toEqual([
      { sku: 'S05', move: 'name: NS05 → New' },
      { sku: 'S05', move: 'product: {} → {"colour":"red"}' },
      { sku: 'S06', move: 'product: {"stats":{"kind":"a"}} → {"stats":{"kind":"b"}}' },
    ]);
    expect(await positions()).toBe(at + 3);
    const moved =
      await store.sql`select sku from catalog.products where changed_at > ${changed} order by sku`;
    expect(moved.map(({ sku }) => sku as string)).toEqual(['S05', 'S06']);
  });

  test('is muted for every process, even for one that has noticed nothing itself', async () => {
    for (let n = 1; n <= 5; n += 1) await refresh(product(n));
    const before = (await history()).length;
    await refresh(product(6), undefined, new MemberWatch());
    expect(await history()).toHaveLength(before);
  });

  test('is unmuted by itself once it rests', async () => {
    for (let n = 1; n <= 5; n += 1) await refresh(product(n));
    const unmuted: unknown[] = [];
    for (let n = 0; n < 12; n += 1) unmuted.push(...(await refresh(product(5))).unmuted);
    expect(unmuted).toEqual([VIEWS]);
    const before = (await history()).length;
    await refresh((sku) => product(sku === 'S03' ? 6 : 5)(sku));
    expect((await history()).slice(before)).toEqual([
      { sku: 'S03', move: 'product: {"stats":{"views":5}} → {"stats":{"views":6}}' },
    ]);
  });

  test('is unmuted if nobody has found it moving for two days, as after a restart at rest', async () => {
    const { sql } = store;
    let now = 0;
    watch = new MemberWatch(() => now);
    for (let n = 1; n <= 5; n += 1) await refresh(product(n));
    const before = (await history()).length;
    const pass = async (hours: number) => {
      now += hours * 3_600_000;
      await sql`update catalog_internal.muted_members set since = since - make_interval(hours => ${hours})`;
    };
    await pass(47);
    await refresh(product(6), undefined, new MemberWatch());
    expect(await history()).toHaveLength(before);
    // The process that follows its SKUs has found it moving, and stores that.
    await refresh(product(7));
    await pass(47);
    await refresh(product(8), undefined, new MemberWatch());
    expect(await history()).toHaveLength(before);
    await pass(2);
    await refresh((sku) => product(sku === 'S03' ? 9 : 8)(sku), undefined, new MemberWatch());
    expect((await history()).slice(before)).toEqual([
      { sku: 'S03', move: 'product: {"stats":{"views":8}} → {"stats":{"views":9}}' },
    ]);
  });

  test('is not one that moves several times in a row for one SKU', async () => {
    const turned: MutedChange[] = [];
    for (let n = 1; n <= 6; n += 1) turned.push(await refresh((sku) => ({ colour: sku === 'S00' ? n : 0 })));
    expect(turned.flatMap(({ muted }) => muted)).toEqual([]);
    expect(await history()).toHaveLength(5);
  });

  test('is not one that changes once or twice for every SKU', async () => {
    const turned: MutedChange[] = [];
    for (const pictures of [1, 1, 2, 2, 2]) turned.push(await refresh(() => ({ pictures })));
    expect(turned.flatMap(({ muted }) => muted)).toEqual([]);
    expect(await history()).toHaveLength(SKUS.length);
  });
});

describe("a member of prices' entries that moves with each refresh", () => {
  const rewritten = async () => {
    const rows = await store.sql<
      { id: string }[]
    >`select ctid::text as id from catalog.prices order by sku, size`;
    return rows.map(({ id }) => id);
  };
  /** Returns a watch that follows no further SKU. */
  const full = () => {
    const other = new MemberWatch();
    other.note(
      Array.from({ length: 2000 }, (_, i) => ({ sku: `other ${i}`, keys: new Set(['product ["x"]']) })),
      new Set(),
    );
    return other;
  };

  test('does not have its rows rewritten each time, and is stored with anything else that moves', async () => {
    const turned: MutedChange[] = [];
    for (let n = 1; n <= 4; n += 1)
      turned.push(
        await refresh(
          () => ({}),
          () => ({ seen: n, stock: 1 }),
        ),
      );
    expect(turned.flatMap(({ muted }) => muted)).toEqual([SEEN]);
    const before = await rewritten();
    const by = full();
    await refresh(
      () => ({}),
      () => ({ seen: 5, stock: 1 }),
      by,
    );
    expect(await rewritten()).toEqual(before);
    await refresh(
      () => ({}),
      (sku) => ({ seen: 6, stock: sku === 'S00' ? 2 : 1 }),
      by,
    );
    const after = await rewritten();
    expect(after.filter((id, at) => id !== before[at])).toHaveLength(2);
    const [row] = await store.sql`select entry from catalog.prices where sku = 'S00' and size = '40'`;
    expect(row).toEqual({ entry: { price: 1000, seen: 6, stock: 2 } });
  });

  test('is unmuted once it rests, even if nothing else had moved', async () => {
    for (let n = 1; n <= 8; n += 1)
      await refresh(
        () => ({}),
        () => ({ seen: n }),
      );
    const unmuted: unknown[] = [];
    for (let n = 0; n < 12; n += 1)
      unmuted.push(
        ...(
          await refresh(
            () => ({}),
            () => ({ seen: 8 }),
          )
        ).unmuted,
      );
    expect(unmuted).toEqual([SEEN]);
  });
});

test('history of members is dropped with the price history by HISTORY_RETENTION; that of columns stays', async () => {
  for (const [n, name] of ['a', 'b', 'c'].entries()) await refresh(() => ({ name, colour: n }));
  const [{ middle }] = await store.sql<[{ middle: string }]>`
    select percentile_disc(0.5) within group (order by id)::text as middle from catalog.product_history`;
  expect((await pruneMemberHistory(store.sql, { unsteady: [], limit: 1000 })).dropped).toBe(0);
  await store.sql`select setval('catalog_internal.dropped_positions', ${middle}::bigint)`;
  expect((await pruneMemberHistory(store.sql, { unsteady: [], limit: 5 })).dropped).toBe(5);
  expect((await pruneMemberHistory(store.sql, { unsteady: [], limit: 1000 })).dropped).toBeGreaterThan(5);
  const rows = await store.sql`
    select field, id > ${middle}::bigint as later, count(*)::int from catalog.product_history group by 1, 2 order by 1, 2`;
  expect([...rows]).toEqual([
    { field: 'name', later: false, count: SKUS.length },
    { field: 'name', later: true, count: SKUS.length },
    { field: 'product', later: true, count: SKUS.length },
  ]);
  await store.sql`select setval('catalog_internal.dropped_positions', 1, false)`;
});

test('differing members are found down to four names; lists and changed kinds count as one', () => {
  const changes = memberChanges(
    { a: { b: 1, c: [1, { d: 2 }] }, e: 1 },
    { a: { b: 2, c: [1, { d: 2 }] }, e: { f: 1 }, g: null },
  );
  expect(changes.map(({ names }) => names.join('.'))).toEqual(['a.b', 'e', 'g']);
  expect([membersAlone(changes, 'from'), membersAlone(changes, 'to')]).toEqual([
    '{"a":{"b":1},"e":1}',
    '{"a":{"b":2},"e":{"f":1},"g":null}',
  ]);
  const deep = (n: number) => ({ a: { b: { c: { d: { e: n } } } } });
  expect(memberChanges(deep(1), deep(2)).map(({ names }) => names.length)).toEqual([4]);
  const own = memberChanges(JSON.parse('{"__proto__":{"x":1}}'), JSON.parse('{"__proto__":{"x":2}}'));
  expect(membersAlone(own, 'to')).toBe('{"__proto__":{"x":2}}');
});

test('members that two daemons store at once are locked in one order', async () => {
  const { sql } = store;
  const [first, second] = [VIEWS, SEEN].toSorted((a, b) => (a.part < b.part ? -1 : 1)) as [Member, Member];
  await storeMuted(sql, { muted: [first, second], unmuted: [], renewed: [] });
  const lockedWhileItWaits = await sql.begin(async (tx) => {
    await tx`select from catalog_internal.muted_members where path = ${second.path} for update`;
    const storing = storeMuted(sql, { muted: [], unmuted: [], renewed: [second, first] });
    await eventually(async () => {
      const waiting = await sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      expect(waiting).toHaveLength(1);
    });
    const free = await sql`
      select from catalog_internal.muted_members where path = ${first.path} for update skip locked`;
    return { storing, isLocked: free.length === 0 };
  });
  await lockedWhileItWaits.storing;
  expect(lockedWhileItWaits.isLocked).toBe(true);
});
