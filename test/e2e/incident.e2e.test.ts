import { expect, test } from 'vitest';
import { TRIAL_BUDGETS } from '../../src/sync/live/incident.ts';
import { eventually } from '../support/eventually.ts';
import { nudge } from '../support/market.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { holds } from '../support/process.ts';
import { backends, createStack, type Stack } from '../support/stack.ts';

const SKUS = 600;
const [backend] = backends();

/** No plan is about to be made, which would reschedule refreshes that were made due by hand. */
const PLANNED = `exists (select from catalog_internal.live_plan where solved_at is not null) and exists (
  select from catalog_internal.tasks
  where task = 'live-plan' and running_until is null and next_at > now() + interval '15 seconds')`;

const incident = (stack: Stack) => async () =>
  (await stack.sql`select incident_since from catalog.sync_status`)[0]?.['incident_since'] as Date | null;

const bulkBodies = (stack: Stack, from: number) =>
  stack.sandbox.requests.slice(from).flatMap(({ route, skus }) => (route === 'bulk' ? [skus.length] : []));

/** Makes the whole ledger due. */
const everythingDue = (stack: Stack) => stack.everythingDue();

test('while the whole catalog is live-priced, calls stay small and nothing is lost; afterwards they grow again', async () => {
  await using stack = await createStack({
    backend: backend ?? 'postgres',
    sandbox: { skus: SKUS, liveShare: 0.05, ghostShare: 0, mislistedShare: 0, seed: 71 },
    env: { CATALOG_CHECK_INTERVAL: '1s', DELTA_INTERVAL: '1s' },
  });
  const { world } = stack.sandbox;
  await stack.start();
  await stack.caughtUp();

  world.setIncident(true);
  world.buildSnapshot();
  await eventually(async () => (await incident(stack)()) !== null, {
    what: 'the incident is seen',
  });
  // Every SKU has become live-priced, and is in the schedule of live refreshes.
  await eventually(
    async () => {
      const [row] = await stack.sql`
      select count(*) filter (where d.live)::int as live from catalog_internal.due d join catalog.skus s using (sku)
      where s.price_source = 'live'`;
      return Number(row?.['live']) >= SKUS - 5;
    },
    { what: 'everything is live' },
  );
  await stack.caughtUp();
  await eventually(() => holds(stack.sql, PLANNED), { what: 'a plan that stands' });
  const from = stack.sandbox.requests.length;
  const moved = [...world.truth().values()]
    .filter(({ sizeMap }) => Object.keys(sizeMap).length > 0)
    .slice(100, 110);
  for (const row of moved) nudge(world, row);
  await everythingDue(stack);
  await stack.caughtUp();
  const bodies = bulkBodies(stack, from);
  expect(bodies.length).toBeGreaterThanOrEqual(SKUS / 5 - 2);
  // Allows for a budget that was learned one too high, and for as many trials of the incident's end as may be in
  // flight at once.
  const large = bodies.filter((skus) => skus > 6);
  expect(large.filter((skus) => skus > 5 * TRIAL_BUDGETS)).toEqual([]);
  expect(large.length).toBeLessThanOrEqual(12);
  await expectMirrorIsTrue(stack.sql, world);
  const deferred = await stack.sql`select count(*)::int as n from catalog_internal.due where deferrals > 0`;
  expect(deferred[0]?.['n']).toBe(0);

  world.setIncident(false);
  world.buildSnapshot();
  await eventually(async () => (await incident(stack)()) === null, {
    what: 'the incident is over',
  });
  await stack.caughtUp();
  await expectMirrorIsTrue(stack.sql, world);
  const [classes] = await stack.sql`
    select count(*) filter (where d.live and d.reason = 'live')::int as live,
      count(*) filter (where not d.live)::int as snapshot
    from catalog_internal.due d join catalog.skus s using (sku) where s.state = 'priced' and s.in_manifest`;
  const truth = [...world.truth().values()].filter(({ listed, answer }) => listed && answer === 'record');
  expect(classes?.['live']).toBe(truth.filter(({ priceSource }) => priceSource === 'live').length);
  // SKUs that a delta reported before the counts showed the end may have been refreshed by small calls.
  const after = stack.sandbox.requests.length;
  await everythingDue(stack);
  await stack.caughtUp();
  expect(Math.max(...bulkBodies(stack, after))).toBeGreaterThan(20);
}, 180_000);

test('an incident that the catalog does not report is detected by the deferrals', async () => {
  await using stack = await createStack({
    backend: backend ?? 'postgres',
    sandbox: { skus: SKUS, liveShare: 0.02, ghostShare: 0, mislistedShare: 0, seed: 72 },
    env: { DELTA_INTERVAL: '1h' },
  });
  const { world } = stack.sandbox;
  await stack.start();
  await stack.caughtUp();
  // The builder has not seen it yet: manifest and delta are unchanged.
  world.setIncident(true);
  await everythingDue(stack);
  await eventually(async () => (await incident(stack)()) !== null, {
    what: 'the incident is seen',
  });
  const from = stack.sandbox.requests.length;
  await stack.caughtUp(120_000);
  const bodies = bulkBodies(stack, from).slice(5);
  expect(Math.max(...bodies)).toBeLessThanOrEqual(6);
  await expectMirrorIsTrue(stack.sql, world);

  world.setIncident(false);
  await stack.sql`update catalog_internal.live_plan set incident_tried_at = now() - interval '1 hour'`;
  await everythingDue(stack);
  await eventually(async () => (await incident(stack)()) === null, {
    what: 'the incident is over',
  });
  await stack.caughtUp();
  await expectMirrorIsTrue(stack.sql, world);
}, 240_000);
