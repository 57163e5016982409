import { beforeEach, expect, test } from 'vitest';
import { eachColumn } from '../../src/declared/metadata.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer, LowestRecord } from '../../src/partner/answers.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { connect } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { callFaults, readTasks } from '../../src/store/ledger/tasks.ts';
import { readNotStored } from '../../src/store/quarantine.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceSlices } from '../../src/sync/reprice/slice.ts';
import { knownSkus, ledger, mark, useStore } from '../store/support.ts';
import { actingLogins } from '../support/acting-login.ts';
import { settingsWith } from '../support/settings.ts';

/*
 * Errors of Postgres in a bulk call, apart from the rows of its answer, are counted for health until an answer is
 * stored, because such a call ends without an event of its own.
 */

const store = useStore();
const MINUTE = 60_000;
const { signal } = new AbortController();
const RECORD: LowestRecord = {
  sizes: new Map([['9', { price: 100, entry: null }]]),
  metadata: eachColumn(() => null),
  product: {},
};

beforeEach(async () => {
  await knownSkus(store.sql, ['S1']);
  await mark(store.sql, ['S1']);
});

/** A daemon on this pool, whose partner has a price for every SKU. */
function daemon(sql = store.sql) {
  const window = { maxPerWindow: 1_000_000, windowMs: MINUTE, backoffMs: MINUTE };
  const slice = repriceSlices(
    {
      observers: NO_OBSERVERS,
      sql,
      pacer: createPacer(sql, systemClock, window),
      client: {
        bulk: (_: unknown, skus: readonly string[]): Promise<BulkAnswer> =>
          Promise.resolve({
            results: new Map(skus.map((sku) => [sku, RECORD])),
            notFound: [],
            deferred: [],
            errors: [],
            requested: skus.length,
          }),
      },
      clock: systemClock,
      floors: new DueFloors(systemClock),
      recent: new RecentAnswers(),
      random: () => 0.5,
      emit: () => {},
      settings: settingsWith({ SWEEP_INTERVAL: '24h' }),
      tracer: NO_TRACER,
    } as unknown as SyncContext,
    MINUTE,
  );
  /** Runs a slice and returns the SQLSTATE that it fails with, or null. Ends earlier waits before. */
  return async (): Promise<unknown> => {
    await store.sql`update catalog_internal.due set held_until = null where claim is null`;
    return await slice(signal, signal).then(
      () => null,
      (error: unknown) => (error as { code?: unknown }).code,
    );
  };
}

const faults = async () => callFaults(await readTasks(store.sql));

const REFUSALS = [
  ['a table that answers are compared with', 'catalog.products', '42P01'],
  ['a table that calls are planned by', 'catalog_internal.call_size', '42P01'],
] as const;

test.each(REFUSALS)(
  'while %s is missing, each call counts as a fault until an answer is stored',
  async (_, table, state) => {
    const { sql } = store;
    const [schema, name] = table.split('.') as [string, string];
    const run = daemon();
    // An answer stored seconds ago does not keep the next one from resetting the count.
    expect(await run()).toBeNull();
    expect(await faults()).toBeNull();
    await mark(sql, ['S1']);
    await sql.unsafe(`alter table ${table} rename to away`);
    try {
      expect(await run()).toBe(state);
      expect(await faults()).toEqual({ kind: state, times: 1 });
      expect(await run()).toBe(state);
      expect(await faults()).toEqual({ kind: state, times: 2 });
    } finally {
      await sql.unsafe(`alter table ${schema}.away rename to ${name}`);
    }
    expect(await run()).toBeNull();
    expect(await faults()).toBeNull();
    expect((await ledger(sql)).get('S1')).toMatchObject({ claim: null, failures: 0 });
  },
);

test('errors that pass by themselves or are reported elsewhere do not count', async () => {
  const { sql } = store;
  const impatient = connect(store.url, { max: 2 });
  const run = daemon(impatient);
  try {
    impatient.options.connection['options'] = '-c lock_timeout=100ms -c search_path=pg_catalog';
    await sql.begin(async (seller) => {
      await seller`lock table catalog.products`;
      expect(await run()).toBe('55P03');
    });
    expect(await faults()).toBeNull();
  } finally {
    await impatient.end({ timeout: 2 });
  }
});

test('a missing privilege is reported as such, both for reading state and for writing the answer', async () => {
  const { sql } = store;
  await using logins = await actingLogins(sql, store.url);
  const role = connect(await logins.login(), { max: 4 });
  const run = daemon(role);
  try {
    await sql.unsafe(`revoke select on catalog.products from ${logins.owner}`);
    expect(await run()).toBe('42501');
    expect(await faults()).toEqual({ kind: '42501', times: 1 });
    await sql.unsafe(`grant select on catalog.products to ${logins.owner}`);
    await sql.unsafe(`revoke insert on catalog.prices from ${logins.owner}`);
    expect(await run()).toBeNull();
    expect(await readNotStored(sql)).toMatchObject({
      sample: expect.stringContaining('SQLSTATE 42501, by a privilege that is lacking'),
      lacksPrivilege: true,
    });
  } finally {
    await role.end({ timeout: 2 });
  }
});
