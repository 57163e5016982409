import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { Fault } from '../../src/sandbox/index.ts';
import { refreshManifest } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';
import {
  bendLines,
  catalogState,
  contents,
  logged,
  metric,
  readyz,
  runNow,
  taskOf,
  token,
} from './harness.ts';

type Bend = (body: Buffer) => Buffer;

/** Cuts the text at a line's end and compresses it again: the decompressor sees an intact, shorter file. */
const cutBetweenMembers: Bend = (body) => {
  const text = gunzipSync(body);
  const half = text.indexOf(0x0a, text.length / 2) + 1;
  return gzipSync(text.subarray(0, half));
};

const broken = (count: number) => bendLines((lines) => lines.map((l, i) => (i < count ? l.slice(0, -9) : l)));

const BAD_FILES: readonly (readonly [string, string, Omit<Fault, 'route'>])[] = [
  ['cut at the end of a gzip member', 'line-count-mismatch', { file: cutBetweenMembers }],
  ['that ends in the middle of its gzip', 'file-corrupt', { truncateAt: 700, clean: true }],
  ['whose connection breaks off', 'file-corrupt', { truncateAt: 700 }],
  ['that is not gzip and no lines', 'line-count-mismatch', { body: '<html>maintenance</html>' }],
  ['that is empty', 'line-count-mismatch', { file: () => Buffer.alloc(0) }],
  ['with a line too many', 'line-count-mismatch', { file: bendLines((l) => [...l, l[0] ?? '']) }],
  ['with 11 unreadable lines', 'too-many-rejected-lines', { file: broken(11) }],
  ['that the origin does not hand out', 'file-fault', { status: 404 }],
  [
    'behind a redirect',
    'file-fault',
    { status: 302, body: '', headers: { Location: 'http://127.0.0.1:1/' } },
  ],
  [
    'of one line of 70 kB after another',
    'too-many-rejected-lines',
    { file: bendLines((l) => l.map(() => 'x'.repeat(70_000))) },
  ],
];

/** Fills a mirror, and then moves the market without a delta that reports it. */
async function filled(stack: Stack) {
  const app = await stack.start();
  await stack.caughtUp();
  stack.sandbox.world.step(20);
  stack.sandbox.world.buildSnapshot();
  return app;
}

