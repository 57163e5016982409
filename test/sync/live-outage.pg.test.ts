import { describe, expect, test } from 'vitest';
import type { BulkAnswer } from '../../src/partner/answers.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { ledger } from '../store/support.ts';
import { type LiveSource, MINUTE, signals, useLiveSource } from './live-source.ts';

let partner: LiveSource;
const store = useLiveSource((begun) => (partner = begun));

test('unreadable records start no live outage, and end one', async () => {
  partner.isOdd = true;
  await partner.calls(5);
  expect(partner.told()).toEqual([]);
  partner.isOdd = false;
  await partner.calls(5);
  await partner.passMinutes(1);
  partner.isOdd = true;
  await partner.calls(1);
  expect(partner.told()).toEqual(['live-outage.began', 'live-outage.ended']);
});

describe('errors of nearly all live SKUs, while others are answered,', () => {
  test('are a reported outage of the live source: no live SKU is blamed, and only one in a while is asked', async () => {
    const { sql } = store;
    await partner.calls(3);
    expect(partner.told()).toEqual(['live-outage.began']);
    expect((await readLivePlan(sql)).outageSince).toEqual(expect.any(Number));
    const rows = [...(await ledger(sql)).values()].filter(({ live }) => live);
    expect(rows.filter(({ lane, failures }) => lane !== 2 || failures > 0)).toEqual([]);
    partner.asked = [];
    await partner.passMinutes(1);
    await partner.calls(6);
    expect(partner.asked.map((skus) => skus.length).filter((live) => live > 0)).toEqual([1]);
    await partner.passMinutes(2);
    await partner.calls(2, partner.daemon());
    expect(partner.asked.map((skus) => skus.length).filter((live) => live > 0)).toEqual([1, 1]);
    expect([...(await ledger(sql)).values()].filter(({ failures }) => failures > 0)).toEqual([]);
    expect(partner.told()).toEqual(['live-outage.began']);
  });

  test('are over with the first live SKU that is answered, and all are asked again as before', async () => {
    const { sql } = store;
    await partner.calls(3);
    partner.works = true;
    await partner.passMinutes(2);
    await sql`update catalog_internal.tasks set next_at = now() + interval '1 hour' where task = 'live-plan'`;
    await partner.calls(1);
    expect(partner.told()).toEqual(['live-outage.began', 'live-outage.ended']);
    expect((await readLivePlan(sql)).outageSince).toBeNull();
    partner.asked = [];
    await partner.calls(2);
    expect(partner.asked.map((skus) => skus.length)).toEqual([5, 5]);
    const [task] =
      await sql`select next_at <= clock_timestamp() as now from catalog_internal.tasks where task = 'live-plan'`;
    expect(task).toEqual({ now: true });
  });

  test('are reported once by several daemons, and not again by one that has not seen the end', async () => {
    const other = partner.daemon();
    await partner.calls(2, other);
    await partner.calls(3);
    partner.works = true;
    await partner.passMinutes(2);
    await partner.calls(1);
    await partner.calls(2, other);
    expect(partner.told()).toEqual(['live-outage.began', 'live-outage.ended']);
  });

  test('are no live outage if the other SKUs are in errors, too', async () => {
    partner.ctx = partner.daemon();
    const answer = { bulk: async (_: unknown, skus: readonly string[]) => Promise.resolve(failing(skus)) };
    const failing = (skus: readonly string[]): BulkAnswer => ({
      results: new Map(),
      notFound: [],
      deferred: [],
      errors: [...skus],
      requested: null,
    });
    await partner.calls(5, { ...partner.ctx, client: answer } as unknown as SyncContext);
    expect(partner.told()).toEqual([]);
  });

  test('delay no other SKU: if only live SKUs are due, there is no call before the next try', async () => {
    const { sql } = store;
    await partner.calls(3);
    await sql`update catalog_internal.due set due_at = now() + interval '1 day' where not live`;
    await sql`update catalog_internal.live_plan set outage_since = now() - interval '10 minutes'`;
    await sql`update catalog_internal.live_ceiling set credit_from = now()`;
    const idle = await repriceOnce(partner.ctx, { sinceLastCallMs: Infinity }, MINUTE, signals);
    expect(idle).toMatchObject({ kind: 'idle', nextInMs: expect.closeTo(MINUTE, -4) as number });
    // A call with a single other SKU lingers for more, as if no live SKU were due.
    await sql`update catalog_internal.due set due_at = now(), held_until = null where sku = (select min(sku) from catalog_internal.due where not live)`;
    partner.ctx.floors.reset();
    const lingering = await repriceOnce(partner.ctx, { sinceLastCallMs: 0 }, MINUTE, signals);
    expect(lingering).toMatchObject({ kind: 'linger' });
  });

  test('of a single live SKU do not make it wait longer than a healthy one', async () => {
    const { sql } = store;
    await sql`update catalog_internal.due set due_at = now() + interval '1 day' where sku <> 'L007'`;
    await sql`update catalog_internal.due set failures = 9 where sku = 'L007'`;
    await sql`update catalog_internal.live_plan set solved_at = now()`;
    await partner.calls(1);
    const [row] = await sql`
      select extract(epoch from held_until - now()) / 60 between 25 and 31 as turn from catalog_internal.due where sku = 'L007'`;
    expect(row).toEqual({ turn: true });
    // Only once it is known that the calls suffice for all.
    await sql`update catalog_internal.due set held_until = null where sku = 'L007'`;
    await sql`update catalog_internal.live_plan set solved_at = null`;
    await partner.calls(1);
    const [later] =
      await sql`select held_until > now() + interval '5 hours' as is from catalog_internal.due where sku = 'L007'`;
    expect(later).toEqual({ is: true });
  });

  test('no longer count if no live SKU has been tried for an hour', async () => {
    const { sql } = store;
    await partner.calls(3);
    await sql`
      update catalog_internal.live_plan set outage_since = now() - interval '2 hours'`;
    await sql`update catalog_internal.live_ceiling set credit_from = now() - interval '61 minutes'`;
    expect((await readLivePlan(sql)).outageSince).toBeNull();
    await partner.calls(3);
    expect(partner.told()).toEqual(['live-outage.began', 'live-outage.began']);
  });
});
