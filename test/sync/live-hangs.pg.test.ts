import { describe, expect, test } from 'vitest';
import { PartnerError } from '../../src/partner/errors.ts';
import { callPause } from '../../src/store/ledger/tasks.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { ledger } from '../store/support.ts';
import { type LiveSource, useLiveSource } from './live-source.ts';

let partner: LiveSource;
const store = useLiveSource((begun) => (partner = begun));

describe('calls that fail as a whole for their live SKUs', () => {
  const live = () => partner.asked.map((skus) => skus.length);
  const failures = async () => (await callPause(store.sql)).failures;

  test('are an outage, too: others are asked without them, and a lone live SKU that is tried fails no other', async () => {
    const { sql } = store;
    [partner.hangs, partner.works] = [true, true];
    await partner.calls(2);
    expect(live()).toEqual([5, 5]);
    await partner.calls(6);
    expect(live()).toEqual([5, 5, 0, 1, 0, 1, 0, 0]);
    expect(partner.told()).toEqual(['live-outage.began']);
    expect((await readLivePlan(sql)).outageSince).toEqual(expect.any(Number));
    [partner.asked, partner.sizes] = [[], []];
    await partner.passMinutes(1);
    const before = await ledger(sql);
    await partner.calls(2);
    expect(live()).toEqual([1, 0]);
    expect(partner.sizes[0]).toBe(1);
    expect(await failures()).toBe(0);
    // Its SKU is not blamed, not even if it is one of the two that failed before the outage was known.
    const [tried = ''] = partner.asked[0] ?? [];
    expect((await ledger(sql)).get(tried)?.['failures']).toBe(before.get(tried)?.['failures']);
    partner.hangs = false;
    await partner.passMinutes(2);
    await partner.calls(1);
    expect(partner.told()).toEqual(['live-outage.began', 'live-outage.ended']);
  });

  test('draw the SKU to try at random, because those due longest may fail on their own', async () => {
    const { sql } = store;
    [partner.hangs, partner.works] = [true, true];
    await partner.calls(8);
    expect(partner.told()).toEqual(['live-outage.began']);
    partner.asked = [];
    await sql`update catalog_internal.due set due_at = due_at - row_number * interval '1 second'
      from (select sku, row_number() over (order by sku) from catalog_internal.due where live) l where l.sku = due.sku`;
    // In 24 draws of 60 so few are hardly possible. In order of due time only two would be tried.
    for (let tries = 0; tries < 24; tries += 1) {
      await partner.passMinutes(1);
      await partner.calls(2);
    }
    const tried = partner.asked.flat();
    expect(tried.length).toBeGreaterThanOrEqual(24);
    expect(new Set(tried).size).toBeGreaterThan(10);
    // SKUs of failed calls are drawn, too.
    await sql`update catalog_internal.due set largest_call = 1 where live`;
    partner.asked = [];
    await partner.passMinutes(1);
    await partner.calls(2);
    expect(live()).toEqual(expect.arrayContaining([1]));
  });

  test('in an outage that is not known yet do not blame the live SKU that is tried', async () => {
    const { sql } = store;
    await sql`update catalog_internal.due set failures = 1 where live`;
    [partner.hangs, partner.works] = [true, true];
    await partner.calls(4);
    expect(live()).toEqual([5, 5, 0, 1]);
    const [row] = await sql`
      select failures, held_until < clock_timestamp() + interval '10 minutes' as soon from catalog_internal.due
      where sku = ${partner.asked[3]?.[0] ?? ''}`;
    expect(row).toEqual({ failures: 2, soon: true });
    expect(partner.told()).toEqual([]);
  });

  test('that another daemon doubts blame no live SKU, unless one was computed since it failed before', async () => {
    const { sql } = store;
    [partner.hangs, partner.works] = [true, true];
    const fails = async () => {
      await sql`update catalog_internal.due set due_at = now() + interval '1 day'`;
      await sql`
        update catalog_internal.due set due_at = now(), largest_call = 1, failures = 1, held_until = null, claim = null
        where sku = 'L007'`;
      await sql`update catalog_internal.tasks set failures = 0, next_at = now() where task = 'reprice'`;
      partner.ctx = partner.daemon();
      await partner.calls(1);
      const [row] = await sql`
        select failures, held_until < clock_timestamp() + interval '10 minutes' as soon from catalog_internal.due where sku = 'L007'`;
      return row;
    };
    expect(await fails()).toEqual({ failures: 2, soon: true });
    await sql`insert into catalog_internal.live_calls (called_at, computed, deferred, snapshot_asked, snapshot_deferred)
      values (clock_timestamp() - interval '30 seconds', 1, 0, 0, 0)`;
    expect(await fails()).toEqual({ failures: 2, soon: false });
    // Nor is a SKU blamed for the first failure in a call of its own, whatever errors it had before.
    await sql`update catalog_internal.due set failures = 4, due_at = case when sku = 'L009' then now() else now() + interval '1 day' end`;
    await sql`update catalog_internal.tasks set failures = 0, next_at = now() where task = 'reprice'`;
    await partner.calls(1, partner.daemon());
    const [row] = await sql`
      select failures, held_until < clock_timestamp() + interval '20 minutes' as soon from catalog_internal.due where sku = 'L009'`;
    expect(row).toEqual({ failures: 5, soon: true });
  });

  test('lead to a try of a promised SKU that is due for nothing else, without delaying others', async () => {
    const { sql } = store;
    [partner.hangs, partner.works] = [true, true];
    await partner.calls(8);
    await sql`
      update catalog_internal.due set due_at = now() + interval '15 minutes', held_until = null, largest_call = null where live`;
    await sql`
      update catalog_internal.due set promised_at = now() - interval '1 second', promised_by = now() + interval '30 seconds'
      where sku = 'L001'`;
    await partner.passMinutes(1);
    partner.ctx.floors.reset();
    [partner.asked, partner.sizes] = [[], []];
    await partner.calls(4);
    expect(partner.asked.flat()).toEqual(['L001']);
    expect(partner.sizes.filter((skus) => skus > 1).length).toBeGreaterThanOrEqual(2);
  });

  test('delay no other SKUs while somebody has locked the live ones', async () => {
    [partner.hangs, partner.works] = [true, true];
    await partner.calls(8);
    await partner.passMinutes(1);
    [partner.asked, partner.sizes] = [[], []];
    await store.sql.begin(async (tx) => {
      await tx`select from catalog_internal.due where live for update`;
      await partner.calls(4);
    });
    expect(partner.asked.flat()).toEqual([]);
    expect(partner.sizes.length).toBeGreaterThanOrEqual(2);
  });

  test('end together with the waits of live SKUs that were blamed before the outage was known', async () => {
    const { sql } = store;
    [partner.hangs, partner.works] = [true, true];
    await partner.calls(8);
    await sql`
      update catalog_internal.due set largest_call = 1, failures = 3, held_until = now() + interval '6 hours', claim = null
      where sku in ('L001', 'S001')`;
    await sql`
      update catalog_internal.due set largest_call = null, held_until = now() + interval '6 hours', claim = null where sku = 'L002'`;
    partner.hangs = false;
    await partner.passMinutes(2);
    await partner.calls(1);
    expect(partner.told()).toEqual(['live-outage.began', 'live-outage.ended']);
    const held = await sql<{ sku: string }[]>`
      select sku from catalog_internal.due where held_until > now() + interval '1 hour' order by sku`;
    expect((await ledger(sql)).get('L001')).toMatchObject({ failures: 0 });
    // A SKU that waits for another reason and one that is not live still wait.
    expect(held.map(({ sku }) => sku)).toEqual(['L002', 'S001']);
  });

  test('are no live outage if others fail, too', async () => {
    const bulk = async () => await Promise.reject(new PartnerError('timeout', 'bulk', {}));
    await partner.calls(8, { ...partner.ctx, client: { bulk } } as unknown as SyncContext);
    expect(partner.told()).toEqual([]);
    expect(await failures()).toBe(4);
  });
});
