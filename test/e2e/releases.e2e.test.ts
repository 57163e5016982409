import { expect, test } from 'vitest';
import { askedSince, logged } from '../contract/harness.ts';
import { createStack } from '../support/stack.ts';

/** So few calls a minute, of five live SKUs each, that 250 of them take more than a minute. */
const SCARCE = { PARTNER_RATE_LIMIT: '40', LIVE_INTERVAL: '30s', LOG_LEVEL: 'debug' };
const BRAND = 'Acme';
const MODEL = 'Runner';

test('the SKUs of a line that moves are refreshed before all others', async () => {
  await using stack = await createStack({
    sandbox: { skus: 500, liveShare: 0.5, ghostShare: 0, mislistedShare: 0, seed: 2002, marketIntervalMs: 0 },
  });
  const { sandbox, sql } = stack;
  const live = [...sandbox.world.truth().values()].filter(({ priceSource }) => priceSource === 'live');
  const line = live.filter((_, n) => n % 4 === 0).map(({ sku }) => sku);
  for (const sku of line) sandbox.world.setProduct(sku, { brand: BRAND, model: MODEL });
  await stack.once();
  // As if nothing of it had moved for hours.
  await sql`update catalog_internal.live_rates set wholesale_moves = 0, wholesale_minutes = 2880`;
  // As usual: each was refreshed a little while ago, and they become due one after the other.
  await sql`update catalog.skus set asked_at = asked_at - interval '2 minutes', priced_at = priced_at - interval '2 minutes'`;
  await sql`update catalog_internal.pace_sends set sent_at = sent_at - interval '2 minutes'`;
  await sql`update catalog_internal.due set due_at = now() + interval '4 minutes' * random() where live`;
  await sql`update catalog_internal.tasks set next_at = now() where task = 'live-plan'`;
  const answer = await fetch(`${sandbox.url}/sandbox/releases`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ brand: BRAND, model: MODEL }),
  });
  expect(await answer.json()).toMatchObject({ brand: BRAND, model: MODEL });
  const from = sandbox.requests.length;
  await stack.start(SCARCE);
  await expect.poll(() => logged(stack, 'release.confirmed'), { timeout: 90_000 }).toHaveLength(1);
  expect(logged(stack, 'release.confirmed')[0]).toMatchObject({ brand: BRAND, model: MODEL });
  const before = askedSince(stack, from).flat();
  const left = line.filter((sku) => !before.includes(sku));
  expect(left.length).toBeGreaterThan(20);
  await expect
    .poll(() => askedSince(stack, from).flat().length, { timeout: 90_000 })
    .toBeGreaterThanOrEqual(before.length + left.length + 10);
  const next = askedSince(stack, from)
    .flat()
    .slice(before.length, before.length + left.length + 10);
  // A call may be in flight when it is confirmed.
  expect(next.filter((sku) => left.includes(sku)).length).toBeGreaterThan(0.8 * left.length);
});
