import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { promoteMetadata, returnClaim, endWaits } from '../../src/store/ledger/due.ts';
import {
  allDue,
  callInputs,
  claimAll,
  found,
  HOUR,
  knownSkus,
  LEASE_MS,
  ledger,
  REFRESH,
  mark,
  passHours,
  useStore,
} from './support.ts';

const store = useStore();
const names = (n: number) => Array.from({ length: n }, (_, i) => `S${String(i).padStart(4, '0')}`);

describe('a SKU that failed and was deferred after that', () => {
  test('is not requested before its wait is over, whatever is reported about it meanwhile', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await mark(sql, ['A']);
    await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'error', waitMs: HOUR }], REFRESH);
    await passHours(sql, 1.5);
    await endWaits(sql, 10);
    await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'deferred', waitMs: 3 * HOUR }], REFRESH);
    await mark(sql, ['A'], 'changed');
    const row = (await ledger(sql)).get('A');
    expect(row).toMatchObject({ failures: 1, deferrals: 1 });
    expect(row?.heldFor).toBeCloseTo(3, 1);
    expect(await claimDue(sql, { quotas: allDue(1) }, LEASE_MS)).toBeNull();
  });
});

test('a SKU whose own call failed is not woken by a mark; one that was in errors is', async () => {
  const { sql } = store;
  await knownSkus(sql, ['alone', 'reported']);
  await mark(sql, ['alone', 'reported']);
  const waits = { kind: 'error', waitMs: HOUR } as const;
  const results = [
    { sku: 'alone', ...waits, blame: 'alone' },
    { sku: 'reported', ...waits },
  ] as const;
  await applyAnswer(sql, await claimAll(sql), results, REFRESH);
  await mark(sql, ['alone', 'reported'], 'changed');
  const rows = await ledger(sql);
  expect(rows.get('alone')?.heldFor).toBeCloseTo(1, 1);
  expect(rows.get('reported')?.heldFor).toBeNull();
});

test('a report during a request ends the wait after an error just as a later one does', async () => {
  const { sql } = store;
  const waits = { kind: 'error', waitMs: 6 * HOUR } as const;
  const results = [
    { sku: 'alone', ...waits, blame: 'alone' },
    { sku: 'class', ...waits, blame: 'class' },
    { sku: 'deferred', kind: 'deferred', waitMs: 6 * HOUR },
    { sku: 'general', ...waits, blame: 'general' },
    { sku: 'reported', ...waits },
    { sku: 'unreported', ...waits },
  ] as const satisfies readonly SkuResult[];
  const reported = results.flatMap(({ sku }) => (sku === 'unreported' ? [] : [sku]));
  await knownSkus(sql, [...reported, 'unreported']);
  await mark(sql, [...reported, 'unreported']);
  const waiting = async () =>
    [...(await ledger(sql))].flatMap(([sku, { heldFor }]) => (heldFor === null ? [] : [sku])).toSorted();
  const before = await claimAll(sql);
  await mark(sql, reported, 'changed');
  await applyAnswer(sql, before, results, REFRESH);
  const meanwhile = await waiting();
  expect(meanwhile).toEqual(['alone', 'class', 'deferred', 'unreported']);
  expect((await ledger(sql)).get('reported')).toMatchObject({ failures: 1 });
  await sql`update catalog_internal.due set held_until = null, deferrals = 0, failures = 0, largest_call = null`;
  await applyAnswer(sql, await claimAll(sql), results, REFRESH);
  await mark(sql, reported, 'changed');
  expect(await waiting()).toEqual(meanwhile);
});

