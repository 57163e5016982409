import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { storeScopeMode } from '../../src/store/sellers/scope.ts';
import { runs } from '../support/soak.ts';
import { SKUS, step } from './scope-steps.ts';
import { World } from './scope-world.ts';
import { empty, useStore } from './support.ts';

const store = useStore();

test('whatever happens in whatever order, only what is in scope is asked for, and nothing of it is forgotten', async () => {
  await store.sql`
    alter table catalog_internal.due add constraint stands check (
      case when outside_due_at is null then lane > 0 and reason <> 'scope'
        when reason = 'scope' then lane > 0 and due_at < 'infinity' else lane = 0 and due_at = 'infinity' end)`;
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        await empty(store.sql);
        const world = new World(store);
        await storeScopeMode(store.sql, true);
        await world.manifest(SKUS.slice(0, 5), 'h1');
        for (const each of steps) await world.do(each);
        await world.check();
      }),
      { numRuns: runs(12, 100) },
    );
  } finally {
    await store.sql`alter table catalog_internal.due drop constraint stands`;
  }
});

test('a SKU that is not known and that a delta removes is asked for its metadata once', async () => {
  await empty(store.sql);
  const world = new World(store);
  await storeScopeMode(store.sql, true);
  await world.manifest(['A1', 'A2'], 'h1');
  await world.do({ do: 'rule', rule: { kind: 'brand', value: 'Nike' }, include: true });
  await world.do({ do: 'answer', kinds: ['record'] });
  await world.do({ do: 'answer', kinds: ['record'] });
  await world.do({ do: 'delta', changed: ['A1'], live: ['A1'], removed: ['D'] });
  for (let n = 0; n < 4; n += 1) await world.do({ do: 'answer', kinds: ['not_found'] });
  await world.check();
});

test('a SKU that is reported as live again is asked when it would have been', async () => {
  await empty(store.sql);
  const world = new World(store);
  await storeScopeMode(store.sql, true);
  await world.manifest(SKUS.slice(0, 5), 'h1');
  await world.do({ do: 'rule', rule: { kind: 'prefix', value: '' }, include: true });
  await world.do({ do: 'delta', changed: ['A1'], live: ['D'], removed: [] });
  await world.do({ do: 'answer', kinds: ['record'] });
  await world.do({ do: 'answer', kinds: ['record'] });
  await world.do({ do: 'delta', changed: ['A1'], live: ['D'], removed: [] });
  await world.check();
});

test('a SKU that was removed outside and is listed again is asked for its metadata, and stays asked', async () => {
  await empty(store.sql);
  const world = new World(store);
  await storeScopeMode(store.sql, true);
  await world.manifest(['A1', 'D'], 'h1');
  await world.do({ do: 'delta', changed: ['A1'], live: ['A1'], removed: ['D'] });
  await world.do({ do: 'rule', rule: { kind: 'brand', value: 'Nike' }, include: true });
  await world.do({ do: 'manifest', skus: ['D'], hash: 'h1' });
  await world.do({ do: 'answer', kinds: ['record'] });
  await world.check();
});

test('a SKU that was removed outside, watched there, and is then reported is asked for its metadata', async () => {
  await empty(store.sql);
  const world = new World(store);
  await storeScopeMode(store.sql, true);
  await world.manifest(SKUS.slice(0, 5), 'h1');
  await world.do({ do: 'delta', changed: ['A1'], live: ['A1'], removed: ['B1'] });
  await world.do({ do: 'rule', rule: { kind: 'brand', value: 'Nike' }, include: true });
  await world.do({ do: 'watch', skus: ['B1'] });
  await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
  await world.check();
});

