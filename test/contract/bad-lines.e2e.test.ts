import { describe, expect, test } from 'vitest';
import type { Sql } from '../../src/store/connection/db.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack } from '../support/stack.ts';
import { askedSince, bendLines, logged, metric, runNow, skuOfLine, taskOf } from './harness.ts';

async function rowsOf(sql: Sql, skus: readonly string[]): Promise<Record<string, unknown>[]> {
  return await sql<
    Record<string, unknown>[]
  >`select * from catalog.skus where sku = any(${skus as string[]}) order by sku`;
}

describe('Bad lines.', () => {
  test('Bad lines. An unreadable line is rejected, counted by reason and sampled, and its SKU is asked for', async () => {
    await using stack = await createStack({ sandbox: { skus: 80, seed: 701, noopShare: 0, liveShare: 0 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const bent: string[] = [];
    const bends: ((line: string) => string)[] = [
      (line) => line.replace('"snapshot"', '"auction"'),
      (line) => line.replace(/"hash":"[^"]*"/, '"hash":null'),
      (line) => line.replace(/"sizes":\d+/, '"sizes":"many"'),
      (line) => line.replace(/"updated_at":"[^"]*"/, '"updated_at":"yesterday"'),
      (line) => line.slice(0, -1),
      () => '["not", "an", "object"]',
    ];
    sandbox.faults.add({
      route: 'file',
      file: bendLines((lines) =>
        lines.map((line, i) => {
          const bend = bends[i - 20];
          if (bend === undefined) return line;
          bent.push(skuOfLine(line));
          return bend(line);
        }),
      ),
    });
    const before = await sql`select * from catalog.skus order by sku`;
    const from = sandbox.requests.length;
    await runNow(stack, app, 'manifest');
    expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: 'done' });
    await stack.caughtUp();
    const reasons = [
      'unknown-price-source',
      'bad-hash',
      'bad-sizes',
      'bad-updated-at',
      'not-json',
      'not-an-object',
    ];
    for (const reason of reasons)
      expect(await metric(app, 'manifest_rejected_lines_total', `reason="${reason}"`)).toBe(1);
    expect(await metric(app, 'manifest_lines_total', 'outcome="rejected"')).toBe(6);
    expect(logged(stack, 'manifest.rejected-lines')).toHaveLength(1);
    const samples =
      await sql`select reason, sku, length(sample) > 0 as kept from catalog_internal.quarantine order by id`;
    expect([...samples]).toEqual(
      reasons.map((reason, i) => ({ reason, sku: i < 5 ? bent[i] : null, kept: true })),
    );
    // Five SKUs could be read from their bad lines and stay listed; the sixth could not, so it is absent. All six
    // are asked for once.
    const readable = bent.slice(0, 5);
    const listing = ({ sku, hash, price_source, in_manifest }: Record<string, unknown>) => ({
      sku,
      hash,
      price_source,
      in_manifest,
    });
    expect((await rowsOf(sql, readable)).map(listing)).toEqual(
      before.filter(({ sku }) => readable.includes(sku as string)).map(listing),
    );
    expect(askedSince(stack, from).flat().toSorted()).toEqual(bent.toSorted());
    await runNow(stack, app, 'manifest');
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('Bad lines. Ten are tolerated in a small file; the eleventh makes it refused', async () => {
    await using stack = await createStack({ sandbox: { skus: 100, seed: 702 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    for (const [count, outcome] of [
      [11, 'too-many-rejected-lines'],
      [10, 'done'],
    ] as const) {
      sandbox.faults.add({ route: 'file', file: bendLines((l) => l.map((x, i) => (i < count ? '{' : x))) });
      await runNow(stack, app, 'manifest');
      expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome });
    }
  });

  test('Bad lines. A duplicate SKU is one SKU, due, and counted', async () => {
    await using stack = await createStack({ sandbox: { skus: 80, seed: 703, liveShare: 0 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const doubled: string[] = [];
    // The file keeps its number of lines, so one SKU replaces another.
    sandbox.faults.add({
      route: 'file',
      file: bendLines((lines) => {
        doubled.push(skuOfLine(lines[30] ?? ''), skuOfLine(lines[31] ?? ''));
        return lines.with(31, lines[30] ?? '');
      }),
    });
    const from = sandbox.requests.length;
    await runNow(stack, app, 'manifest');
    await stack.caughtUp();
    expect(logged(stack, 'manifest.done').at(-1)).toMatchObject({ duplicates: 1, lines: 80, absent: 1 });
    await eventually(() => expect(askedSince(stack, from).flat().toSorted()).toEqual(doubled.toSorted()));
    const [row] = await sql`select count(*)::int as n from catalog.skus where sku = ${doubled[0] ?? ''}`;
    expect(row).toEqual({ n: 1 });
  });
});

describe('Files origin.', () => {
  test.each(['content', 'encoding', 'both'] as const)(
    'Files origin. The object may be gzipped by %s, and is fetched without the credential',
    async (gzipFile) => {
      await using stack = await createStack({ sandbox: { skus: 60, seed: 704, dialect: { gzipFile } } });
      await stack.once();
      await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
      const fetched = stack.sandbox.requests.filter(({ route }) => route === 'file');
      expect(fetched.map(({ authorization, apiKey }) => ({ authorization, apiKey }))).toEqual([
        { authorization: false, apiKey: false },
      ]);
    },
  );

  test('Files origin. Only https, or loopback if the base URL is, is connected to', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 705 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const files = sandbox.counts('file');
    for (const url of [
      'http://files.example.com/m.gz?sig=confidential-signature',
      'https://169.254.169.254/m.gz?sig=confidential-signature',
      'https://10.0.0.1/m.gz?sig=confidential-signature',
      'https://user:pass@files.example.com/m.gz?sig=confidential-signature',
    ]) {
      sandbox.faults.add({ route: 'manifest', mutate: (body) => ({ ...body, url }) });
      await runNow(stack, app, 'manifest');
      expect({ url, ...(await taskOf(sql, 'manifest')) }).toMatchObject({ url, outcome: 'url-refused' });
    }
    expect(sandbox.counts('file')).toBe(files);
    expect(JSON.stringify(stack.logs)).not.toContain('confidential-signature');
    expect(await metric(app, 'syncs_total', 'kind="manifest",outcome="url-refused"')).toBe(4);
  });
});
