import { describe, expect, test } from 'vitest';
import { noteSnapshotSeen, readSyncState } from '../../src/store/catalog/sync-state.ts';
import { judgeOffer } from '../../src/sync/manifest-decision.ts';
import { baseline, line } from '../store/manifest.ts';
import { knownSkus, useStore } from '../store/support.ts';
import { built, isDue, SKUS, useFollowed } from './followed.ts';

const store = useStore();
const { partner, run, rest, minutesLater, found } = useFollowed(store);

const WELL = {
  doubt: null,
  price: null,
  asked: false,
  silent: false,
  behind: false,
  still: false,
  catalogDifference: null,
  catalogState: 'ok',
  deltaLate: false,
  said: [],
};
/** A mirror whose snapshot prices are not fresh, whatever the delta says, and that has requested a manifest. */
const DOUBTED = { price: 'delta_late', asked: true, silent: true, catalogState: 'stale', deltaLate: true };
const BEHIND = { ...WELL, ...DOUBTED, doubt: 'behind', behind: true, said: ['delta.behind'] };

const S12 = { snapshotId: 's12', generatedAt: built(12) };

describe('if the delta reports nothing new while the manifest route names a newer snapshot,', () => {
  test('it is behind once that lasts longer than a delta may take, and prices no longer count as fresh', async () => {
    partner.named = { ...partner.named, ...S12 };
    expect(await run('catalog-check')).toBe(30);
    // A poll follows at once: the snapshot may just have been built.
    expect(await found()).toEqual({ ...WELL, doubt: 'suspected' });
    expect(await isDue(store.sql, 'delta')).toBe(true);
    await minutesLater(29);
    await run('catalog-check');
    expect(await found()).toEqual({ ...WELL, doubt: 'suspected' });
    await minutesLater(2);
    await run('catalog-check');
    expect(await found()).toEqual(BEHIND);
    // It is reported once, but the manifest is requested each time.
    await rest();
    await run('catalog-check');
    expect(await found()).toEqual(BEHIND);
  });

  test('it is not behind if the next poll or the one after leads to that snapshot', async () => {
    partner.named = { ...partner.named, ...S12 };
    await run('catalog-check');
    await run('delta');
    expect(await found()).toEqual({ ...WELL, doubt: 'suspected' });
    partner.answers = (since) => (since === 's6' ? { toSnapshot: 's12' } : {});
    await run('delta');
    expect(await found()).toEqual(WELL);
    await minutesLater(60);
    expect(await run('catalog-check')).toBe(60);
    expect(await found()).toEqual(WELL);
  });

  test('it is not behind if it goes past that snapshot, to one built since', async () => {
    partner.named = { ...partner.named, ...S12 };
    await run('catalog-check');
    partner.answers = (since) => (since === 's6' ? { toSnapshot: 's18' } : {});
    await minutesLater(40);
    await run('catalog-check');
    expect(await found()).toEqual(WELL);
  });

  test('there is no alarm if the manifest route lags behind the delta, however long', async () => {
    partner.answers = (since) => (since === 's6' ? { toSnapshot: 's12' } : {});
    await run('delta');
    for (const snapshotId of ['s6', 's6', 's9']) {
      partner.named = { ...partner.named, snapshotId, generatedAt: built(snapshotId === 's9' ? 9 : 6) };
      await run('catalog-check');
      expect(await found()).toEqual(WELL);
      await minutesLater(60);
    }
  });

  test('it is behind, too, if it moves but always to a snapshot older than the named one', async () => {
    for (const [snapshotId, hour] of [
      ['s9', 9],
      ['s12', 12],
    ] as const) {
      partner.named = { ...partner.named, snapshotId, generatedAt: built(hour) };
      await run('catalog-check');
    }
    partner.answers = (since) => (since === 's6' ? { toSnapshot: 's9' } : {});
    await minutesLater(31);
    await run('catalog-check');
    expect(await found()).toEqual(BEHIND);
  });

  test('as soon as it leads on, a check follows whether that is where the catalog is', async () => {
    partner.named = { ...partner.named, ...S12 };
    await run('catalog-check');
    await minutesLater(31);
    await run('catalog-check');
    partner.answers = (since) => (since === 's6' ? { toSnapshot: 's18' } : {});
    await run('delta');
    expect(await isDue(store.sql, 'catalog-check')).toBe(true);
    partner.named = { ...partner.named, snapshotId: 's18', generatedAt: built(18) };
    await run('catalog-check');
    expect(await found()).toEqual({ ...WELL, asked: true, said: ['delta.behind'] });
  });

  test('a manifest ends the doubt, but until the delta moves by itself, a newer snapshot is reported soon', async () => {
    partner.named = { ...partner.named, ...S12 };
    await run('catalog-check');
    await minutesLater(31);
    await run('catalog-check');
    await baseline(
      store.url,
      SKUS.map((sku) => line(sku)),
      { token: { snapshotId: 's12', generatedAt: built(12), lines: 20 } },
    );
    await rest();
    partner.events = [];
    expect(await run('catalog-check')).toBe(5);
    expect(await found()).toEqual({ ...WELL, doubt: 'distrusted' });
    partner.named = { ...partner.named, snapshotId: 's18', generatedAt: built(18) };
    expect(await run('catalog-check')).toBe(5);
    expect(await isDue(store.sql, 'delta')).toBe(true);
    expect(await found()).toEqual({ ...WELL, doubt: 'distrusted' });
    await run('delta');
    await run('catalog-check');
    expect(await found()).toEqual({ ...BEHIND, still: true });
    await baseline(
      store.url,
      SKUS.map((sku) => line(sku)),
      { token: { snapshotId: 's18', generatedAt: built(18), lines: 20 } },
    );
    await rest();
    partner.events = [];
    expect(await found()).toEqual({ ...WELL, doubt: 'distrusted', still: true });
    partner.answers = (since) => (since === 's18' ? { toSnapshot: 's24' } : {});
    await run('delta');
    expect(await found()).toEqual(WELL);
  });

  test('an old cached answer of the manifest route does not count as a check', async () => {
    partner.named = { ...partner.named, ...S12, isOld: true };
    expect(await run('catalog-check')).toBe(1);
    const [task] =
      await store.sql`select outcome, failures from catalog_internal.tasks where task = 'catalog-check'`;
    expect(task).toEqual({ outcome: 'cached-answer', failures: 1 });
    expect(await found()).toEqual(WELL);
  });
});

