import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import {
  hasPrices,
  readLostRows,
  restoreLedger,
  restoreLostRows,
  restorePrices,
  SINGLE_ROWS,
} from '../../src/store/ledger/lost-rows.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { maintain, newMemory } from '../../src/sync/maintenance.ts';
import { settingsWith } from '../support/settings.ts';
import { runs } from '../support/soak.ts';
import { answerAsked, empty, found, ledger, mark, useStore } from './support.ts';

const store = useStore();
/** Returns all rows of a table, without the times at which they were written. */
const rowsOf = async (table: string) =>
  (
    await store.sql.unsafe<{ row: string }[]>(
      `select to_jsonb(t)::text as row from catalog_internal.${table} t`,
    )
  )
    .map(({ row }) => row.replaceAll(/"\d{4}-\d\d-\d\dT[^"]+"/g, 'now'))
    .toSorted();

describe('rows that the mirror cannot do without', () => {
  test('are those of all single-row tables of a new mirror', async () => {
    const tables = await store.sql<{ name: string }[]>`
      select relname::text as name from pg_constraint c join pg_class t on t.oid = conrelid
      where contype = 'c' and pg_get_constraintdef(c.oid) = 'CHECK (id)' and relnamespace = 'catalog_internal'::regnamespace
      order by 1`;
    const filled = [];
    for (const { name } of tables) if ((await rowsOf(name)).length === 1) filled.push(name);
    expect(filled).toEqual([...SINGLE_ROWS]);
    expect(await readLostRows(store.sql)).toEqual([]);
  });

  test('are restored as in a new mirror, whichever are gone', async () => {
    const tables = [...SINGLE_ROWS, 'tasks', 'refresh_places'];
    const before = new Map<string, string[]>();
    // That of a mirror that has written nothing yet.
    await store.sql`update catalog_internal.lineage set system = null, database = null, timeline = null, started = null`;
    for (const table of tables) before.set(table, await rowsOf(table));
    await fc.assert(
      fc.asyncProperty(fc.subarray(tables, { minLength: 1 }), async (gone) => {
        for (const table of gone) await store.sql.unsafe(`delete from catalog_internal.${table}`);
        const named = gone.map((table) => `catalog_internal.${table}`).toSorted();
        expect(await readLostRows(store.sql)).toEqual(named);
        expect(await restoreLostRows(store.sql)).toEqual(named);
        for (const table of tables) expect([table, await rowsOf(table)]).toEqual([table, before.get(table)]);
      }),
      { numRuns: runs(8) },
    );
  });

  test('are completed if only some of a table are gone', async () => {
    const before = [await rowsOf('tasks'), await rowsOf('refresh_places')];
    await store.sql`delete from catalog_internal.tasks where task in ('delta', 'maintenance')`;
    await store.sql`delete from catalog_internal.refresh_places where place > 3`;
    expect(await restoreLostRows(store.sql)).toEqual([
      'catalog_internal.refresh_places',
      'catalog_internal.tasks',
    ]);
    expect([await rowsOf('tasks'), await rowsOf('refresh_places')]).toEqual(before);
  });
});

const SKUS = 'ABCDEFGH'.split('');
const trustOf = async () =>
  new Map(
    (
      await store.sql<{ sku: string; actionable: boolean }[]>`select sku, actionable from catalog.sku_trust`
    ).map(({ sku, actionable }) => [sku, actionable]),
  );

/** Returns each SKU's row with the number of its marks, which differs if it was touched. */
const generations = async () =>
  new Map(
    (
      await store.sql<
        { sku: string; row: string }[]
      >`select sku, generation || ' ' || reason || ' ' || due_at as row from catalog_internal.due`
    ).map(({ sku, row }) => [sku, row]),
  );

/** Makes a catalog priced except for the last two SKUs, which nobody has requested yet; every other one is live. */
async function catalogOfEight(): Promise<void> {
  await empty(store.sql);
  for (const [n, sku] of SKUS.entries())
    await store.sql`
      insert into catalog.skus (sku, in_manifest, price_source, sizes)
      values (${sku}, true, ${n % 2 === 0 ? 'live' : 'snapshot'}, 1)`;
  await mark(store.sql, SKUS.slice(0, 6), 'new');
  await answerAsked(store.sql, ...SKUS.slice(0, 6).map((sku) => found(sku, { 9: 90 })));
  await mark(store.sql, SKUS.slice(6), 'new');
}

describe('SKUs that the ledger has lost', () => {
  test('are requested again, and are not actionable before; nothing else is touched', async () => {
    await fc.assert(
      fc.asyncProperty(fc.subarray(SKUS), fc.integer({ min: 1, max: 9 }), async (gone, most) => {
        await catalogOfEight();
        await store.sql`delete from catalog_internal.due where sku = any (${gone})`;
        const kept = await generations();
        let restored = 0;
        for (let upTo: string | null = ''; upTo !== null;) {
          const part = await restoreLedger(store.sql, upTo, most);
          restored += part.restored;
          ({ upTo } = part);
        }
        expect(restored).toBe(gone.length);
        const after = await ledger(store.sql);
        expect([...after.keys()].toSorted()).toEqual(SKUS);
        const trust = await trustOf();
        for (const sku of SKUS) {
          const row = after.get(sku);
          if (!gone.includes(sku))
            expect([sku, (await generations()).get(sku)]).toEqual([sku, kept.get(sku)]);
          else {
            const reason = SKUS.indexOf(sku) < 6 ? 'changed' : 'new';
            expect([sku, row?.reason, row?.live]).toEqual([sku, reason, SKUS.indexOf(sku) % 2 === 0]);
            expect(row?.dueIn).toBeLessThanOrEqual(0);
            expect([sku, trust.get(sku) ?? false]).toEqual([sku, false]);
          }
        }
      }),
      { numRuns: runs(15) },
    );
  });

  test('are found by maintenance, one part of the catalog after the other, and reported', async () => {
    await catalogOfEight();
    const events: SyncEvent[] = [];
    const ctx = {
      sql: store.sql,
      clock: systemClock,
      settings: settingsWith(),
      tracer: NO_TRACER,
      emit: (event: SyncEvent) => events.push(event),
    } as unknown as SyncContext;
    const run = () => maintain(ctx, { windowMs: 60_000, historyMs: 0, dailyMs: 0 });
    expect(await run()).toMatchObject({ kind: 'done', nextInMs: 60_000 });
    expect(events).toEqual([]);
    await store.sql`truncate catalog_internal.due`;
    await store.sql`delete from catalog_internal.delta_audit`;
    expect(await run()).toMatchObject({ kind: 'done', nextInMs: 1000 });
    expect(events).toEqual([
      { event: 'rows.restored', tables: ['catalog_internal.delta_audit'], skus: SKUS.length },
    ]);
    expect(await run()).toMatchObject({ kind: 'done', nextInMs: 60_000 });
  });

  test('are found from where maintenance left off', async () => {
    await catalogOfEight();
    await store.sql`delete from catalog_internal.due where sku in ('A', 'H')`;
    const events: SyncEvent[] = [];
    const ctx = {
      sql: store.sql,
      clock: systemClock,
      settings: settingsWith(),
      tracer: NO_TRACER,
      emit: (event: SyncEvent) => events.push(event),
    } as unknown as SyncContext;
    const at = { ...newMemory(), lookedUpTo: 'D' };
    const run = () => maintain(ctx, { windowMs: 60_000, historyMs: 0, dailyMs: 0 }, at);
    await run();
    expect([at.lookedUpTo, (await ledger(store.sql)).has('A')]).toEqual(['', false]);
    await run();
    expect((await ledger(store.sql)).has('A')).toBe(true);
    expect(events).toEqual([1, 1].map((skus) => ({ event: 'rows.restored', tables: [], skus })));
  });

  test('if no price is left, all SKUs that had prices are requested, and are not actionable before', async () => {
    await catalogOfEight();
    expect([await hasPrices(store.sql), [...(await trustOf()).values()].includes(true)]).toEqual([
      true,
      true,
    ]);
    await store.sql`truncate catalog.prices`;
    expect(await restorePrices(store.sql, 4)).toBe(6);
    expect([...(await trustOf()).values()]).not.toContain(true);
    const due = [...(await ledger(store.sql)).values()];
    expect(due.map(({ reason }) => reason)).toEqual([...Array<string>(6).fill('changed'), 'new', 'new']);
    expect(await hasPrices(store.sql)).toBe(false);
    await answerAsked(store.sql, found('A', { 9: 90 }));
    expect([await hasPrices(store.sql), (await trustOf()).get('A')]).toEqual([true, true]);
  });

  test('if the partner has no prices, that is detected once, and not every minute', async () => {
    await catalogOfEight();
    await store.sql`truncate catalog.prices`;
    const told: SyncEvent[] = [];
    const ctx = {
      sql: store.sql,
      clock: systemClock,
      settings: settingsWith(),
      tracer: NO_TRACER,
      emit: (event: SyncEvent) => told.push(event),
    } as unknown as SyncContext;
    const memory = newMemory();
    const run = () => maintain(ctx, { windowMs: 60_000, historyMs: 0, dailyMs: 0 }, memory);
    await run();
    const once = [{ event: 'rows.restored', tables: [], skus: 6 }];
    expect(told).toEqual(once);
    await run();
    expect(told).toEqual(once);
    await answerAsked(store.sql, found('A', { 9: 90 }));
    await run();
    await store.sql`delete from catalog.prices`;
    await run();
    expect(told).toEqual([...once, ...once]);
  });
});