describe('a manifest is applied completely or not at all', () => {
  // One daemon gets them all, one after the other, so that anything a refusal left behind would show in the next.
  test('every bad file leaves mirror and token unchanged, with its reason in log, status and metrics', async () => {
    await using stack = await createStack({ sandbox: { skus: 300, seed: 601 } });
    const { sandbox, sql } = stack;
    const app = await filled(stack);
    const before = { contents: await contents(sql), token: await token(sql) };
    const metricBefore = (await metric(app, 'manifest_lines_total', 'outcome="applied"')) ?? 0;
    const told = new Set<string>();
    for (const [name, because, fault] of BAD_FILES) {
      const failedBefore = logged(stack, 'manifest.failed').length;
      const countBefore = (await metric(app, 'syncs_total', `kind="manifest",outcome="${because}"`)) ?? 0;
      sandbox.faults.add({ route: 'file', ...fault });
      await runNow(stack, app, 'manifest');
      const lines = logged(stack, 'manifest.failed').slice(failedBefore);
      expect({ name, because: lines.map((l) => l['because']) }).toEqual({ name, because: [because] });
      if (!because.startsWith('file-')) expect(lines[0]?.['problem']).toMatch(/^\d+ .*\d/);
      // A reason that was logged before is logged at debug.
      const level = told.has(because) ? 'debug' : 'warn';
      told.add(because);
      expect(lines[0]).toMatchObject({ level, hint: expect.stringMatching(/\w/) as unknown });
      expect(await metric(app, 'syncs_total', `kind="manifest",outcome="${because}"`)).toBe(countBefore + 1);
      expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: because });
      expect({ name, contents: await contents(sql), token: await token(sql) }).toEqual({ name, ...before });
    }
    expect(await metric(app, 'manifest_lines_total', 'outcome="applied"')).toBe(metricBefore);
    // With the correct file, the next attempt succeeds and resets the failures.
    await runNow(stack, app, 'manifest');
    await stack.caughtUp();
    expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: 'done', failures: 0 });
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('a manifest with far fewer SKUs is refused until `refresh --manifest --accept-shrink` confirms it, once', async () => {
    await using stack = await createStack({ sandbox: { skus: 100, seed: 602, noopShare: 0 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const { world } = sandbox;
    for (const { sku } of [...world.truth().values()].slice(0, 60)) world.remove(sku, { priceable: true });
    world.buildSnapshot();
    const before = { contents: await contents(sql), token: await token(sql) };
    for (let tries = 1; tries <= 2; tries += 1) {
      await runNow(stack, app, 'manifest');
      expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: 'shrunk', failures: tries });
      expect({ contents: await contents(sql), token: await token(sql) }).toEqual(before);
    }
    expect(String((await readyz(app)).body['degraded'])).toContain('refused: shrunk');
    const screen = await runProgram(['status'], stack.env);
    expect(screen.stdout).toContain('the newest manifest was refused: shrunk');
    expect(logged(stack, 'manifest.failed')[0]?.['hint']).toContain('refresh --manifest --accept-shrink');

    const tries = async () => (await taskOf(sql, 'manifest'))['failures'];
    expect((await runProgram(['refresh', '--manifest'], stack.env)).stdout).toBe(
      'a new manifest is requested',
    );
    await eventually(async () => expect(await tries()).toBe(1), { what: 'a refusal anew' });
    expect({ contents: await contents(sql), token: await token(sql) }).toEqual(before);
    expect((await runProgram(['refresh', '--accept-shrink'], stack.env)).code).toBe(78);

    expect((await runProgram(['refresh', '--manifest', '--accept-shrink'], stack.env)).code).toBe(0);
    await stack.caughtUp();
    const [listed] = await sql`select count(*) filter (where in_manifest)::int as n from catalog.skus`;
    expect(listed?.['n']).toBeLessThan(50);
    expect((await readyz(app)).body['degraded']).toEqual([]);
    await expectMirrorIsTrue(sql, world);
    const [flag] = await sql`select shrink_confirmed from catalog_internal.sync`;
    expect(flag).toEqual({ shrink_confirmed: false });
  });

  test("a manifest older than the mirror's snapshot is refused without a download", async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 603 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const before = { contents: await contents(sql), token: await token(sql) };
    const files = sandbox.counts('file');
    sandbox.faults.add({
      route: 'manifest',
      mutate: (body) => ({
        ...body,
        generated_at: new Date(Date.parse(String(body['generated_at'])) - 3_600_000).toISOString(),
      }),
    });
    await runNow(stack, app, 'manifest');
    expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: 'older-snapshot', failures: 1 });
    expect(sandbox.counts('file')).toBe(files);
    expect(await metric(app, 'syncs_total', 'kind="manifest",outcome="older-snapshot"')).toBe(1);
    expect({ contents: await contents(sql), token: await token(sql) }).toEqual(before);
    expect(await catalogState(sql)).toBe('ok');
  });

  test('a 403 of the presigned URL requests the manifest again, at most three times, without a back-off', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 604 } });
    const { sandbox, sql } = stack;
    const app = await filled(stack);
    const start = { manifest: sandbox.counts('manifest'), file: sandbox.counts('file') };
    sandbox.faults.add({ route: 'file', status: 403 });
    await runNow(stack, app, 'manifest');
    expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: 'done', failures: 0 });
    expect(sandbox.counts('manifest')).toBe(start.manifest + 2);
    expect(sandbox.counts('file')).toBe(start.file + 2);

    await stack.caughtUp();
    const before = await contents(sql);
    sandbox.faults.add({ route: 'file', status: 403, times: Infinity });
    await runNow(stack, app, 'manifest');
    expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: 'url-expired', failures: 1 });
    expect(sandbox.counts('manifest')).toBe(start.manifest + 5);
    expect(sandbox.counts('file')).toBe(start.file + 5);
    expect(logged(stack, 'pace.silenced')).toEqual([]);
    expect(await contents(sql)).toEqual(before);
  });

  test('a download that a stop interrupts leaves nothing half done, and the next daemon starts it again', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 605 } });
    const { sandbox, sql } = stack;
    const app = await filled(stack);
    const before = await contents(sql);
    sandbox.faults.add({ route: 'file', hang: true });
    await sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
    const files = sandbox.counts('file');
    await app.wake('manifest');
    await eventually(() => expect(sandbox.counts('file')).toBe(files + 1));
    expect(await contents(sql)).toEqual(before);
    // Stopped in the middle: nothing is half done, and the next daemon starts again at once.
    await app.stop();
    expect(await contents(sql)).toEqual(before);
    await stack.start();
    await stack.caughtUp();
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('a manifest requested while nothing moved marks no SKU and writes no row: live hashes are not compared', async () => {
    await using stack = await createStack({ sandbox: { skus: 100, seed: 606, liveShare: 0.2 } });
    const { sandbox, sql } = stack;
    await stack.start();
    await stack.caughtUp();
    const before = await contents(sql);
    const bulks = sandbox.counts('bulk');
    await refreshManifest(sql);
    await eventually(() => expect(logged(stack, 'manifest.done')).toHaveLength(2));
    expect(logged(stack, 'manifest.done')[1]).toMatchObject({
      added: 0,
      changed: 0,
      crossed: 0,
      absent: 0,
      marked: 0,
    });
    await stack.caughtUp();
    expect(await contents(sql)).toEqual(before);
    expect(sandbox.counts('bulk')).toBe(bulks);
  });
});
