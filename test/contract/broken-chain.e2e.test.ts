import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectCursorNotAhead, expectMirrorIsTrue, isReported } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';
import { catalogState, contents, logged, metric, readyz, runNow, taskOf } from './harness.ts';

const expired = { message: 'expired', code: '0010' };

describe('a broken chain', () => {
  test.each([
    ['0010', { message: 'expired', code: '0010' }],
    ['0013', { message: 'too large', code: '0013' }],
    ['a 400 without a code', { statusCode: 400, message: 'bad since' }],
  ])('(%s on the delta) fetches one fresh manifest, from which the mirror continues', async (_name, body) => {
    await using stack = await createStack({ sandbox: { skus: 100, seed: 301, liveShare: 0.05 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const files = sandbox.counts('file');
    sandbox.world.step(20);
    sandbox.world.buildSnapshot();
    sandbox.faults.add({ route: 'delta', status: 400, body });
    await runNow(stack, app, 'delta');
    // Only then is the delta asked for again.
    await eventually(() => expect(logged(stack, 'manifest.done')).toHaveLength(2));
    await stack.caughtUp();
    expect(logged(stack, 'delta.chain-broken')).toHaveLength(1);
    expect(sandbox.counts('file')).toBe(files + 1);
    expect(logged(stack, 'manifest.done').at(-1)).toMatchObject({ because: 'chain-broken' });
    expect(await catalogState(sql)).toBe('ok');
    await expectCursorNotAhead(sql, sandbox.world, isReported);
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('Catalog age. Stale while the chain is broken and the fresh manifest has the rejected token; no loop', async () => {
    await using stack = await createStack({ sandbox: { skus: 80, seed: 302 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const before = await contents(sql);
    const asked = {
      manifest: sandbox.counts('manifest'),
      delta: sandbox.counts('delta'),
      file: sandbox.counts('file'),
    };
    sandbox.faults.add({ route: 'delta', times: Infinity, status: 400, body: expired });
    await runNow(stack, app, 'delta');
    await eventually(async () =>
      expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: 'rejected-token', failures: 1 }),
    );
    expect((await taskOf(sql, 'manifest')).waits).toBeCloseTo(60, 0);
    expect(await catalogState(sql)).toBe('stale');
    expect((await runProgram(['status'], stack.env)).stdout).toMatch(
      /refused: rejected-token[^]*chain broken/,
    );
    expect(String((await readyz(app)).body['degraded'])).toContain('rejected-token');
    expect(await metric(app, 'syncs_total', 'kind="manifest",outcome="rejected-token"')).toBe(1);
    expect(logged(stack, 'manifest.failed')[0]).toMatchObject({ because: 'rejected-token', level: 'warn' });

    // The delta is retried with the token, after longer each time; the manifest not before its time.
    for (let times = 0; times < 3; times += 1) await runNow(stack, app, 'delta');
    expect(await taskOf(sql, 'delta')).toMatchObject({ outcome: 'snapshot-expired', failures: 3 });
    expect((await taskOf(sql, 'delta')).waits).toBeCloseTo(240, 0);
    expect(logged(stack, 'delta.chain-broken')).toHaveLength(1);
    expect(sandbox.counts('delta')).toBe(asked.delta + 4);
    expect(sandbox.counts('manifest')).toBe(asked.manifest + 1);
    expect(sandbox.counts('file')).toBe(asked.file);
    expect(await contents(sql)).toEqual(before);

    sandbox.faults.clear();
    sandbox.world.step(10);
    sandbox.world.buildSnapshot();
    await runNow(stack, app, 'manifest');
    await stack.caughtUp();
    expect(await catalogState(sql)).toBe('ok');
  });

  test.each([
    ['0010', expired],
    ['a 400 without a code', { statusCode: 400, message: 'bad since' }],
  ])(
    'needs more than one %s for the newest token: the delta continues, and nothing is downloaded',
    async (_name, body) => {
      await using stack = await createStack({ sandbox: { skus: 60, seed: 304 } });
      const { sandbox, sql } = stack;
      const app = await stack.start();
      await stack.caughtUp();
      const files = sandbox.counts('file');
      sandbox.faults.add({ route: 'delta', times: 1, status: 400, body });
      await runNow(stack, app, 'delta');
      await eventually(async () =>
        expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: 'rejected-token', failures: 1 }),
      );
      expect((await taskOf(sql, 'delta')).waits).toBeCloseTo(60, 0);
      await runNow(stack, app, 'delta');
      expect(await catalogState(sql)).toBe('ok');
      await stack.caughtUp();
      expect((await readyz(app)).body).toMatchObject({ state: 'healthy' });
      expect(sandbox.counts('file')).toBe(files);
    },
  );

  test('that breaks again after each fresh manifest makes the mirror wait ever longer', async () => {
    await using stack = await createStack({ sandbox: { skus: 40, seed: 303 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    sandbox.faults.add({ route: 'delta', times: Infinity, status: 400, body: expired });
    const waits: number[] = [];
    for (let turn = 1; turn <= 4; turn += 1) {
      sandbox.world.step(3);
      sandbox.world.buildSnapshot();
      const files = sandbox.counts('file');
      if (turn === 1) await runNow(stack, app, 'delta');
      else await runNow(stack, app, 'manifest');
      await eventually(() =>
        expect(logged(stack, 'delta.chain-broken')).toHaveLength(turn === 1 ? 2 : turn + 1),
      );
      expect(sandbox.counts('file')).toBe(files + 1);
      const [row] = await sql<[{ waits: number }]>`
        select extract(epoch from next_at - clock_timestamp())::float8 as waits
        from catalog_internal.tasks where task = 'manifest'`;
      waits.push(Math.round(row.waits / 60));
    }
    expect(waits).toEqual([1, 2, 4, 8]);
  });
});