describe("the manifest route says of the mirror's own snapshot", () => {
  const differing = (catalogDifference: object) => ({
    ...WELL,
    ...DOUBTED,
    catalogDifference,
    said: ['catalog-check.differs'],
  });

  test.each([
    ['more SKUs', { skuCount: 30 }, { listed: 10, live: 0 }],
    ['fewer SKUs', { skuCount: 10 }, { listed: -10, live: 0 }],
    ['more live SKUs', { livePricedSkuCount: 10 }, { listed: 0, live: 10 }],
    ['a later build', { generatedAt: built(7) }, { rebuilt: true }],
  ])('%s: a delta was lost, and a manifest is requested', async (_, differs, difference) => {
    partner.named = { ...partner.named, ...differs };
    expect(await run('catalog-check')).toBe(60);
    expect(await found()).toEqual(differing(difference));
    await rest();
    await run('catalog-check');
    expect(await found()).toEqual(differing(difference));
  });

  test.each([
    ['what it has', {}],
    ['next to nothing else', { skuCount: 25, livePricedSkuCount: 5 }],
    ['no counts', { skuCount: null, livePricedSkuCount: null }],
    ['an earlier build', { generatedAt: built(5), skuCount: 30 }],
  ])('%s: nothing follows', async (_, differs) => {
    partner.named = { ...partner.named, ...differs };
    await run('catalog-check');
    expect(await found()).toEqual(WELL);
  });

  test('the same counts, beside live SKUs that nobody lists: nothing follows', async () => {
    await knownSkus(
      store.sql,
      Array.from({ length: 10 }, (_, n) => `L${n}`),
      { priceSource: 'live' },
    );
    await knownSkus(
      store.sql,
      Array.from({ length: 10 }, (_, n) => `U${n}`),
      { priceSource: 'live', listed: false },
    );
    partner.named = { ...partner.named, skuCount: 30, livePricedSkuCount: 10 };
    await run('catalog-check');
    expect(await found()).toEqual(WELL);
  });

  test.each([
    ['runs', { outcome: 'done', running: true }],
    ['broke off', { outcome: 'internal', running: false }],
  ])('other counts while a delta %s, which may be partly applied: nothing follows', async (_, delta) => {
    await store.sql`
      update catalog_internal.tasks set outcome = ${delta.outcome}, running_until = case when ${delta.running} then now() end
      where task = 'delta'`;
    partner.named = { ...partner.named, skuCount: 30 };
    await run('catalog-check');
    expect(await found()).toEqual(WELL);
  });

  test('the right counts again: the difference is over', async () => {
    partner.named = { ...partner.named, skuCount: 30 };
    await run('catalog-check');
    await knownSkus(
      store.sql,
      Array.from({ length: 10 }, (_, n) => `B${n}`),
    );
    await run('catalog-check');
    expect(await found()).toMatchObject({ catalogDifference: null, deltaLate: false });
  });

  test('a later build, then its own: two servers date it differently, and the difference is over', async () => {
    const named = { ...partner.named };
    partner.named = { ...named, generatedAt: built(7) };
    await run('catalog-check');
    await run('catalog-check');
    expect(await found()).toEqual(differing({ rebuilt: true }));
    const offered = judgeOffer({ snapshotId: 's6', generatedAt: built(6) }, await readSyncState(store.sql));
    expect(offered).toBeNull();
    partner.named = { ...named, generatedAt: null };
    await run('catalog-check');
    expect(await found()).toEqual(differing({ rebuilt: true }));
    partner.named = { ...named, generatedAt: built(6) };
    await run('catalog-check');
    expect(await found()).toMatchObject({ catalogDifference: null, catalogState: 'ok', deltaLate: false });
  });

  test('an earlier build than its manifest’s: that is older, and the difference stays', async () => {
    const lines = SKUS.map((sku) => line(sku));
    await baseline(store.url, lines, { token: { snapshotId: 's6', generatedAt: built(7), lines: 20 } });
    await run('delta');
    await rest();
    const named = { ...partner.named };
    partner.named = { ...named, generatedAt: built(8) };
    await run('catalog-check');
    partner.named = { ...named, generatedAt: built(6) };
    await run('catalog-check');
    expect((await found()).catalogDifference).toEqual({ rebuilt: true });
    const offered = judgeOffer({ snapshotId: 's6', generatedAt: built(6) }, await readSyncState(store.sql));
    expect(offered).toBe('older-snapshot');
  });

  test('its build time, for the first time since the delta led to it: it is stored', async () => {
    partner.answers = (since) => (since === 's6' ? { toSnapshot: 's12' } : {});
    await run('delta');
    partner.named = { ...partner.named, ...S12 };
    await run('catalog-check');
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotGeneratedAt: built(12) });
  });

  test('its build time, first with a manifest that is then refused: it is stored, too', async () => {
    partner.answers = (since) => (since === 's6' ? { toSnapshot: 's12' } : {});
    await run('delta');
    await noteSnapshotSeen(store.sql, S12);
    partner.named = { ...partner.named, ...S12 };
    await run('catalog-check');
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotGeneratedAt: built(12) });
  });

  test('a later build each time: it dates something else, and manifests are requested ever more rarely', async () => {
    const asked: boolean[] = [];
    for (let hour = 7; hour < 16; hour += 1) {
      partner.named = { ...partner.named, generatedAt: built(hour) };
      await run('catalog-check');
      const { catalogDifference } = await found();
      asked.push(catalogDifference !== null);
      if (catalogDifference !== null)
        await baseline(
          store.url,
          SKUS.map((sku) => line(sku)),
          { token: { snapshotId: 's6', generatedAt: built(hour), lines: 20 } },
        );
      await minutesLater(60);
    }
    expect(asked).toEqual([true, true, false, true, false, false, false, true, false]);
    // Once it stands still, the next later build counts at once.
    await run('catalog-check');
    partner.named = { ...partner.named, generatedAt: built(17) };
    await run('catalog-check');
    expect((await found()).catalogDifference).toEqual({ rebuilt: true });
  });

  test('counts that no manifest confirms: manifests are requested ever more rarely', async () => {
    const [other = line('A00'), ...lines] = SKUS.map((sku) => line(sku));
    const asked: boolean[] = [];
    const checked = async (livePricedSkuCount: number, listed = [other, ...lines]) => {
      partner.named = { ...partner.named, livePricedSkuCount };
      await run('catalog-check');
      const { catalogDifference } = await found();
      if (catalogDifference !== null)
        await baseline(store.url, listed, { token: { snapshotId: 's6', generatedAt: built(6), lines: 20 } });
      await minutesLater(61);
      return catalogDifference !== null;
    };
    for (let hour = 0; hour < 8; hour += 1) asked.push(await checked(10 + hour));
    expect(asked).toEqual([true, true, false, true, false, false, false, true]);
    // Then not for eight hours, and after one right answer not for four.
    for (let hour = 0; hour < 7; hour += 1) expect(await checked(10)).toBe(false);
    expect(await checked(0)).toBe(false);
    expect(await checked(10)).toBe(true);
    // Counts that its manifest confirms are not of that kind.
    await store.sql`update catalog_internal.sync set manifest_applied_at = manifest_applied_at - interval '7 days'`;
    expect(await checked(10, [{ ...other, priceSource: 'live', hash: null }, ...lines])).toBe(true);
    expect([...(await store.sql`select from catalog_internal.idle_manifests`)]).toEqual([]);
  });

  test('counts that the manifest had wrong, or that its unreadable lines explain: nothing follows', async () => {
    await baseline(
      store.url,
      SKUS.map((sku) => line(sku)),
      { token: { snapshotId: 's6', generatedAt: built(6), lines: 30, unclear: 10, liveMiscount: 17 } },
    );
    await run('delta');
    await rest();
    partner.named = { ...partner.named, skuCount: 30, livePricedSkuCount: 17 };
    await run('catalog-check');
    expect(await found()).toEqual(WELL);
  });

  test('that all is live, as with a manifest whose file listed none: no incident follows', async () => {
    await baseline(
      store.url,
      SKUS.map((sku) => line(sku)),
      { token: { snapshotId: 's6', generatedAt: built(6), lines: 20, liveMiscount: 20 } },
    );
    await run('delta');
    await rest();
    partner.named = { ...partner.named, livePricedSkuCount: 20 };
    await run('catalog-check');
    expect(await found()).toEqual(WELL);
  });
});
