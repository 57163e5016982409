import { expect } from 'vitest';
import type { Queryable, Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import type { Claim } from '../../src/store/ledger/due.ts';
import { readScope, storeScopeMode, withinScope } from '../../src/store/sellers/scope.ts';
import { allDue, followWatchlist, LEASE_MS } from './support.ts';

export type Rule = readonly [kind: string, value: string, include?: boolean];

/** Prices only what the rules of catalog.scope include from now on. */
export async function onlyScope(sql: Sql, ...rules: readonly Rule[]): Promise<void> {
  await addRules(sql, ...rules);
  await storeScopeMode(sql, true);
  await sortAll(sql);
}

export async function addRules(sql: Queryable, ...rules: readonly Rule[]): Promise<void> {
  for (const [kind, value, include = true] of rules)
    await sql`insert into catalog.scope (kind, value, include) values (${kind}, ${value}, ${include})`;
}

/** Does what daemons do before they plan a call, until nothing is left of it. */
export async function sortAll(sql: Sql, everything = false): Promise<void> {
  expect(await readScope(sql, { everything, pieces: 1000 })).toBe(true);
}

/** Returns the place of each SKU: `in` with its reason, `out`, or `asked` once for its metadata. */
export async function standings(sql: Sql): Promise<Record<string, string>> {
  const rows = await sql<{ sku: string; standing: string }[]>`
    select sku, case when outside_due_at is null then 'in ' || reason when reason = 'scope' then 'asked' else 'out' end as standing
    from catalog_internal.due order by sku`;
  return Object.fromEntries(rows.map(({ sku, standing }) => [sku, standing]));
}

/** Claims what a call would request now, as much of each class as there is. */
export async function claimInScope(sql: Sql, early = 0): Promise<Claim | null> {
  await followWatchlist(sql);
  const quotas = allDue(100).map((quota) => ({ ...quota, earlySeconds: early }));
  const claim = await claimDue(sql, { quotas }, LEASE_MS);
  return claim === null ? null : await withinScope(sql, claim);
}

/** Returns the SKUs that a call would request now. */
export async function askedFor(sql: Sql, early = 0): Promise<string[]> {
  const claim = await claimInScope(sql, early);
  const skus = claim?.skus.map(({ sku }) => sku).toSorted() ?? [];
  await sql`update catalog_internal.due set claim = null, held_until = null where sku = any(${skus})`;
  return skus;
}
