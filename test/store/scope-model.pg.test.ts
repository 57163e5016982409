import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { storeScopeMode } from '../../src/store/sellers/scope.ts';
import { runs } from '../support/soak.ts';
import { SKUS, step } from './scope-steps.ts';
import { World } from './scope-world.ts';
import { empty, useStore } from './support.ts';

const store = useStore();

test('after any sequence of steps, only SKUs in scope are requested, and none of them is forgotten', async () => {
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

test('a SKU that is only known from its removal by a delta has its metadata requested once', async () => {
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

test('a SKU that is reported as live again is requested when it would have been', async () => {
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

test('a SKU that was removed outside and is listed again has its metadata requested, and stays so', async () => {
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

test('a SKU that was removed outside, watched there, and then reported has its metadata requested', async () => {
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

test('a SKU watched during its call and 0009 has its metadata requested once more, and then waits', async () => {
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

test('a SKU that is reported during its call, then watched, and is 0009 has its metadata requested', async () => {
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

/** A requested SKU is 0009, due for a reason without a report, and is reported at different times. */
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

  test('has its metadata requested if it is reported meanwhile', async () => {
    const world = await before();
    await world.do({ do: request, skus: ['B1'] });
    await world.do({ do: 'answer', kinds: ['not_found'] });
    await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
    await world.do({ do: 'mode', scoped: true });
    await world.check();
  });

  test('has its metadata requested if it was reported before, during its call', async () => {
    const world = await before();
    await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
    await world.do({ do: 'answer', kinds: ['not_found'] });
    await world.do({ do: request, skus: ['B1'] });
    await world.do({ do: 'mode', scoped: true });
    await world.check();
  });

  test('has its metadata requested if it was reported during its call, before that reason', async () => {
    const world = await before();
    await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
    await world.do({ do: request, skus: ['B1'] });
    await world.do({ do: 'answer', kinds: ['not_found'] });
    await world.do({ do: 'mode', scoped: true });
    await world.check();
  });

  test('has its metadata requested if it is reported during its call, after that reason', async () => {
    const world = await before();
    await world.do({ do: request, skus: ['B1'] });
    await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
    await world.do({ do: 'answer', kinds: ['not_found'] });
    await world.do({ do: 'mode', scoped: true });
    await world.check();
  });

  test('has its metadata requested if it was reported before and then in errors', async () => {
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
