import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { askedSince, catalogState, letAge, logged, metric, readyz, runNow, taskOf } from './harness.ts';

const HOUR = 3600;
const TWO_DAYS_MS = 48 * HOUR * 1000;

/** Makes the manifest route report each snapshot as built two days earlier than it was. */
function ageSnapshots({ sandbox }: Stack): void {
  sandbox.faults.add({
    route: 'manifest',
    times: Infinity,
    mutate: (body) => ({
      ...body,
      generated_at: new Date(Date.parse(String(body['generated_at'])) - TWO_DAYS_MS).toISOString(),
    }),
  });
}

describe('Catalog age.', () => {
  test('Catalog age. None before the first baseline: 0012 does not make it stale then, and readyz is 503', async () => {
    await using stack = await createStack({ sandbox: { skus: 40, seed: 201, initialSnapshot: false } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await eventually(async () =>
      expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: 'no-snapshot' }),
    );
    expect(await catalogState(sql)).toBe('none');
    expect(await readyz(app)).toMatchObject({
      status: 503,
      body: { reason: expect.stringMatching(/^no baseline yet/) as string },
    });
    expect(await metric(app, 'catalog_state', 'state="none"')).toBe(1);
    sandbox.world.buildSnapshot();
    await runNow(stack, app, 'manifest');
    await stack.caughtUp();
    expect(await catalogState(sql)).toBe('ok');
    expect((await readyz(app)).status).toBe(200);
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test.each(['0012', '0014'] as const)(
    'Catalog age. Stale on %s after a baseline: prices are refreshed by age until the catalog is back',
    async (code) => {
      await using stack = await createStack({ sandbox: { skus: 150, seed: 202, liveShare: 0.04 } });
      const { sandbox, sql } = stack;
      const { world } = sandbox;
      const app = await stack.start();
      await stack.caughtUp();
      const [moved] = [...world.truth().values()].filter(
        (row) => row.priceSource === 'snapshot' && Object.keys(row.sizeMap).length > 0,
      );
      if (code === '0012') world.dropSnapshots();
      else world.stopBuilder();
      await runNow(stack, app, code === '0012' ? 'catalog-check' : 'delta');
      expect(await catalogState(sql)).toBe('stale');
      expect(String((await readyz(app)).body['degraded'])).toContain('the catalog is stale');
      expect((await runProgram(['status'], stack.env)).stdout).toContain(
        `stale (the catalog routes return ${code})`,
      );

      // No snapshot will ever report this move: only a refresh by age can find it.
      world.setPrice(moved?.sku ?? '', Object.keys(moved?.sizeMap ?? {})[0] ?? '', 424_242);
      const asked = sandbox.requests.length;
      await letAge(sql, 600);
      await eventually(async () => {
        const looked = new Set(askedSince(stack, asked).flat());
        const [known] = await sql<[{ n: number }]>`select count(*)::int as n from catalog.skus`;
        expect(looked.size).toBe(known.n);
      });
      await eventually(async () => {
        const [row] = await sql<
          [{ n: number }]
        >`select count(*)::int as n from catalog.prices where price = 424242`;
        expect(row.n).toBe(1);
      });

      world.startBuilder();
      world.buildSnapshot();
      await runNow(stack, app, code === '0012' ? 'catalog-check' : 'delta');
      await runNow(stack, app, 'delta');
      await stack.caughtUp();
      expect(await catalogState(sql)).toBe('ok');
      await expectMirrorIsTrue(sql, world);
    },
  );

  test.each([
    ['answers 500', { status: 500, body: { errorMessage: 'Internal Server Error' } }],
    ['cannot be read', { mutate: () => ({ snapshots: 'elsewhere' }) }],
    ['names more pages than are read', { mutate: (body: object) => ({ ...body, nextCursor: 'x' }) }],
  ])(
    'Catalog age. Stale if the delta %s for two polls: age and manifest take over until a delta is read',
    async (_, fault) => {
      await using stack = await createStack({ sandbox: { skus: 150, seed: 207, liveShare: 0.04 } });
      const { sandbox, sql } = stack;
      const { world } = sandbox;
      const app = await stack.start();
      await stack.caughtUp();
      sandbox.faults.add({ route: 'delta', times: Infinity, ...fault });
      world.add('known to the manifest alone');
      world.buildSnapshot();
      await runNow(stack, app, 'delta');
      expect(await catalogState(sql)).toBe('ok');
      await sql`update catalog_internal.sync set delta_checked_at = now() - interval '121 minutes'`;
      await letAge(sql, 3600);
      const asked = sandbox.requests.length;
      expect(await catalogState(sql)).toBe('stale');
      const degraded = String((await readyz(app)).body['degraded']);
      expect(degraded).toMatch(/the delta was last checked 2\.0h ago .* prices refreshed by age/);
      expect(degraded).not.toContain('the catalog is stale');
      await eventually(async () => {
        const [known] = await sql<[{ n: number }]>`select count(*)::int as n from catalog.skus`;
        expect(new Set(askedSince(stack, asked).flat()).size).toBe(known.n);
      });
      const [{ doubted }] = await sql<[{ doubted: number }]>`
      select count(*)::int as doubted from catalog.sku_trust where doubt in ('delta_late', 'catalog_stale')`;
      expect(doubted).toBe(0);

      // The manifest of the snapshot that the delta does not report, once.
      await runNow(stack, app, 'catalog-check');
      await eventually(async () =>
        expect(
          await sql`select from catalog.prices where sku = 'known to the manifest alone'`,
        ).not.toHaveLength(0),
      );
      const files = sandbox.counts('file');
      await runNow(stack, app, 'catalog-check');
      await runNow(stack, app, 'catalog-check');
      expect(sandbox.counts('file')).toBe(files);

      sandbox.faults.clear();
      await runNow(stack, app, 'delta');
      expect(await catalogState(sql)).toBe('ok');
      expect((await readyz(app)).body['degraded']).toEqual([]);
      await stack.caughtUp();
      await expectMirrorIsTrue(sql, world);
    },
  );

  test('Catalog age. While it is ok, SKUs that are not due by age are left alone', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 203, liveShare: 0 } });
    const app = await stack.start();
    await stack.caughtUp();
    const asked = stack.sandbox.requests.length;
    await letAge(stack.sql, 600);
    const jobs = () => metric(app, 'jobs_total', 'queue="reprice",outcome="idle"');
    const before = (await jobs()) ?? 0;
    await eventually(async () => expect(await jobs()).toBeGreaterThan(before + 1));
    expect(askedSince(stack, asked)).toEqual([]);
  });

  test('Catalog age. While stale, every SKU is re-priced, oldest first', async () => {
    await using stack = await createStack({
      sandbox: { skus: 200, seed: 204, liveShare: 0, ghostShare: 0, unlistedShare: 0 },
      env: { BULK_MAX_SKUS: '10' },
    });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    await letAge(sql, 600);
    await sql`
      update catalog_internal.due d set due_at = due_at + make_interval(secs => r.n)
      from (select sku, row_number() over (order by md5(sku)) as n from catalog_internal.due) r where d.sku = r.sku`;
    const byAge = await sql<{ sku: string }[]>`select sku from catalog_internal.due order by due_at`;
    const place = new Map(byAge.map(({ sku }, i) => [sku, i]));
    const asked = sandbox.requests.length;
    sandbox.world.stopBuilder();
    await runNow(stack, app, 'delta');
    await eventually(() => expect(askedSince(stack, asked)).toHaveLength(20));
    // They are planned in order; concurrent calls may arrive a few places early or late.
    for (const [call, skus] of askedSince(stack, asked).entries())
      for (const sku of skus)
        expect(Math.abs(Math.floor((place.get(sku) ?? 0) / 10) - call)).toBeLessThanOrEqual(4);
  });

  test('Catalog age. An old snapshot is stale; a moving to_snapshot proves freshness until the next check', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 205 } });
    const { sandbox, sql } = stack;
    ageSnapshots(stack);
    const app = await stack.start();
    await stack.caughtUp();
    expect(await catalogState(sql)).toBe('stale');
    sandbox.world.step(5);
    sandbox.world.buildSnapshot();
    await runNow(stack, app, 'delta');
    expect(await catalogState(sql)).toBe('ok');
    await runNow(stack, app, 'catalog-check');
    expect(await catalogState(sql)).toBe('stale');
    sandbox.faults.clear();
    await runNow(stack, app, 'catalog-check');
    // It is another build of the mirror's own snapshot, so it is downloaded first.
    await eventually(async () => expect(await catalogState(sql)).toBe('ok'));
    const [status] = await sql`select snapshot_generated_at from catalog.sync_status`;
    expect(Date.now() - Number(status?.['snapshot_generated_at'])).toBeLessThan(HOUR * 1000);
  });

  test('Catalog age. A check costs one request and no download', async () => {
    await using stack = await createStack({ sandbox: { skus: 40, seed: 206 } });
    const { sandbox } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const before = { file: sandbox.counts('file'), manifest: sandbox.counts('manifest') };
    await runNow(stack, app, 'catalog-check');
    expect(sandbox.counts('file')).toBe(before.file);
    expect(sandbox.counts('manifest')).toBe(before.manifest + 1);
    expect(logged(stack, 'catalog-check.done').length).toBeGreaterThan(0);
  });
});
