import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import { baseline, line } from './manifest.ts';
import { found, look, removeByDelta, useStore } from './support.ts';

const store = useStore();
const page = readFileSync(new URL('../../docs/queries.md', import.meta.url), 'utf8');

const blocks = [...page.matchAll(/^#+ (.*)\n(?:(?!^#)[\s\S])*?^```sql\n([\s\S]*?)^```$/gm)].map(
  ([, question = '', statements = '']) => ({ question, statements }),
);

/** A mirror in which everything that is asked for has happened. */
beforeEach(async () => {
  const skus = ['DD1391-100', 'FV5029-141', 'GONE-1'];
  await baseline(
    store.url,
    skus.map((sku) => line(sku)),
    { token: { snapshotId: 'm0', generatedAt: new Date() } },
  );
  const record = (sku: string, nine: number, sizeMapSizeType = 'US') =>
    found(sku, { 8: 5100, 9: nine }, { brand: 'Nike', model: 'Dunk', name: sku, sizeMapSizeType });
  await look(store.sql, ...skus.map((sku) => record(sku, 5000)));
  await look(store.sql, record('DD1391-100', 4800), record('FV5029-141', 5000, 'EU'));
  await removeByDelta(store.sql, 'GONE-1');
});

describe('the page of questions', () => {
  test('has its statements', () => expect(blocks.length).toBeGreaterThan(12));

  test.each(blocks)('$question', async ({ question, statements }) => {
    const undo = new Error('undone');
    const attempt = store.sql.begin(async (tx) => {
      await tx.unsafe(
        `set local role ${question.includes('watchlist') ? 'catalog_watcher' : 'catalog_reader'}`,
      );
      const results = (await tx.unsafe(statements)) as unknown as { command?: string; count: number }[];
      const each = Array.isArray(results[0]) ? results : [results as unknown as (typeof results)[0]];
      expect(each.map((result) => result?.count)).not.toContain(question.includes('watchlist') ? null : 0);
      throw undo;
    });
    await expect(attempt).rejects.toBe(undo);
  });
});
