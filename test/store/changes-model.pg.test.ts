import {
  array,
  assert,
  asyncProperty,
  constantFrom,
  dictionary,
  integer,
  oneof,
  option,
  record,
  subarray,
  type Arbitrary,
} from 'fast-check';
import { expect, test } from 'vitest';
import { memberChanges, membersAlone } from '../../src/store/answer/members.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { forgetUnknown } from '../../src/store/sellers/watchlist.ts';
import { expectCopied } from '../support/copy.ts';
import { runs } from '../support/soak.ts';
import { changesAfter, Copier, positionNow, Reader } from './feed-readers.ts';
import { baseline, line } from './manifest.ts';
import { answerAsked, empty, followWatchlist, found, removeByDelta, useStore } from './support.ts';

/*
 * A reader of nothing but the feed has the mirror: one that reads from the beginning, and one that starts from a
 * copy made in pieces meanwhile.
 */

const store = useStore();
const SKUS = ['A', 'B', 'C', 'D', 'E', 'É ', 'a\\"b'];
const some = subarray(SKUS);
const one = subarray(SKUS, { minLength: 1, maxLength: 3 });

const anyText = option(constantFrom('x', 'y', ''), { freq: 3 });
/** Members that come, go, become objects, or have the name of a member with a column. */
const anyMember: Arbitrary<unknown> = oneof(
  { depthSize: 'small' },
  constantFrom<unknown>(
    'x',
    1,
    2,
    true,
    null,
    [],
    [1],
    {},
    { deep: {} },
    { deep: { c: 1 } },
    { deep: { c: 1, d: 2 }, e: 3 },
  ),
);
const anyProduct = dictionary(constantFrom('a', 'b', '__proto__', 'brand', 'name', 'size_type'), anyMember, {
  maxKeys: 3,
});
const anyRecord = record({
  prices: dictionary(constantFrom('8', '9', '10 é'), option(integer({ min: 100, max: 103 }), { freq: 5 })),
  name: anyText,
  sizeType: anyText,
  product: anyProduct,
});

