import { expect, test } from 'vitest';
import { withinScope } from '../../src/store/sellers/scope.ts';
import { dueOf } from '../../src/sync/traces.ts';
import { promising } from './promising.ts';
import { addRules, onlyScope, sortAll } from './scoping.ts';
import { claimAll, knownSkus, mark, useStore } from './support.ts';

/* What a seller asks for beside catalog.scope, which takes precedence. */

const store = useStore();
const { priced, promise, claimPromised, passSeconds, one } = promising(store);

test('a promise of a SKU out of scope requests nothing, says why, and holds again once the SKU is in scope', async () => {
  const { sql } = store;
  await priced('A', 'B');
  await promise('1 minute', 'A', 'B');
  await onlyScope(sql, ['sku', 'A']);
  // Even before promises are weighed anew.
  expect(await one('B')).toMatchObject({ feasible: false, because: 'out of scope' });
  await sql`select catalog_internal.weigh_promises()`;
  expect(await one('A')).toMatchObject({ feasible: true, because: null });
  expect(await one('B')).toMatchObject({ feasible: false, because: 'out of scope' });
  const [needs] = await sql`select promises, feasible from catalog_internal.promising`;
  expect(needs).toEqual({ promises: 2, feasible: 1 });
  await passSeconds(59);
  expect(await claimPromised()).toEqual(['A']);

  await addRules(sql, ['sku', 'B']);
  await sortAll(sql);
  await sql`select catalog_internal.weigh_promises()`;
  await promise('1 minute', 'A', 'B');
  await passSeconds(59);
  expect(await one('B')).toMatchObject({ feasible: true });
  expect(await claimPromised()).toEqual(['B']);
});

test('catalog.refresh and catalog.refresh_now leave out SKUs out of scope at once', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B']);
  await mark(sql, ['A', 'B'], 'new');
  await onlyScope(sql, ['sku', 'A']);
  const [{ due }] = await sql<[{ due: number }]>`select catalog.refresh(array['A', 'B']) as due`;
  expect(due).toBe(1);
  // It does not wait, because there is nothing to wait for.
  await sql`call catalog.refresh_now(array['B'], '10 minutes')`;
  const requests = await sql`select distinct sku from catalog_internal.refresh_requests`;
  expect([...requests]).toEqual([{ sku: 'A' }]);
});

test('a claim reduced to its SKUs in scope reports the reason and due time of those that are left', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B', 'C']);
  await mark(sql, ['A', 'B', 'C'], 'new');
  await sql`
    update catalog_internal.due set reason = 'changed', due_at = now() - interval '1 hour' where sku in ('A', 'C')`;
  const claim = await claimAll(sql);
  await onlyScope(sql, ['sku', 'B']);
  const left = await withinScope(sql, claim);
  expect(left?.skus).toMatchObject([{ sku: 'B' }]);
  const due = left && dueOf(left);
  expect(due).toMatchObject({ reason: 'new' });
  expect(due?.forMs).toBeLessThan(60_000);
});
