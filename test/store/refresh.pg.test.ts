import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { callPause } from '../../src/store/ledger/tasks.ts';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import {
  allDue,
  answerAsked,
  claimAll,
  failCall,
  found,
  HOUR,
  knownSkus,
  LEASE_MS,
  ledger,
  mark,
  passHours,
  REFRESH,
  removeByDelta,
  useStore,
} from './support.ts';

const store = useStore();

describe('a refresh', () => {
  test('of all SKUs is a mark like any other: an answer under way does not settle it', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await mark(sql, ['A'], 'sweep');
    await passHours(sql, -1);
    const early = [{ lane: 'sweep', live: false, count: 1, earlySeconds: 2 * 3600 }] as const;
    const claim = await claimDue(sql, { quotas: early }, LEASE_MS);
    expect(await refreshAll(sql, 'prices')).toEqual({ added: [], due: 1, released: 0, resumed: false });
    await applyAnswer(sql, claim!, [found('A')], REFRESH);
    expect((await ledger(sql)).get('A')?.dueIn).toBeLessThanOrEqual(0);
  });

  test('makes all SKUs of a large catalog due, in pieces', async () => {
    const { sql } = store;
    const names = Array.from({ length: 20_001 }, (_, n) => `S${n}`);
    await knownSkus(sql, names);
    await mark(sql, names, 'sweep');
    await sql`
      update catalog_internal.due set due_at = case when sku like '%7' then now() else now() + interval '1 hour' end,
        held_until = case when sku like '%7' then now() + interval '1 hour' end`;
    expect(await refreshAll(sql, 'prices')).toEqual({
      added: [],
      due: 18_001,
      released: 2000,
      resumed: false,
    });
    const [row] = await sql`
      select from catalog_internal.due where due_at > now() or held_until is not null or generation <> 2 limit 1`;
    expect(row).toBeUndefined();
  });

  test.each(['prices', 'metadata'] as const)(
    'of all %s skips removed SKUs, but one that is named is requested again',
    async (what) => {
      const { sql } = store;
      await knownSkus(sql, ['gone', 'watched', 'unknown']);
      for (const sku of ['gone', 'watched']) await removeByDelta(sql, sku);
      await sql`insert into catalog.watchlist (sku) values ('watched')`;
      await answerAsked(
        sql,
        ...['gone', 'watched', 'unknown'].map((sku) => ({ sku, kind: 'not_found' as const })),
      );
      const isDue = async () =>
        [...(await ledger(sql)).values()].filter(({ dueIn }) => dueIn <= 0).map(({ sku }) => sku);
      expect(await refreshAll(sql, what)).toEqual({ added: [], due: 2, released: 0, resumed: false });
      // A watched one may come back without a report, so it is requested as often as one that is not found.
      expect(await isDue()).toEqual(['unknown', 'watched']);
      expect((await ledger(sql)).get('gone')).toMatchObject({ dueIn: Infinity });
      await refreshSkus(sql, ['gone']);
      expect(await isDue()).toEqual(['gone', 'unknown', 'watched']);
    },
  );

  /** Holds one SKU that was deferred and one that failed, each for an hour, and pauses calls. */
  async function heldBack(sql: Sql): Promise<void> {
    await knownSkus(sql, ['D', 'E']);
    await mark(sql, ['D', 'E']);
    const results = [
      { sku: 'D', kind: 'deferred', waitMs: HOUR },
      { sku: 'E', kind: 'error', waitMs: HOUR },
    ] as const;
    await applyAnswer(sql, await claimAll(sql), results, REFRESH);
    await failCall(sql, HOUR, 0);
    expect(await claimDue(sql, { quotas: allDue(9) }, LEASE_MS)).toBeNull();
  }

  test.each([
    ['SKUs', (sql: Sql) => refreshSkus(sql, ['D', 'E']), 2],
    ['all prices', (sql: Sql) => refreshAll(sql, 'prices'), 0],
    ['all metadata', (sql: Sql) => refreshAll(sql, 'metadata'), 0],
  ])('of %s on command releases what errors, deferrals and failed calls hold', async (_, refresh, due) => {
    const { sql } = store;
    await heldBack(sql);
    expect(await refresh(sql)).toEqual({ added: [], due, released: 2, resumed: true });
    expect((await callPause(sql)).ms).toBe(0);
    expect((await claimAll(sql)).skus.map(({ sku }) => sku).toSorted()).toEqual(['D', 'E']);
    // A SKU that is under way stays with its claim.
    expect(await refresh(sql)).toMatchObject({ released: 0, resumed: false });
    expect(await claimDue(sql, { quotas: allDue(9) }, LEASE_MS)).toBeNull();
  });

  test('does more than a mark, which releases a failing SKU at once, but does not shorten a deferral', async () => {
    const { sql } = store;
    await heldBack(sql);
    await mark(sql, ['D', 'E']);
    expect((await claimAll(sql)).skus.map(({ sku }) => sku)).toEqual(['E']);
    expect((await ledger(sql)).get('D')?.heldFor).toBeCloseTo(1, 1);
  });
});
