import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer } from '../../src/partner/answers.ts';
import { PartnerError } from '../../src/partner/errors.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { callPause } from '../../src/store/ledger/tasks.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { knownSkus, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const MINUTE = 60_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const SKUS = Array.from({ length: 60 }, (_, i) => `S${String(i).padStart(2, '0')}`);

let ctx: SyncContext;
/** Returns which SKUs of a call the partner reads. */
let reads: (skus: readonly string[]) => readonly string[];
let sizes: number[];

beforeEach(async () => {
  sizes = [];
  ctx = {
    observers: NO_OBSERVERS,
    sql: store.sql,
    pacer: createPacer(store.sql, systemClock, {
      maxPerWindow: 1_000_000,
      windowMs: MINUTE,
      backoffMs: MINUTE,
    }),
    client: {
      bulk: async (_: unknown, skus: readonly string[]): Promise<BulkAnswer> => {
        sizes.push(skus.length);
        const read = [...reads(skus)];
        if (read.length === 0) throw new PartnerError('no-skus-read', 'bulk');
        return { results: new Map(), notFound: read, deferred: [], errors: [], requested: read.length };
      },
    },
    clock: systemClock,
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
    random: () => 0.5,
    emit: () => {},
    settings: settingsWith({ BULK_MAX_SKUS: '30' }),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
  await knownSkus(store.sql, SKUS);
  await mark(store.sql, SKUS);
});

const call = async () => await repriceOnce(ctx, { sinceLastCallMs: Infinity }, MINUTE, signals);
const failures = async () =>
  Object.fromEntries(
    (await store.sql`select sku, failures from catalog_internal.due where failures > 0 order by sku`).map(
      (row) => [row['sku'] as string, row['failures'] as number],
    ),
  );
const endWaits = () => store.sql`update catalog_internal.due set held_until = null where due_at <= now()`;

test('SKUs that the partner passes over wait on their own, and calls keep their size', async () => {
  const ignored = ['S03', 'S20', 'S41'];
  reads = (skus) => skus.filter((sku) => !ignored.includes(sku));
  await call();
  await call();
  expect(sizes).toEqual([30, 30]);
  expect(await failures()).toEqual({ S03: 1, S20: 1, S41: 1 });
  const [rest] = await store.sql`select count(*)::int as due from catalog_internal.due where due_at <= now()`;
  expect(rest).toEqual({ due: 3 });
  for (const times of [2, 3, 4]) {
    await endWaits();
    await call();
    expect(await failures()).toEqual({ S03: times, S20: times, S41: times });
  }
  expect(await store.sql`select size, suspected from catalog_internal.call_size`).toEqual([
    { size: null, suspected: null },
  ]);
  expect(await callPause(store.sql)).toMatchObject({ failures: 0 });
});

test('for a partner that reads only the first SKUs of a call, calls are cut to that number', async () => {
  reads = (skus) => skus.slice(0, 20);
  for (let calls = 0; calls < 3; calls += 1) {
    await endWaits();
    await call();
  }
  const [row] = await store.sql<[{ size: number }]>`select size from catalog_internal.call_size`;
  expect(row.size).toBeLessThanOrEqual(20);
  expect(Object.values(await failures()).every((times) => times === 1)).toBe(true);
});
