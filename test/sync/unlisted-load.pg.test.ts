import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { readCallInputs } from '../../src/store/call/bulk-call.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import type { Claim } from '../../src/store/ledger/due.ts';
import { afterTurn, FIRST_TURNS, inputOptions, planCall } from '../../src/sync/reprice/plan-call.ts';
import { nextRefresh } from '../../src/sync/settings.ts';
import { found, LEASE_MS, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const SETTINGS = settingsWith({});

/** Inserts `count` SKUs named after `name`, all due for the reason. */
const put = (
  name: string,
  count: number,
  as: { reason: string; source: string | null; listed?: boolean },
) => {
  const { reason, source, listed = true } = as;
  return store.sql`
    with skus as (
      insert into catalog.skus (sku, state, price_source, in_manifest, priced_at, asked_at, first_priced_at)
      select ${name} || n, case when ${reason} = 'new' then 'pending' else 'priced' end, ${source}, ${listed}, at, at, at
      from generate_series(1, ${count}::int) n, (select case when ${reason} <> 'new' then now() - interval '1 day' end as at) a
      returning sku
    )
    insert into catalog_internal.due (sku, lane, reason, live, due_at)
    select sku, catalog_internal.lane_of(${reason}), ${reason}, coalesce(${source} = 'live', false), now() - interval '1 minute' from skus`;
};

let turns = FIRST_TURNS;

/** Plans the next call and claims its SKUs. */
async function nextClaim(): Promise<Claim> {
  const inputs = await readCallInputs(store.sql, inputOptions(SETTINGS));
  const planned = planCall(inputs, { turns, sinceLastCallMs: 60_000 }, SETTINGS);
  const claim = planned.kind === 'planned' ? await claimDue(store.sql, planned.wanted, LEASE_MS) : null;
  if (planned.kind === 'planned') turns = afterTurn(turns, planned);
  if (claim === null) throw new Error('nothing was claimed');
  return claim;
}

/** Counts the SKUs of each name in a claim. */
const names = (claim: Claim) =>
  Object.fromEntries(
    [...Map.groupBy(claim.skus, ({ sku }) => sku[0] ?? '')].map(([name, skus]) => [name, skus.length]),
  );

test('100,000 due unlisted SKUs of a watchlist leave live SKUs, the fill and sweeps their slots', async () => {
  const { sql } = store;
  await put('U', 100_000, { reason: 'unlisted', source: null, listed: false });
  await put('L', 500, { reason: 'live', source: 'live' });
  await put('N', 2000, { reason: 'new', source: 'snapshot' });
  await put('S', 2000, { reason: 'sweep', source: 'snapshot' });
  await sql`analyze catalog_internal.due`;
  for (let n = 1; n <= 8; n += 1) {
    const claim = await nextClaim();
    expect(names(claim)).toEqual({ L: 5, N: 4, S: 4, U: 87 });
    const results = claim.skus.map(({ sku }) => found(sku, { 9: 90 }));
    await applyAnswer(sql, claim, results, nextRefresh(SETTINGS));
  }
  // Once answered, they wait until they are due again: none is asked for twice.
  const [{ asked }] = await sql<[{ asked: number }]>`
    select count(*)::int as asked from catalog_internal.due where reason = 'unlisted' and due_at > now()`;
  expect(asked).toBe(8 * 87);
});

test.each([
  [
    'live refreshes are scarce',
    'update catalog_internal.live_plan set refresh_threshold = 0.001, max_interval_minutes = 1000, early_minutes = 600',
  ],
  [
    'the catalog is stale',
    "update catalog_internal.sync set manifest_applied_at = now(), catalog_fault = '0014'",
  ],
])('while %s, an unlisted SKU is not refreshed before it is due', async (_what, happens) => {
  const { sql } = store;
  await put('U', 1, { reason: 'unlisted', source: null, listed: false });
  await put('L', 1, { reason: 'live', source: 'live' });
  await sql`update catalog_internal.due set due_at = now() + interval '1 minute'`;
  await sql.unsafe(happens);
  expect(names(await nextClaim())).toEqual({ L: 1 });
});
