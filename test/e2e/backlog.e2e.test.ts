import { expect, test } from 'vitest';
import { askedSince, logged, nextLog } from '../contract/harness.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack } from '../support/stack.ts';

/** Ten calls a minute, of five live SKUs each: 250 of them take five minutes. */
const SLOW = { PARTNER_RATE_LIMIT: '12', LIVE_INTERVAL: '1m' };
const WATCHED = 5;

test('after two hours without an answer, the SKUs that matter most are refreshed before those overdue longest', async () => {
  await using stack = await createStack({
    sandbox: { skus: 500, liveShare: 0.5, ghostShare: 0, mislistedShare: 0, seed: 2001 },
  });
  const { sandbox, sql } = stack;
  const live = [...sandbox.world.truth().values()].filter(({ priceSource }) => priceSource === 'live');
  // Spread over the whole list, whatever it is ordered by.
  const watched = live.flatMap(({ sku }, n) => (n % Math.floor(live.length / WATCHED) === 7 ? [sku] : []));
  await sql`insert into catalog.watchlist ${sql(watched.map((sku) => ({ sku, weight: 50 })))}`;
  await stack.once();
  await sql`
    update catalog.skus set asked_at = asked_at - interval '2 hours', priced_at = priced_at - interval '2 hours'`;
  await sql`
    update catalog_internal.live_calls set called_at = called_at - interval '2 hours'`;
  await sql`update catalog.products set refreshed_at = refreshed_at - interval '2 hours'`;
  await sql`update catalog_internal.tasks set next_at = next_at - interval '2 hours'`;
  await sql`update catalog_internal.pace_sends set sent_at = sent_at - interval '2 hours'`;
  // Spread like a schedule, with the watched SKUs due last.
  await sql`
    update catalog_internal.due set due_at = now() - interval '1 hour' * case when sku = any(${watched}) then 0.01 else 0.1 + random() end
    where live`;
  const from = sandbox.requests.length;
  await stack.start(SLOW);
  const { backlog, refreshesPerMinute, scarce } = await nextLog(stack, 'live-plan.done', stack.logs.length);
  expect({ refreshesPerMinute, scarce }).toEqual({ refreshesPerMinute: 50, scarce: 1 });
  expect(Number(backlog)).toBeGreaterThan(200);
  const before = askedSince(stack, from).flat().length;
  await expect
    .poll(() => askedSince(stack, from).flat().length, { timeout: 90_000 })
    .toBeGreaterThanOrEqual(before + 3 * WATCHED);
  const asked = askedSince(stack, from).flat();
  const places = watched.map((sku) => asked.indexOf(sku));
  expect(Math.min(...places)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...places)).toBeLessThan(before + 2 * WATCHED);
  expect(logged(stack, 'live-plan.done').at(-1)).toMatchObject({ nextInSeconds: 60 });
  await expectMirrorIsTrue(sql, sandbox.world);
});