const anyStep = oneof(
  {
    weight: 4,
    arbitrary: record({
      kind: constantFrom('answer' as const),
      skus: one,
      unknown: some,
      record: option(anyRecord, { freq: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: record({ kind: constantFrom('delta' as const), changed: some, nowLive: some, removed: some }),
  },
  {
    weight: 2,
    arbitrary: record({
      kind: constantFrom('manifest' as const),
      live: some,
      snapshot: some,
      rejected: some,
    }),
  },
  { weight: 1, arbitrary: record({ kind: constantFrom('watch' as const), skus: one }) },
  { weight: 1, arbitrary: record({ kind: constantFrom('refresh' as const), skus: one }) },
  { weight: 1, arbitrary: record({ kind: constantFrom('delete' as const), skus: one }) },
  { weight: 1, arbitrary: record({ kind: constantFrom('forget' as const) }) },
  { weight: 2, arbitrary: record({ kind: constantFrom('restart' as const) }) },
  {
    weight: 3,
    arbitrary: record({ kind: constantFrom('copy' as const), skus: integer({ min: 1, max: 3 }) }),
  },
);
/** Returns what a column holds of a member (partner/bulk-answer.ts). */
const asText = (member: unknown): string | null =>
  typeof member === 'number' || typeof member === 'boolean' || (typeof member === 'string' && member !== '')
    ? String(member)
    : null;

type Step = typeof anyStep extends Arbitrary<infer T> ? T : never;

async function take(step: Step, name: string): Promise<void> {
  const { sql, url } = store;
  if (step.kind === 'answer') {
    const { skus, record: said } = step;
    const known = await sql<{ sku: string }[]>`select sku from catalog.skus where sku = any(${skus})`;
    if (known.length === 0) return;
    // They may have been claimed with others, and not answered.
    await sql`update catalog_internal.due set claim = null, held_until = null`;
    const product = (sku: string) => {
      const members: Record<string, unknown> = {
        ...said?.product,
        ...(said?.name != null && { name: said.name }),
        of: sku,
      };
      const [name, brand, size_type] = ['name', 'brand', 'size_type'].map((column) =>
        asText(members[column]),
      );
      const product = JSON.stringify(members);
      return {
        name: name ?? null,
        brand: brand ?? null,
        size_type: size_type ?? null,
        size_map_size_type: said?.sizeType ?? null,
        product,
      };
    };
    await answerAsked(
      sql,
      ...known.map(({ sku }) =>
        said === null || step.unknown.includes(sku)
          ? { sku, kind: 'not_found' as const }
          : found(sku, said.prices, product(sku)),
      ),
    );
  } else if (step.kind === 'delta') {
    await sql`update catalog_internal.sync set snapshot_id = 'token'`;
    const { changed, nowLive, removed } = step;
    await applyDelta(sql, { since: 'token', toSnapshot: 'token', changed, nowLive, removed });
  } else if (step.kind === 'manifest') {
    const lines = [
      ...step.snapshot.map((sku) => line(sku)),
      ...step.live
        .filter((sku) => !step.snapshot.includes(sku))
        .map((sku) => line(sku, { priceSource: 'live' })),
    ];
    await baseline(url, lines, { rejected: step.rejected, token: { snapshotId: name } });
  } else if (step.kind === 'watch') {
    await sql`insert into catalog.watchlist select unnest(${step.skus}::text[]) on conflict do nothing`;
    await followWatchlist(sql);
  } else if (step.kind === 'refresh') await refreshSkus(sql, step.skus);
  else if (step.kind === 'delete') await sql`delete from catalog.skus where sku = any(${step.skus})`;
  else if (step.kind === 'forget') {
    await sql`delete from catalog.watchlist`;
    await followWatchlist(sql);
    await sql`update catalog.skus set asked_at = asked_at - interval '2 hours'`;
    await forgetUnknown(sql, 100);
  } else if (step.kind === 'restart') await sql`update catalog_internal.lineage set started = started || '.'`;
}

async function holds(steps: readonly Step[], most: number): Promise<void> {
  const { sql } = store;
  await empty(sql);
  const beginning = new Reader(sql, await positionNow(sql));
  const copier = new Copier(sql);
  for (const [at, step] of steps.entries()) {
    if (step.kind === 'copy') await copier.copyOn(step.skus);
    else await take(step, `m${at}`);
    await beginning.readAll(most);
    await expectCopied(sql, beginning.copy);
  }
  const copied = await copier.finish();
  await copied.readAll(most);
  await expectCopied(sql, copied.copy);
  const faults = [beginning, copied].flatMap((reader) => [...reader.faults, ...reader.copy.faults]);
  // Not by the newest position: after a restart there may be nothing behind it.
  const left = [beginning, copied].map(async ({ position }) => await changesAfter(sql, position, 1));
  expect({ faults, left: await Promise.all(left) }).toEqual({ faults: [], left: [[], []] });
}

test('a reader of only the feed has the mirror, from the beginning or from a copy in pieces', async () => {
  await assert(
    asyncProperty(array(anyStep, { minLength: 1, maxLength: 25 }), integer({ min: 1, max: 7 }), holds),
    { numRuns: runs(30, 400) },
  );
}, 600_000);

const answer = (
  name: 'x' | 'y' | null,
  product: Record<string, unknown> = {},
  prices: Record<string, number> = {},
): Step => ({
  kind: 'answer',
  skus: ['D'],
  unknown: [],
  record: { prices, name, sizeType: null, product },
});

test('a column keeps its value if its member is no longer text, and a copy has both', async () => {
  await holds(
    [
      { kind: 'delta', changed: [], nowLive: ['D'], removed: [] },
      answer('x'),
      answer(null, { name: {} }),
      answer('y'),
      answer(null, { name: {}, brand: { of: 'z' } }),
    ],
    1,
  );
});

test('a member that is a number stays one in a copy, although its column contains text', async () => {
  const listed: Step = { kind: 'delta', changed: [], nowLive: ['D'], removed: [] };
  await holds(
    [
      listed,
      answer('x', { size_type: 990, brand: true }),
      answer('x', { size_type: 991, brand: 'true' }),
      answer('y', { size_type: '991', brand: 2 }),
      answer('y', { size_type: 992, brand: 3 }),
    ],
    1,
  );
});

test('a SKU deleted before its piece of a copy is read is in no piece, and its removal is reported', async () => {
  const watch: Step = { kind: 'watch', skus: ['C', 'D'] };
  const copy: Step = { kind: 'copy', skus: 1 };
  await holds([watch, answer(null, {}, { 8: 100 }), copy, { kind: 'delete', skus: ['D'] }], 1);
});

test('catalog.product_after turns the object before a change into the one after it', async () => {
  const { sql } = store;
  await assert(
    asyncProperty(anyProduct, anyProduct, async (before, now) => {
      const after = { ...before, ...now };
      const changes = memberChanges(before, after);
      const [row] = await sql`
        select catalog.product_after(${JSON.stringify(before)}::text::jsonb, 'product', ${membersAlone(changes, 'from')},
          ${membersAlone(changes, 'to')}) as made, ${JSON.stringify(after)}::text::jsonb as after`;
      expect(row?.['made']).toEqual(row?.['after']);
    }),
    { numRuns: runs(300, 2000) },
  );
  const [row] = await sql`
    select catalog.product_after('{"brand":"A","x":1}', 'brand', 'A', 'B') as column, catalog.product_after('{"x":1}', 'size_map_size_type', 'EU', 'US') as "sizeType",
      catalog.product_after(null, 'brand', null, 'B') as early, catalog.product_after(null, 'product', null, '{"x":{"y":1}}') as first`;
  expect(row).toEqual({
    column: { brand: 'B', x: 1 },
    sizeType: { x: 1 },
    early: null,
    first: { x: { y: 1 } },
  });
});

test('after catalog.skus is truncated every position is refused, and a new copy is empty', async () => {
  const { sql } = store;
  await baseline(store.url, [line('A'), line('B')]);
  const position = await positionNow(sql);
  await sql`truncate catalog.skus`;
  await expect(changesAfter(sql, position, 10)).rejects.toMatchObject({ code: 'CM001' });
  const after = await positionNow(sql);
  await baseline(store.url, [line('C')], { token: { snapshotId: 'm2' } });
  expect((await changesAfter(sql, after, 10)).map(({ sku, field }) => `${sku} ${field}`)).toEqual([
    'C state',
    'C price_source',
    'C in_manifest',
  ]);
});

test('reading can continue in the middle of a batch, from one of many positions assigned at once', async () => {
  const { sql } = store;
  const before = await positionNow(sql);
  await baseline(
    store.url,
    Array.from({ length: 2500 }, (_, n) => line(`S${n}`)),
  );
  const all = await changesAfter(sql, before, 10_000);
  expect(all).toHaveLength(7500);
  for (const at of [0, 1, 2, 2999, 3000, 7498]) {
    const next = await changesAfter(sql, all[at]?.position ?? '', 2);
    expect(next).toEqual(all.slice(at + 1, at + 3));
  }
  const [{ batches }] = await sql<[{ batches: number }]>`
    select count(*)::int as batches from catalog_internal.change_batches`;
  expect(batches).toBe(3);
});

test('a returning SKU gets each price once, and each SKU of an answer its former and new state', async () => {
  const { sql } = store;
  await baseline(
    store.url,
    ['A', 'B', 'C'].map((sku) => line(sku)),
  );
  await answerAsked(sql, found('A', { 9: 90 }), { sku: 'B', kind: 'not_found' });
  await removeByDelta(sql, 'A');
  // C was claimed with them.
  await sql`update catalog_internal.due set claim = null, held_until = null`;
  const position = await positionNow(sql);
  await answerAsked(sql, found('A', { 9: 95 }), found('B', { 9: 80 }), { sku: 'C', kind: 'not_found' });
  const told = (await changesAfter(sql, position, 100)).map(
    ({ kind, sku, size, field, old_value, old_price, new_value, new_price }) =>
      `${kind} ${sku} ${size ?? field}: ${old_value ?? old_price} → ${new_value ?? new_price}`,
  );
  expect(told.filter((change) => !change.startsWith('product'))).toEqual([
    'sku A state: removed → priced',
    'sku B state: not_found → priced',
    'sku C state: pending → not_found',
    'price B 9: null → 80',
    'price A 9: null → 95',
  ]);
});
