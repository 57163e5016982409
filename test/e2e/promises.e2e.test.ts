import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createStack } from '../support/stack.ts';

const LIVE = 8;
const OTHERS = 40;

test('promises of seconds are kept in a large fill and after a restart; a back-off breaks them and is named', async () => {
  await using stack = await createStack({
    sandbox: { skus: 6000, liveShare: 0.02, ghostShare: 0, seed: 2101 },
    env: {
      PARTNER_RATE_LIMIT: '120',
      PARTNER_RATE_WINDOW: '60s',
      BULK_MAX_SKUS: '10',
      PARTNER_BACKOFF: '6s',
    },
  });
  const { sql, sandbox } = stack;
  let app = await stack.start();
  await eventually(async () => expect(await sql`select from catalog.skus limit 1`).toHaveLength(1), {
    what: 'the manifest',
  });
  await sql`
    insert into catalog.watchlist (sku, max_age)
    (select sku, interval '30 seconds' from catalog.skus where price_source = 'live' order by sku limit ${LIVE})
    union all (select sku, interval '1 minute' from catalog.skus where price_source = 'snapshot' order by sku limit ${OTHERS})`;
  const count = async (where: string) =>
    Number((await sql.unsafe(`select count(*) as n from catalog.promises where ${where}`))[0]?.['n']);
  const cases = async () =>
    Number(
      (
        await sql`select coalesce(sum(catalog_internal.last_day(cases, hour)), 0) as n from catalog_internal.promise_cases`
      )[0]?.['n'],
    );
  await eventually(async () => expect(await cases()).toBeGreaterThan(2 * LIVE), {
    what: 'promises that were due',
    within: 90_000,
  });
  // The fill is still running.
  expect(await sql`select from catalog.skus where state = 'pending' limit 1`).toHaveLength(1);
  expect(await count('feasible and kept_share = 1')).toBeGreaterThanOrEqual(LIVE);
  await app.stop();
  app = await stack.start();
  const before = await cases();
  await eventually(async () => expect(await cases()).toBeGreaterThan(before + LIVE), {
    what: 'promises after the restart',
    within: 90_000,
  });
  expect(await count('kept_share < 1')).toBe(0);

  sandbox.faults.add({ route: 'bulk', status: 403 });
  await eventually(
    async () =>
      expect(await count(`not feasible and because = 'backing off after a refusal'`)).toBe(LIVE + OTHERS),
    {
      what: 'a back-off',
    },
  );
  await eventually(async () => expect(await count('feasible')).toBeGreaterThan(0), {
    what: 'the end of the back-off',
    within: 60_000,
  });
});
