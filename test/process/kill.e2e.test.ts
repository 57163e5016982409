import { randomInt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Route } from '../../src/sandbox/faults.ts';
import type { World } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/db.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { holds, pause, runProgram, startProgram, until } from '../support/process.ts';
import { backends, createStack, type Stack } from '../support/stack.ts';

const SANDBOX = { skus: 600, liveShare: 0.05, latencyMs: 15 };
/** The moments of a kill, in milliseconds after the daemon says that it has started. */
const LATEST_MS = 700;

/** What the daemon is in the middle of: how SQL shows it, and the slowness of the partner that makes it last. */
const POINTS: Record<string, { slow: Route; there: string }> = {
  'a manifest is downloaded': {
    slow: 'file',
    there: `(select running_until is not null from catalog_internal.tasks where task = 'manifest')`,
  },
  'a bulk call is under way': {
    slow: 'bulk',
    there: 'exists (select from catalog_internal.due where claim is not null)',
  },
  'a delta is asked for': {
    slow: 'delta',
    there: `(select running_until is not null from catalog_internal.tasks where task = 'delta')`,
  },
  'the token has moved and its work is owed': {
    slow: 'bulk',
    there: `exists (select from catalog_internal.due where due_at <= now() and reason = 'changed')`,
  },
};

/** Moves of the market that the catalog reports, all of them in the snapshot cohort, and a snapshot with them. */
function moveMarket(world: World, round: number): void {
  const listed = [...world.truth().values()].filter((row) => row.listed && row.answer === 'record');
  const priced = listed.filter(
    (row) => row.priceSource === 'snapshot' && Object.keys(row.sizeMap).length > 0,
  );
  const from = (start: number, count: number) => priced.slice(start + round * 60, start + round * 60 + count);
  for (const { sku, sizeMap } of from(0, 40))
    world.setPrice(sku, Object.keys(sizeMap)[0] ?? '', 500_000 + round);
  for (const { sku } of from(40, 5)) world.remove(sku);
  for (const { sku } of from(45, 5)) world.withdraw(sku);
  for (const { sku } of from(50, 5)) world.cross(sku, 'live');
  for (let i = 0; i < 5; i += 1) world.add();
  world.buildSnapshot();
}

/** Where the token is the newest, whatever is not as the partner has it must be owed: the cursor is not ahead of the work. */
async function expectCursorNotAhead(sql: Sql, world: World): Promise<void> {
  const [sync] = await sql<
    [{ token: string | null }]
  >`select snapshot_id as token from catalog_internal.sync`;
  if (sync.token === null) {
    const [{ skus }] = await sql<[{ skus: number }]>`select count(*)::int as skus from catalog.skus`;
    expect(skus, 'lines without their token').toBe(0);
  }
  if (sync.token !== world.newestSnapshot()) return;
  const rows = await sql<{ sku: string; listed: boolean; source: string; prices: object; owed: boolean }[]>`
    select s.sku, in_manifest as listed, price_source as source, d.due_at <= now() as owed,
      coalesce((select jsonb_object_agg(size, price) from catalog.prices p where p.sku = s.sku), '{}') as prices
    from catalog.skus s join catalog_internal.due d using (sku)`;
  const mirror = new Map(rows.map((row) => [row.sku, row]));
  const ordered = (prices: object) =>
    JSON.stringify(Object.entries(prices).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const lost = [...world.truth().values()].filter(({ sku, listed, priceSource, sizeMap }) => {
    const mine = mirror.get(sku);
    if (mine === undefined) return listed;
    if (mine.listed !== listed || (listed && mine.source !== priceSource)) return true;
    return !mine.owed && ordered(mine.prices) !== ordered(sizeMap);
  });
  expect(lost.slice(0, 3)).toEqual([]);
}

/** Each price's history is a chain: every move begins where the one before ended, and the last ends at the present price. */
async function expectHistoryIsAChain(sql: Sql): Promise<void> {
  const broken = await sql`
    select * from (
      select h.*, lag(new_price) over w as before, row_number() over w as nth,
        row_number() over (partition by sku, size order by id desc) = 1 as is_last,
        (select price from catalog.prices p where p.sku = h.sku and p.size = h.size) as present
      from catalog.price_history h window w as (partition by sku, size order by id)
    ) chain
    where old_price is not distinct from new_price or nth > 1 and old_price is distinct from before
      or is_last and new_price is distinct from present`;
  expect([...broken]).toEqual([]);
}

async function expectTrueAtTheEnd(stack: Stack): Promise<void> {
  // Live prices and metadata are nobody's to report: what time brings is brought here.
  await stack.everythingDue();
  const { code, stderr } = await runProgram(['run', '--once'], stack.env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  await expectHistoryIsAChain(stack.sql);
}

async function killed(stack: Stack, moment: () => Promise<void>): Promise<void> {
  await using daemon = startProgram(['run'], stack.env);
  await daemon.until('app.started');
  await moment();
  await daemon.end('SIGKILL');
  await expectCursorNotAhead(stack.sql, stack.sandbox.world);
}

describe.concurrent.each(backends())('kill -9, queues in %s,', (backend) => {
  test('at random moments of a fill, of deltas and of re-baselines loses nothing and doubles nothing', async () => {
    const seed = randomInt(2 ** 31);
    console.log(`seed ${seed}`);
    const random = randomFrom(seed);
    await using stack = await createStack({
      backend,
      sandbox: { ...SANDBOX, seed },
      env: { DELTA_INTERVAL: '1s' },
    });
    for (let round = 0; round < 6; round += 1) {
      if (round > 1) moveMarket(stack.sandbox.world, round - 2);
      if (round % 2 === 1)
        await stack.sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
      await killed(stack, () => pause(random() * LATEST_MS));
    }
    await expectTrueAtTheEnd(stack);
  });
});

describe.concurrent('kill -9', () => {
  test('while a manifest is fetched for the first time leaves no line of it', async () => {
    await using stack = await createStack({ sandbox: { ...SANDBOX, seed: 41 } });
    stack.sandbox.faults.add({ route: 'file', truncateAt: 5000, delayMs: 400 });
    await killed(stack, () => until('the file', () => stack.sandbox.counts('file') > 0));
    await expectTrueAtTheEnd(stack);
  });

  test('at every named point of a fill, a delta, a re-baseline and a re-price loses nothing', async () => {
    await using stack = await createStack({
      sandbox: { ...SANDBOX, seed: 42 },
      env: { DELTA_INTERVAL: '1s' },
    });
    const { sql, sandbox } = stack;
    const killAt = async (point: string) => {
      const { slow, there } = POINTS[point] ?? { slow: '*' as never, there: '' };
      sandbox.faults.add({ route: slow, delayMs: 500, times: Infinity });
      await killed(stack, () => until(point, () => holds(sql, there)));
      sandbox.faults.clear();
    };
    await killAt('a manifest is downloaded');
    await killAt('a bulk call is under way');
    expect(await runProgram(['run', '--once'], stack.env)).toMatchObject({ code: 0 });
    for (const [round, point] of Object.keys(POINTS).entries()) {
      moveMarket(sandbox.world, round);
      if (point.startsWith('a manifest'))
        await sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
      await killAt(point);
    }
    await expectTrueAtTheEnd(stack);
  });
});

/** Reproducible numbers in [0, 1). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
