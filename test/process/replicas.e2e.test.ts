import { describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { expectStopped, FILLED, holds, runProgram, startProgram } from '../support/process.ts';
import { backends, createStack } from '../support/stack.ts';

const CLAIMED = 'exists (select from catalog_internal.due where claim is not null)';

describe.concurrent.each(backends())('two daemons on one database, queues in %s,', (backend) => {
  test('share the work and the budget, and ask for no SKU twice', async ({ expect }) => {
    await using stack = await createStack({
      backend,
      sandbox: { skus: 1500, liveShare: 0, ghostShare: 0, seed: 51, rateLimit: 40, rateWindowMs: 4000 },
      env: { PARTNER_RATE_LIMIT: '40', PARTNER_RATE_WINDOW: '4s', PARTNER_RATE_SHARE: '0.5' },
    });
    await using one = startProgram(['run'], stack.env);
    await using two = startProgram(['run'], stack.env);
    await Promise.all([one.until('app.started'), two.until('app.started')]);
    await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
    const asked = stack.sandbox.requests.flatMap(({ route, skus }) => (route === 'bulk' ? skus : []));
    expect(asked.length).toBe(new Set(asked).size);
    expect(stack.sandbox.maxRequestsInWindow()).toBeLessThanOrEqual(20);
    expect(stack.sandbox.counts('file')).toBe(1);
    for (const { end } of [one, two]) expectStopped(await end('SIGTERM'), expect);
  });
});

describe.concurrent('a daemon that is frozen', () => {
  test('for longer than its lease cannot overwrite a newer answer with its old one', async ({ expect }) => {
    await using stack = await createStack({ sandbox: { skus: 60, liveShare: 0, ghostShare: 0, seed: 52 } });
    const { sql, sandbox } = stack;
    await using frozen = startProgram(['run'], stack.env);
    await eventually(() => holds(sql, FILLED), { what: 'the fill' });
    const row = [...sandbox.world.truth().values()].find(({ sizeMap }) => Object.keys(sizeMap).length > 0);
    const sku = row?.sku ?? '';
    const size = Object.keys(row?.sizeMap ?? {})[0] ?? '';

    // Its answer waits in its socket while it is frozen, and is older than what the other daemon will get.
    sandbox.world.setPrice(sku, size, 111_111);
    sandbox.faults.add({ route: 'bulk', delayMs: 700 });
    const bulks = sandbox.counts('bulk');
    expect(await runProgram(['refresh', sku], stack.env)).toMatchObject({ code: 0 });
    await eventually(() => sandbox.counts('bulk') > bulks, { what: 'its call' });
    frozen.signal('SIGSTOP');
    await eventually(() => sandbox.requests.at(-1)?.status === 200, { what: 'its answer' });
    sandbox.world.setPrice(sku, size, 222_222);
    await sql`update catalog_internal.due set held_until = now() where claim is not null`;
    expect(await runProgram(['run', '--once'], stack.env)).toMatchObject({ code: 0 });

    frozen.signal('SIGCONT');
    await eventually(
      () => frozen.logged('partner.request').some(({ durationMs }) => Number(durationMs) > 700),
      { what: 'its return' },
    );
    expectStopped(await frozen.end('SIGTERM'), expect);
    await expectMirrorIsTrue(sql, sandbox.world);
    const moves = await sql`select new_price from catalog.price_history where sku = ${sku} order by id`;
    expect(moves).toMatchObject([{ new_price: 222_222 }]);
  });

  test('in the middle of a transaction does not block the others for long', async ({ expect }) => {
    await using stack = await createStack({ sandbox: { skus: 60, liveShare: 0, ghostShare: 0, seed: 53 } });
    const { sql, sandbox } = stack;
    await using frozen = startProgram(['run'], stack.env);
    await eventually(() => holds(sql, FILLED), { what: 'the fill' });
    const newest = sandbox.world.buildSnapshot();

    const waiting = `exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`;
    await sql.begin(async (tx) => {
      await tx`select from catalog_internal.sync for update`;
      await sql`update catalog_internal.tasks set next_at = now() where task = 'delta'`;
      await eventually(() => holds(sql, waiting), { what: 'a delta that waits for the lock' });
      frozen.signal('SIGSTOP');
    });
    await sql`update catalog_internal.tasks set running_until = now() where running_until is not null`;
    expect(await runProgram(['run', '--once'], stack.env)).toMatchObject({ code: 0 });
    const [sync] = await sql`select snapshot_id from catalog_internal.sync`;
    expect(sync).toEqual({ snapshot_id: newest });

    const asked = frozen.logged('partner.request').length;
    frozen.signal('SIGCONT');
    // Its delta fails, or it was frozen in another transaction and continues its work.
    const returned = () =>
      frozen.logged('delta.failed').length + frozen.stderr.length > 0 ||
      frozen.logged('partner.request').length > asked;
    await eventually(returned, { what: 'its return' });
    expect(frozen.stderr).toEqual([]);
    expectStopped(await frozen.end('SIGTERM'), expect);
    await expectMirrorIsTrue(sql, sandbox.world);
  });
});

describe.concurrent('what a dead daemon held', () => {
  test('is free at the next start, long before its leases end', async ({ expect }) => {
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 54 },
      env: { PARTNER_TIMEOUT: '10m' },
    });
    const hung = stack.sandbox.faults.add({ route: 'bulk', hang: true });
    await using dead = startProgram(['run'], stack.env);
    await eventually(() => hung() > 0 && holds(stack.sql, CLAIMED), { what: 'a bulk call that hangs' });
    await dead.end('SIGKILL');
    expect(await holds(stack.sql, CLAIMED)).toBe(true);
    expect(await runProgram(['run', '--once'], stack.env)).toMatchObject({ code: 0 });
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  });

  test('is not free while another daemon lives, because it might belong to that one', async ({ expect }) => {
    await using stack = await createStack({
      sandbox: { skus: 60, liveShare: 0, ghostShare: 0, seed: 55 },
      env: { PARTNER_TIMEOUT: '10m' },
    });
    stack.sandbox.faults.add({ route: 'bulk', delayMs: 5000 });
    await using first = startProgram(['run'], stack.env);
    await eventually(() => holds(stack.sql, CLAIMED), { what: 'its call' });
    // So that its call outlasts the start of the other one, however long that takes.
    first.signal('SIGSTOP');
    await using second = startProgram(['run'], stack.env);
    await second.until('app.started');
    expect(await holds(stack.sql, CLAIMED)).toBe(true);
    first.signal('SIGCONT');
    await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
    expect(stack.sandbox.counts('bulk')).toBe(1);
    for (const { end } of [first, second]) expectStopped(await end('SIGTERM'), expect);
  });
});