test('a SKU that is watched during its call and is 0009 is asked for its metadata once more, and then waits', async () => {
  await empty(store.sql);
  const world = new World(store);
  const reason = async () =>
    (
      await store.sql<
        { reason: string; inside: boolean }[]
      >`select reason, outside_due_at is null as inside from catalog_internal.due where sku = 'B1'`
    ).map((row) => ({ ...row }))[0];
  await storeScopeMode(store.sql, true);
  await world.manifest(SKUS.slice(0, 5), 'h1');
  await world.do({ do: 'rule', rule: { kind: 'brand', value: 'Nike' }, include: true });
  await world.do({ do: 'mode', scoped: false });
  await world.do({ do: 'answer', kinds: [] });
  await world.do({ do: 'watch', skus: ['B1'] });
  await world.do({ do: 'answer', kinds: ['record', 'record', 'record', 'not_found'] });
  await world.do({ do: 'mode', scoped: true });
  await world.check();
  deepStrictEqual(await reason(), { reason: 'scope', inside: false });
  await world.do({ do: 'answer', kinds: [] });
  await world.do({ do: 'answer', kinds: ['not_found'] });
  await world.check();
  deepStrictEqual(await reason(), { reason: 'scope', inside: false });
  await world.do({ do: 'answer', kinds: [] });
  strictEqual(world.claim?.skus.some(({ sku }) => sku === 'B1') ?? false, false);
});

test('a SKU that is reported during its call, then watched, and is 0009 is asked for its metadata', async () => {
  await empty(store.sql);
  const world = new World(store);
  await storeScopeMode(store.sql, true);
  await world.manifest(SKUS.slice(0, 5), 'h1');
  await world.do({ do: 'rule', rule: { kind: 'brand', value: 'Nike' }, include: true });
  await world.do({ do: 'mode', scoped: false });
  await world.do({ do: 'answer', kinds: [] });
  await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
  await world.do({ do: 'watch', skus: ['B1'] });
  await world.do({ do: 'answer', kinds: ['record', 'record', 'record', 'not_found'] });
  await world.do({ do: 'mode', scoped: true });
  await world.check();
});

/** A SKU that was asked for, and 0009: it is due for a reason that comes without a report, and then it is reported. */
describe.each(['watch', 'refresh'] as const)('a SKU that is 0009, and due because of a %s,', (request) => {
  const before = async () => {
    await empty(store.sql);
    const world = new World(store);
    await storeScopeMode(store.sql, true);
    await world.manifest(SKUS.slice(0, 5), 'h1');
    await world.do({ do: 'mode', scoped: false });
    await world.do({ do: 'rule', rule: { kind: 'brand', value: 'Nike' }, include: true });
    await world.do({ do: 'answer', kinds: [] });
    return world;
  };

  test('and is reported while it is, is asked for its metadata', async () => {
    const world = await before();
    await world.do({ do: request, skus: ['B1'] });
    await world.do({ do: 'answer', kinds: ['not_found'] });
    await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
    await world.do({ do: 'mode', scoped: true });
    await world.check();
  });

  test('and was reported before, during its call, is asked for its metadata', async () => {
    const world = await before();
    await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
    await world.do({ do: 'answer', kinds: ['not_found'] });
    await world.do({ do: request, skus: ['B1'] });
    await world.do({ do: 'mode', scoped: true });
    await world.check();
  });

  test('and was reported during its call, is asked for its metadata', async () => {
    const world = await before();
    await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
    await world.do({ do: request, skus: ['B1'] });
    await world.do({ do: 'answer', kinds: ['not_found'] });
    await world.do({ do: 'mode', scoped: true });
    await world.check();
  });

  test('and is reported during its call after that, is asked for its metadata', async () => {
    const world = await before();
    await world.do({ do: request, skus: ['B1'] });
    await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
    await world.do({ do: 'answer', kinds: ['not_found'] });
    await world.do({ do: 'mode', scoped: true });
    await world.check();
  });

  test('and was reported before and then in errors, is asked for its metadata', async () => {
    const world = await before();
    await world.do({ do: 'answer', kinds: ['not_found'] });
    await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
    await world.do({ do: 'answer', kinds: [] });
    await world.do({ do: 'answer', kinds: ['error'] });
    await world.do({ do: request, skus: ['B1'] });
    await world.do({ do: 'mode', scoped: true });
    await world.check();
  });
});
