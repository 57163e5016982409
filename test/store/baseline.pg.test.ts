import { describe, expect, test } from 'vitest';
import { BaselineSuperseded } from '../../src/store/catalog/baseline-merge.ts';
import { Baseline } from '../../src/store/catalog/baseline.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import { noteBrokenChain } from '../../src/store/catalog/tokens.ts';
import { baseline, GENERATED_AT, line, marks, skuRow, standing } from './manifest.ts';
import { everything, failing, knownSkus, ledger, mark, stateOf, useStore } from './support.ts';
import { watchNow } from './watching.ts';

const store = useStore();
const FILL = { added: 0, changed: 0, crossed: 0, absent: 0, marked: 0, skipped: 0 };

async function delta(differs: Partial<Parameters<typeof applyDelta>[1]>): Promise<void> {
  const [state] = await store.sql`select snapshot_id as since from catalog_internal.sync`;
  const since = state?.['since'] as string;
  const applied = await applyDelta(store.sql, {
    since,
    toSnapshot: 'd1',
    changed: [],
    removed: [],
    nowLive: [],
    ...differs,
  });
  expect(applied.applied).toBe(true);
}

describe('a first manifest', () => {
  test('fills the mirror: every line becomes a pending and due SKU, and the token is stored', async () => {
    const { applied, staged } = await baseline(store.url, [
      line('A'),
      line('B'),
      line('L', { priceSource: 'live' }),
    ]);
    expect(applied).toEqual({ ...FILL, added: 3, marked: 3 });
    expect(staged).toEqual({ skus: 3, duplicates: 0, live: 1, listedBefore: 0 });
    expect(await skuRow(store.sql, 'A')).toEqual({ source: 'snapshot', hash: 'h1', sizes: 3, listed: true });
    expect(await skuRow(store.sql, 'L')).toEqual({ source: 'live', hash: null, sizes: 3, listed: true });
    expect(await stateOf(store.sql, 'A')).toMatchObject({ state: 'pending' });
    const rows = [...(await ledger(store.sql)).values()].map(
      ({ sku, reason, live }) => `${sku} ${reason} ${live}`,
    );
    expect(rows).toEqual(['A new false', 'B new false', 'L new true']);
    expect(await readSyncState(store.sql)).toMatchObject({
      snapshotId: 'm1',
      snapshotGeneratedAt: GENERATED_AT,
      manifestLines: 3,
      livePricedSkuCount: 1,
    });
  });

  test('keeps every character of hostile SKUs and hashes, and the milliseconds of updated_at', async () => {
    const texts = [
      '\\',
      '\\N',
      '\\.',
      'a\tb',
      'a\nb',
      'a\r\nb',
      'a\rb',
      '"',
      "'",
      'NULL',
      '',
      ' ',
      '__proto__',
      '€😀',
      'x'.repeat(70_000).slice(0, 512),
    ];
    const lines = texts.filter((text) => text !== '').map((text) => line(text, { hash: text }));
    await baseline(store.url, [
      ...lines,
      line('empty', { hash: '' }),
      line('bare', { hash: null, sizes: null, updatedAt: null }),
    ]);
    const rows = await store.sql<{ sku: string; hash: string | null; at: Date | null }[]>`
      select sku, hash, updated_at as at from catalog.skus`;
    const wanted = new Map<string, string | null>([
      ...lines.map(({ sku }) => [sku, sku] as const),
      ['empty', ''],
      ['bare', null],
    ]);
    expect(new Map(rows.map(({ sku, hash }) => [sku, hash]))).toEqual(wanted);
    expect(rows.find(({ sku }) => sku === 'empty')?.at).toEqual(new Date('2026-11-20T10:00:00.123Z'));
    expect(rows.find(({ sku }) => sku === 'bare')?.at).toBeNull();
  });

  test('with many lines is staged in pieces without loss', async () => {
    const lines = Array.from({ length: 25_000 }, (_, i) => line(`SKU-${i}`, { hash: `h${i}` }));
    expect((await baseline(store.url, lines)).applied).toMatchObject({ added: 25_000, marked: 25_000 });
    const [count] = await store.sql`
      select count(*)::int as skus, count(distinct hash)::int as hashes, (select count(*)::int from catalog_internal.due) as due
      from catalog.skus`;
    expect(count).toEqual({ skus: 25_000, hashes: 25_000, due: 25_000 });
  });

  test('keeps the lines that are being stored while the next ones arrive', async () => {
    const run = await Baseline.open(store.url);
    try {
      // As the file gives them: a few hundred at a time, many times what is sent at once.
      for (let from = 0; from < 25_000; from += 500)
        await run.stage(
          Array.from({ length: 500 }, (_, i) => line(`SKU-${from + i}`)),
          [],
        );
      expect(await run.count()).toEqual({ skus: 25_000, duplicates: 0, live: 0, listedBefore: 0 });
    } finally {
      await run.close();
    }
  });
});

