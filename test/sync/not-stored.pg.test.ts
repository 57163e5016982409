import { NO_TRACER } from '../../src/lib/tracer.ts';
import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer, LowestRecord } from '../../src/partner/answers.ts';
import { DueFloors } from '../../src/store/due-floors.ts';
import { readNotStored } from '../../src/store/quarantine.ts';
import type { SyncContext, SyncEvent } from '../../src/sync/context.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { eachColumn } from '../../src/declared/metadata.ts';
import { ledger, knownSkus, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const MINUTE = 60_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const skus = Array.from({ length: 40 }, (_, n) => `S${String(n).padStart(2, '0')}`);
const POISON = 'S17';

const record: LowestRecord = {
  sizes: new Map([['9', { price: 100, entry: null }]]),
  metadata: eachColumn(() => null),
  product: {},
};

let events: SyncEvent[];
let asked: (readonly string[])[];
let ctx: SyncContext;

beforeEach(() => {
  events = [];
  asked = [];
  ctx = {
    sql: store.sql,
    pacer: createPacer(store.sql, systemClock, {
      maxPerWindow: 1_000_000,
      windowMs: MINUTE,
      backoffMs: MINUTE,
    }),
    client: {
      bulk: (_: unknown, wanted: readonly string[]): Promise<BulkAnswer> => {
        asked.push(wanted);
        return Promise.resolve({
          results: new Map(wanted.map((sku) => [sku, record])),
          notFound: [],
          deferred: [],
          errors: [],
          requested: null,
          deduped: null,
        } as unknown as BulkAnswer);
      },
    },
    clock: systemClock,
    floors: new DueFloors(systemClock),
    random: () => 0.5,
    emit: (event: SyncEvent) => events.push(event),
    settings: settingsWith({ BULK_MAX_SKUS: '40' }),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
});

/** Calls until nothing is due; what is thrown ends a call, as it ends a job. */
async function untilIdle(): Promise<void> {
  for (let number = 1; number <= 60; number += 1) {
    const done = await repriceOnce(ctx, { number, sinceLastCallMs: Infinity }, MINUTE, signals).catch(
      () => null,
    );
    if (done?.kind === 'idle' || done?.kind === 'wait') return;
  }
}

async function priced(): Promise<string[]> {
  const rows = await store.sql<{ sku: string }[]>`select sku from catalog.prices order by sku`;
  return rows.map(({ sku }) => sku);
}

test('of SKUs that are answered together, one whose rows Postgres rejects waits alone, is named, and asked for again later', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await sql.unsafe(`alter table catalog.prices add constraint no_poison check (sku <> '${POISON}')`);
  try {
    await untilIdle();
    expect(await priced()).toEqual(skus.filter((sku) => sku !== POISON));
    expect((await ledger(sql)).get(POISON)).toMatchObject({ claim: null, failures: 1, lane: 4 });
    expect((await ledger(sql)).get(POISON)?.heldFor).toBeGreaterThan(0);
    // Halves, and no SKU asked for again once it is stored.
    expect(asked.length).toBeLessThan(16);
    expect(await readNotStored(sql)).toEqual({
      skus: 1,
      last: POISON,
      sample: expect.stringContaining('SQLSTATE 23514, by no_poison of catalog.prices'),
    });
    expect(events.filter((event) => event.event === 'bulk.failed')[0]).toMatchObject({
      because: 'not-stored',
      skus: 40,
    });
    // Another call works: so it is not an outage that the next one meets.
    await mark(sql, ['S00']);
    await untilIdle();
    await sql`update catalog_internal.due set held_until = null where sku = ${POISON}`;
    await untilIdle();
    expect(events.findLast((event) => event.event === 'bulk.failed')).toMatchObject({ sku: POISON });
  } finally {
    await sql`alter table catalog.prices drop constraint no_poison`;
  }
  await sql`update catalog_internal.due set held_until = null where sku = ${POISON}`;
  await untilIdle();
  expect(await priced()).toEqual(skus);
  expect(await readNotStored(sql)).toMatchObject({ skus: 0 });
});

test('where no answer can be stored, no SKU is blamed: all calls pause, as in an outage', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await sql`alter table catalog.prices add constraint none check (false) not valid`;
  try {
    await untilIdle();
    const [pause] = await sql`
      select failures, outcome, next_at > now() as pauses from catalog_internal.tasks where task = 'reprice'`;
    expect(pause).toMatchObject({ failures: 4, outcome: 'not-stored', pauses: true });
    expect(
      [...(await ledger(sql)).values()].every(({ failures, claim }) => failures === 0 && claim === null),
    ).toBe(true);
  } finally {
    await sql`alter table catalog.prices drop constraint none`;
  }
});