describe('claims', () => {
  test('of racing workers never share a SKU, and together they get every SKU', async () => {
    const { sql } = store;
    const skus = names(400);
    await mark(sql, skus);
    const held: string[] = [];
    const worker = async () => {
      // A racing worker may find that others have locked the rest; it is done once no SKU is free.
      for (;;) {
        const claim = await claimDue(sql, { quotas: allDue(7) }, LEASE_MS);
        if (claim === null && (await callInputs(sql)).due.length === 0) return;
        held.push(...(claim?.skus ?? []).map(({ sku }) => sku));
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(held.toSorted()).toEqual(skus);
  });

  test('skip what another transaction has locked, instead of waiting for it', { timeout: 5000 }, async () => {
    const { sql } = store;
    await mark(sql, ['A', 'B']);
    const claim = await sql.begin(async (tx) => {
      await tx`select from catalog_internal.due where sku = 'A' for update`;
      return await claimAll(sql);
    });
    expect(claim.skus).toMatchObject([{ sku: 'B' }]);
  });

  test('take the oldest of each class, up to its quota, and none of another class', async () => {
    const { sql } = store;
    await mark(sql, ['old'], 'sweep');
    await passHours(sql, 2);
    await mark(sql, ['mid'], 'sweep');
    await passHours(sql, 1);
    await mark(sql, ['new'], 'sweep');
    await mark(sql, ['live'], 'sweep', true);
    await mark(sql, ['urgent'], 'changed');
    const claim = await claimDue(
      sql,
      { quotas: [{ lane: 'sweep', live: false, count: 2, earlySeconds: 0 }] },
      LEASE_MS,
    );
    expect(claim?.skus.map(({ sku }) => sku).toSorted()).toEqual(['mid', 'old']);
  });

  describe('in the urgent lane', () => {
    const urgent = (count: number) => [{ lane: 'urgent', live: false, count, earlySeconds: 0 }] as const;
    const take = async (count: number) =>
      ((await claimDue(store.sql, { quotas: urgent(count) }, LEASE_MS))?.skus ?? []).map(({ sku }) => sku);
    const watch = async (weights: Record<string, number>) => {
      await knownSkus(store.sql, Object.keys(weights));
      await store.sql`
        insert into catalog_internal.watched (sku, weight)
        select key, value::real from jsonb_each_text(${store.sql.json(weights)})`;
    };

    test('take the heaviest watched SKUs first, however long others have waited, and equal ones by age', async () => {
      const { sql } = store;
      await watch({ light: 0.5, heavy: 50, heavier: 60 });
      await mark(sql, ['old', 'light']);
      await passHours(sql, 1);
      await mark(sql, ['young', 'heavy', 'heavier']);
      const taken = [
        await take(1),
        await take(1),
        await take(1),
        await take(1),
        await take(1),
        await take(1),
      ];
      expect(taken.flat()).toEqual(['heavier', 'heavy', 'old', 'young', 'light']);
    });

    test('use the weight at the newest mark, and keep the other lanes in order of age', async () => {
      const { sql } = store;
      await watch({ A: 5, B: 9 });
      await mark(sql, ['A', 'B']);
      await sql`update catalog_internal.watched set weight = 20 where sku = 'A'`;
      await mark(sql, ['A']);
      expect(await take(1)).toEqual(['A']);
      await mark(sql, ['C'], 'sweep');
      await passHours(sql, 1);
      await watch({ D: 100 });
      await mark(sql, ['D'], 'sweep');
      const sweep = { lane: 'sweep', live: false, count: 1, earlySeconds: 0 } as const;
      expect((await claimDue(sql, { quotas: [sweep] }, LEASE_MS))?.skus).toMatchObject([{ sku: 'C' }]);
    });

    test('cost the same however much is due: each lane is read from its own index', async () => {
      // One connection, because each plans on its own.
      const sql = connect(store.url, { max: 1 });
      await sql`
        insert into catalog_internal.due (sku, lane, reason, live, due_at)
        select 'S' || n, 1 + n % 6, 'x', n % 20 = 0, now() + make_interval(secs => n % 9000 - 8990 * (n % 6 = 0)::int)
        from generate_series(1, 60000) n`;
      await sql`analyze catalog_internal.due`;
      // The first statements are planned for their values, later ones once for all.
      for (let claim = 0; claim < 7; claim += 1)
        await sql.begin(async (tx) => {
          const claimed = await claimDue(tx as unknown as Sql, { quotas: allDue(10) }, LEASE_MS);
          expect(claimed?.skus.length).toBeGreaterThan(10);
          // Counts of this transaction only: other sessions publish what they have read seconds later.
          const [row] = await tx<[{ seq: number; rows: number }]>`
            select seq_scan::int as seq, (seq_tup_read + idx_tup_fetch)::int as rows
            from pg_stat_xact_user_tables where relid = 'catalog_internal.due'::regclass`;
          expect(row.seq).toBe(0);
          expect(row.rows).toBeLessThan(1500);
        });
      await sql.end();
    });
  });

  test('take a SKU before its time only if the quota says so', async () => {
    const { sql } = store;
    await mark(sql, ['A'], 'sweep');
    await passHours(sql, -3);
    const quota = { lane: 'sweep', live: false, count: 1 } as const;
    expect(await claimDue(sql, { quotas: [{ ...quota, earlySeconds: 2.9 * 3600 }] }, LEASE_MS)).toBeNull();
    expect(
      (await claimDue(sql, { quotas: [{ ...quota, earlySeconds: 3.1 * 3600 }] }, LEASE_MS))?.skus,
    ).toHaveLength(1);
  });

  test('that are given back leave everything as it was', async () => {
    const { sql } = store;
    await mark(sql, ['A', 'B']);
    const before = await ledger(sql);
    const claim = await claimAll(sql);
    expect(await claimDue(sql, { quotas: allDue(9) }, LEASE_MS)).toBeNull();
    await returnClaim(sql, claim, ['A', 'B']);
    const after = await ledger(sql);
    for (const [sku, row] of before) expect({ ...after.get(sku), dueIn: 0 }).toEqual({ ...row, dueIn: 0 });
  });

  test('whose lease ran out go to the next worker, and giving them back late takes nothing from it', async () => {
    const { sql } = store;
    await mark(sql, ['A']);
    const late = await claimAll(sql);
    await passHours(sql, 3);
    expect(await endWaits(sql, 10)).toBe(1);
    const next = await claimAll(sql);
    await returnClaim(sql, late, ['A']);
    expect((await ledger(sql)).get('A')?.claim).toBe(next.number);
  });

  test('are not released before their lease ends', async () => {
    const { sql } = store;
    await mark(sql, ['A']);
    await claimAll(sql);
    await passHours(sql, 1);
    expect(await endWaits(sql, 10)).toBe(0);
  });
});

describe('a mark', () => {
  test('keeps the position and the better lane of a SKU that is already due', async () => {
    const { sql } = store;
    await mark(sql, ['A'], 'changed');
    await passHours(sql, 5);
    await mark(sql, ['A'], 'sweep');
    expect((await ledger(sql)).get('A')).toMatchObject({ lane: 1, reason: 'changed', generation: 2 });
    expect((await ledger(sql)).get('A')?.dueIn).toBeCloseTo(-5, 1);
    await mark(sql, ['B'], 'sweep');
    await mark(sql, ['B'], 'changed');
    expect((await ledger(sql)).get('B')).toMatchObject({ lane: 1, reason: 'changed', generation: 2 });
  });

  test('on a SKU whose refresh lies in the future brings it forward in its own lane', async () => {
    const { sql } = store;
    await mark(sql, ['A'], 'changed');
    await passHours(sql, -20);
    await mark(sql, ['A'], 'metadata');
    expect((await ledger(sql)).get('A')).toMatchObject({ lane: 5, reason: 'metadata' });
    expect((await ledger(sql)).get('A')?.dueIn).toBeCloseTo(0, 1);
  });

  test.each(['found', 'not_found'] as const)(
    'made after a claim is not settled by its answer (%s)',
    async (kind) => {
      const { sql } = store;
      await knownSkus(sql, ['A']);
      await mark(sql, ['A']);
      const claim = await claimAll(sql);
      await mark(sql, ['A'], 'refresh');
      const result = kind === 'found' ? found('A', { 9: 100 }) : { sku: 'A', kind };
      await applyAnswer(sql, claim, [result], REFRESH);
      expect((await ledger(sql)).get('A')?.dueIn).toBeLessThanOrEqual(0);
      expect((await claimAll(sql)).skus).toMatchObject([{ sku: 'A', generation: 2 }]);
    },
  );
});

describe('a deferred SKU', () => {
  test('keeps its position by age and its lane, and counts as live from then on', async () => {
    const { sql } = store;
    await knownSkus(sql, ['D']);
    await mark(sql, ['D'], 'new');
    await passHours(sql, 6);
    await applyAnswer(sql, await claimAll(sql), [{ sku: 'D', kind: 'deferred', waitMs: HOUR }], REFRESH);
    const row = (await ledger(sql)).get('D');
    expect(row).toMatchObject({ lane: 3, reason: 'new', live: true, deferrals: 1, failures: 0, claim: null });
    expect(row?.dueIn).toBeCloseTo(-6, 1);
    await passHours(sql, 2);
    await endWaits(sql, 10);
    expect((await claimAll(sql)).skus).toMatchObject([{ sku: 'D', deferrals: 1, failures: 0, live: true }]);
  });

  test('no longer counts as deferred once it is answered', async () => {
    const { sql } = store;
    await knownSkus(sql, ['D']);
    await mark(sql, ['D']);
    await applyAnswer(sql, await claimAll(sql), [{ sku: 'D', kind: 'deferred', waitMs: HOUR }], REFRESH);
    await passHours(sql, 2);
    await endWaits(sql, 10);
    await applyAnswer(sql, await claimAll(sql), [found('D')], REFRESH);
    expect((await ledger(sql)).get('D')).toMatchObject({ deferrals: 0, failures: 0, heldFor: null });
  });
});

describe('a limit', () => {
  test.each([
    ['released', (sql: Sql) => endWaits(sql, 2)],
    ['moved into the metadata lane', (sql: Sql) => promoteMetadata(sql, 3 * 3600, 2)],
  ])('on rows to be %s holds, whatever the planner believes about the ledger', async (_, change) => {
    const { sql } = store;
    // As after a start: from statistics of the empty ledger, the planner expects one row.
    await sql`truncate catalog_internal.due`;
    await mark(sql, ['X'], 'sweep');
    await sql`delete from catalog_internal.due`;
    await sql`analyze catalog_internal.due`;
    await mark(sql, names(9), 'sweep');
    await passHours(sql, 5);
    await sql`update catalog_internal.due set held_until = now() where sku > 'S0004'`;
    expect(await change(sql)).toBe(2);
  });
});

describe('promoting overdue sweeps', () => {
  test('moves sweeps that waited too long into the metadata lane, oldest first, and leaves all others', async () => {
    const { sql } = store;
    await mark(sql, ['C'], 'changed');
    await mark(sql, ['A'], 'sweep');
    await passHours(sql, 1);
    await mark(sql, ['B'], 'sweep');
    await passHours(sql, 4);
    await mark(sql, ['fresh'], 'sweep');
    expect(await promoteMetadata(sql, 3 * 3600, 1)).toBe(1);
    expect((await ledger(sql)).get('A')?.reason).toBe('metadata');
    expect(await promoteMetadata(sql, 3 * 3600, 10)).toBe(1);
    const reasons = [...(await ledger(sql)).values()].map(({ sku, reason }) => `${sku} ${reason}`);
    expect(reasons).toEqual(['A metadata', 'B metadata', 'C changed', 'fresh sweep']);
  });
});