describe('before the merge', () => {
  test('a manifest is invisible, and closing it leaves the mirror as it was', async () => {
    await standing(store, line('A'));
    const before = await everything(store.sql);
    const run = await Baseline.open(store.url);
    await run.moment();
    await run.stage([line('A', { hash: 'h2' }), line('B')], ['C']);
    await run.count();
    expect(await everything(store.sql)).toEqual(before);
    await run.close();
    expect(await everything(store.sql)).toEqual(before);
  });

  test.each(['insert on catalog_internal.due', 'update on catalog_internal.sync', 'update on catalog.skus'])(
    'a manifest whose merge fails at %s leaves the mirror as it was',
    async (statement) => {
      await standing(store, line('A'), line('gone'));
      const before = await everything(store.sql);
      await using _ = await failing(store.sql, statement);
      await expect(baseline(store.url, [line('A', { hash: 'h2' }), line('B')])).rejects.toThrow(
        'made to fail',
      );
      expect(await everything(store.sql)).toEqual(before);
    },
  );

  test.each(['40001', '40P01'])(
    'a merge that is ended by a conflict (%s) is repeated from its start',
    async (sqlState) => {
      await standing(store, line('A'));
      await using _ = await failing(store.sql, 'update on catalog_internal.sync', { sqlState, times: 2 });
      expect((await baseline(store.url, [line('A'), line('B')])).applied).toMatchObject({
        added: 1,
        marked: 1,
      });
      expect(await marks(store.sql)).toEqual({ B: 'new' });
    },
  );
});

describe('during a manifest', () => {
  test('what deltas report after it was requested stays as they said', async () => {
    const { sql } = store;
    await standing(store, line('changed'), line('live'), line('removed'), line('other'));
    await baseline(
      store.url,
      [
        line('changed', { hash: 'h2' }),
        line('live', { hash: 'h2' }),
        line('removed', { hash: 'h2' }),
        line('other', { hash: 'h2' }),
      ],
      {
        meanwhile: () =>
          delta({ changed: ['changed', 'live', 'fresh'], nowLive: ['live'], removed: ['removed'] }),
      },
    );
    expect(await skuRow(store.sql, 'changed')).toMatchObject({ hash: null, source: 'snapshot' });
    expect(await skuRow(store.sql, 'live')).toMatchObject({ hash: null, source: 'live' });
    expect(await skuRow(store.sql, 'removed')).toMatchObject({ listed: false });
    expect(await stateOf(sql, 'removed')).toMatchObject({ state: 'removed' });
    expect(await skuRow(store.sql, 'fresh')).toMatchObject({ listed: true });
    expect(await skuRow(store.sql, 'other')).toMatchObject({ hash: 'h2' });
    expect(await marks(store.sql)).toEqual({
      changed: 'changed',
      live: 'changed',
      removed: 'removed',
      fresh: 'new',
      other: 'changed',
    });
  });

  test('a token that deltas moved is kept, because they are ahead of the manifest', async () => {
    await standing(store, line('A'));
    await baseline(store.url, [line('A')], { meanwhile: () => delta({ toSnapshot: 'd7' }) });
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotId: 'd7' });
    expect((await readSyncState(store.sql)).snapshotMovedAt).not.toBeNull();
  });

  test('a token that deltas moved and then found broken gives way to the manifest’s', async () => {
    await standing(store, line('A'));
    const meanwhile = async () => {
      await delta({ toSnapshot: 'd7' });
      await noteBrokenChain(store.sql, 'd7');
    };
    await baseline(store.url, [line('A')], { meanwhile });
    expect(await readSyncState(store.sql)).toMatchObject({
      snapshotId: 'm1',
      chainBrokenAt: null,
      rejectedSnapshotId: null,
    });
  });

  test('another replica’s baseline supersedes this one, which then changes nothing', async () => {
    await standing(store, line('A'));
    let before = {};
    const mine = baseline(store.url, [line('A', { hash: 'old' })], {
      beforeMerge: async () => {
        await baseline(store.url, [line('A', { hash: 'h5' })], { token: { snapshotId: 'm5' } });
        before = await everything(store.sql);
      },
    });
    await expect(mine).rejects.toThrow(BaselineSuperseded);
    expect(await everything(store.sql)).toEqual(before);
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotId: 'm5' });
  });

  test('a SKU that is watched between staging and merging is filled from its line', async () => {
    await knownSkus(store.sql, ['A']);
    await mark(store.sql, ['A'], 'new');
    await baseline(store.url, [line('A'), line('W', { priceSource: 'live' })], {
      beforeMerge: () => watchNow(store.sql, 'W'),
    });
    expect(await skuRow(store.sql, 'W')).toEqual({ source: 'live', hash: null, sizes: 3, listed: true });
    expect((await ledger(store.sql)).get('W')).toMatchObject({ live: true, lane: 1 });
  });
});
