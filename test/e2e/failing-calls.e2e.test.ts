import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack, type Stack } from '../support/stack.ts';

/** Returns the SKUs that no call has answered yet. */
async function unanswered({ sql }: Stack): Promise<string[]> {
  const rows = await sql<{ sku: string }[]>`
    select sku from catalog.skus where in_manifest and asked_at is null order by sku`;
  return rows.map(({ sku }) => sku);
}

const bulkCalls = ({ sandbox }: Stack) => sandbox.requests.filter(({ route }) => route === 'bulk');

describe('SKUs that make a whole bulk call fail', () => {
  test('are found in the catalog, logged and asked alone, while all others are mirrored', async () => {
    await using stack = await createStack({
      sandbox: { skus: 600, refusedShare: 0.005, ghostShare: 0, seed: 1501 },
      // Other SKUs are always due: if only these SKUs were asked for, the failures could be an outage.
      env: { ERROR_INTERVAL: '1s', LIVE_INTERVAL: '2s' },
    });
    const { sandbox, sql } = stack;
    const refused = [...sandbox.world.truth().keys()].filter((sku) => sandbox.world.refuses(sku)).toSorted();
    expect(refused).toHaveLength(3);
    await stack.start();
    await eventually(async () => expect(await unanswered(stack)).toEqual(refused), { what: 'all others' });
    // Calls of a hundred are halved for three SKUs, and no other SKU waits for them.
    expect(bulkCalls(stack).filter(({ status }) => status === 400).length).toBeLessThan(3 * 10);
    const paused = stack.logs.filter(
      (line) => line.event === 'bulk.failed' && Number(line['pausedMs']) > 1000,
    );
    expect(paused).toEqual([]);

    const named = await eventually(
      () => {
        const lines = stack.logs.filter(({ event }) => event === 'bulk.set-aside');
        expect(lines.length).toBeGreaterThan(0);
        return lines;
      },
      { what: 'a line that names them' },
    );
    expect(named[0]).toMatchObject({ level: 'warn', because: 'bad-request', httpStatus: 400 });
    for (const sku of named.flatMap((line) => line['skus'] as string[])) expect(refused).toContain(sku);
    const alone = await sql`select sku from catalog_internal.due where largest_call = 1 order by sku`;
    expect(alone.map(({ sku }) => sku as string)).toEqual(refused);

    // The partner fixes them: they are mirrored like any other.
    for (const sku of refused) sandbox.world.setRefused(sku, false);
    await sql`update catalog_internal.due set held_until = now() where claim is null and held_until is not null`;
    // Does not wait until nothing is due: at an interval of two seconds a slow machine never reaches that.
    await eventually(
      async () =>
        expect(await sql`select from catalog_internal.due where largest_call is not null`).toHaveLength(0),
      { what: 'their answers' },
    );
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('on the watchlist, unknown to the catalog, do not delay live prices beyond LIVE_INTERVAL', async () => {
    await using stack = await createStack({
      sandbox: { skus: 300, liveShare: 0.1, seed: 1502 },
      env: { LIVE_INTERVAL: '4s', ERROR_INTERVAL: '5s' },
    });
    const { sandbox, sql } = stack;
    await stack.start();
    await stack.caughtUp();
    sandbox.world.setRefused('bad sku', true);
    await sql`insert into catalog.watchlist (sku) values ('bad sku')`;
    await eventually(
      async () => expect(await sql`select from catalog_internal.due where largest_call = 1`).toHaveLength(1),
      { what: 'the SKU alone' },
    );
    const [{ since }] = await sql<[{ since: Date }]>`select clock_timestamp() as since`;
    // Two rounds with that SKU; calls used to stop for all at the first.
    await eventually(
      async () => {
        const [row] = await sql<[{ behind: number; live: number }]>`
          select count(*)::int as live, count(*) filter (where priced_at < ${since}::timestamptz + interval '4 seconds')::int as behind
          from catalog.skus where price_source = 'live'`;
        expect(row).toEqual({ live: 30, behind: 0 });
      },
      { what: 'all live SKUs twice more' },
    );
    expect(bulkCalls(stack).filter(({ status }) => status === 400).length).toBeLessThan(12);
  });
});

test('calls that are too large for the partner shrink to a size that it answers, which is kept', async () => {
  await using stack = await createStack({
    sandbox: { skus: 900, bulkLimit: 30, liveShare: 0, seed: 1503 },
    env: { ERROR_INTERVAL: '5s' },
  });
  await stack.once();
  await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  const calls = bulkCalls(stack);
  expect(calls.filter(({ status }) => status === 504).length).toBeLessThan(24);
  expect(calls.length).toBeLessThan((900 / 30) * 3);
  const [size] = await stack.sql<[{ size: number }]>`select size from catalog_internal.call_size`;
  expect(size.size).toBeLessThanOrEqual(30);
  expect(size.size).toBeGreaterThan(10);
});
