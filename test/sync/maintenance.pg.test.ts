import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { pruneQuarantine } from '../../src/store/quarantine.ts';
import { storeScopeMode } from '../../src/store/sellers/scope.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { maintain, syncMetadata } from '../../src/sync/maintenance.ts';
import { failing, HOUR, knownSkus, ledger, mark, useStore, watchedForHours } from '../store/support.ts';
import { type SettingsEnv, settingsWith } from '../support/settings.ts';

const store = useStore();
const context = (env: SettingsEnv = {}) =>
  ({
    sql: store.sql,
    clock: systemClock,
    settings: settingsWith(env),
    tracer: NO_TRACER,
  }) as unknown as SyncContext;

describe('a metadata refresh', () => {
  /** Makes SKUs of a daily sweep that have been due for the given hours. */
  async function swept(hoursDue: Readonly<Record<string, number>>): Promise<void> {
    const skus = Object.keys(hoursDue);
    await knownSkus(store.sql, skus);
    await mark(store.sql, skus, 'sweep');
    for (const [sku, hours] of Object.entries(hoursDue))
      await store.sql`
        update catalog_internal.due set due_at = now() - make_interval(hours => ${hours}) where sku = ${sku}`;
  }
  const reasons = async () => [...(await ledger(store.sql)).values()].map(({ reason }) => reason);

  test('comes first once it is due while the sweep waited', async () => {
    await swept({ young: 24, old: 49 });
    const ctx = context({ SWEEP_INTERVAL: '1d', METADATA_INTERVAL: '3d' });
    expect(await syncMetadata(ctx)).toMatchObject({
      kind: 'done',
      nextInMs: 60_000,
      counts: { promoted: 1 },
    });
    expect(Object.fromEntries([...(await ledger(store.sql))].map(([sku, row]) => [sku, row.reason]))).toEqual(
      {
        old: 'metadata',
        young: 'sweep',
      },
    );
  });

  test('needs no lane of its own if it is the reason of every refresh', async () => {
    await swept({ old: 490 });
    const ctx = context({ SWEEP_INTERVAL: '0s', METADATA_INTERVAL: '1d' });
    expect(await syncMetadata(ctx)).toMatchObject({ counts: { promoted: 0 } });
    expect(await reasons()).toEqual(['sweep']);
  });
});

test('a daemon whose MIRROR_SCOPE differs from the effective one reports it, until they are the same', async () => {
  const events: SyncEvent[] = [];
  const emit = (event: SyncEvent) => events.push(event);
  const start = (env: SettingsEnv) =>
    maintain({ ...context(env), emit }, { windowMs: 60_000, historyMs: 0, dailyMs: 0 });
  const differs = () => events.filter(({ event }) => event === 'scope.differs');
  await start({});
  expect(differs()).toEqual([]);
  await start({ MIRROR_SCOPE: 'scope' });
  expect(differs()).toEqual([{ event: 'scope.differs', own: 'scope', effective: 'catalog' }]);
  await storeScopeMode(store.sql, true);
  await start({ MIRROR_SCOPE: 'scope' });
  expect(differs()).toHaveLength(1);
  await start({});
  expect(differs().at(-1)).toEqual({ event: 'scope.differs', own: 'catalog', effective: 'scope' });
});

describe('due times set by longer intervals', () => {
  const DAY = 86_400;
  const start = (env: SettingsEnv) => maintain(context(env), { windowMs: 60_000, historyMs: 0, dailyMs: 0 });
  /** Makes a SKU that was asked `asked` seconds ago and is due in `due` seconds. */
  async function turn(
    sku: string,
    reason: string,
    live: boolean,
    asked: number,
    due: number | null,
  ): Promise<void> {
    const { sql } = store;
    await knownSkus(sql, [sku], { priceSource: live ? 'live' : 'snapshot' });
    await mark(sql, [sku], reason, live);
    await sql`
      update catalog.skus set state = 'priced', asked_at = now() - make_interval(secs => ${asked}) where sku = ${sku}`;
    await sql`
      update catalog_internal.due set due_at = coalesce(now() + make_interval(secs => ${due}), 'infinity') where sku = ${sku}`;
  }
  const dueIn = async () =>
    Object.fromEntries(
      (
        await store.sql<{ sku: string; reason: string; hours: number | null }[]>`
          select sku, reason, case when due_at < 'infinity' then round(extract(epoch from due_at - now()) / 3600)::int end as hours
          from catalog_internal.due where sku in (select sku from catalog.skus)`
      ).map(({ sku, reason, hours }) => [sku, [reason, hours]]),
    );

  test('move to the shorter intervals; others stay', async () => {
    await turn('swept', 'sweep', false, 3600, 23 * 3600);
    await turn('overdue', 'sweep', false, DAY, 2 * DAY);
    await turn('soon', 'sweep', false, 7200, 3600);
    await turn('by metadata', 'metadata', false, 3600, 6 * DAY);
    await turn('never', 'metadata', false, 3600, null);
    await turn('live', 'live', true, 3600, 10 * 3600);
    await turn('unlisted', 'unlisted', false, 3600, 10 * 3600);
    await turn('reported', 'changed', false, 3600, 23 * 3600);
    await turn('failing', 'sweep', false, 3600, 23 * 3600);
    await store.sql`update catalog_internal.due set failures = 2 where sku = 'failing'`;
    expect(await start({ SWEEP_INTERVAL: '4h', LIVE_INTERVAL: '2h' })).toMatchObject({
      kind: 'done',
      counts: { broughtForward: 5 },
    });
    expect(await dueIn()).toEqual({
      swept: ['sweep', 3],
      overdue: ['sweep', 0],
      soon: ['sweep', 1],
      'by metadata': ['sweep', 3],
      never: ['metadata', null],
      live: ['live', 1],
      unlisted: ['unlisted', 1],
      reported: ['changed', 23],
      failing: ['sweep', 23],
    });
    expect(await start({ SWEEP_INTERVAL: '4h', LIVE_INTERVAL: '2h' })).toMatchObject({
      counts: { broughtForward: 0 },
    });
  });

  test('move for tasks, too, unless one waits after a failure, is postponed or runs', async () => {
    const { sql } = store;
    const planned = async (task: string, hours: number | null, more = '', outcome = 'done') =>
      await sql.unsafe(`
        update catalog_internal.tasks set finished_at = now() - interval '10 minutes', outcome = '${outcome}',
          next_at = coalesce(now() + make_interval(hours => ${hours ?? 'null'}), 'infinity') ${more} where task = '${task}'`);
    const nextIn = async () =>
      Object.fromEntries(
        (
          await sql<{ task: string; minutes: number | null }[]>`
            select task, case when next_at < 'infinity' then round(extract(epoch from next_at - now()) / 60)::int end as minutes
            from catalog_internal.tasks where task in ('delta', 'manifest', 'catalog-check')`
        ).map(({ task, minutes }) => [task, minutes]),
      );
    const shorter = { DELTA_INTERVAL: '5m', MANIFEST_INTERVAL: '30m', CATALOG_CHECK_INTERVAL: '2h' };
    await planned('delta', 1);
    await planned('manifest', 7);
    await planned('catalog-check', 1);
    expect(await start(shorter)).toMatchObject({ counts: { broughtForward: 2 } });
    expect(await nextIn()).toEqual({ delta: 0, manifest: 20, 'catalog-check': 60 });
    await planned('delta', 1, ', failures = 1');
    await planned('manifest', null);
    await planned('catalog-check', 9, '', 'paused');
    expect(await start(shorter)).toMatchObject({ counts: { broughtForward: 0 } });
    await planned('delta', 1, ", running_until = now() + interval '1 minute'");
    expect(await start(shorter)).toMatchObject({ counts: { broughtForward: 0 } });
    expect(await nextIn()).toEqual({ delta: 60, manifest: null, 'catalog-check': 540 });
  });

  test('stay for live SKUs if refreshes are scarce, because those are planned by value', async () => {
    await turn('live', 'live', true, 3600, 10 * 3600);
    await store.sql`update catalog_internal.live_plan set refresh_threshold = 0.1, max_interval_minutes = 900`;
    await start({ LIVE_INTERVAL: '2h' });
    expect(await dueIn()).toEqual({ live: ['live', 10] });
  });
});

describe('maintenance', () => {
  const run = (historyMs = 0) => maintain(context(), { windowMs: 60_000, historyMs, dailyMs: 0 });

  test('releases expired claims, and continues at once while there are more', async () => {
    const held = async (count: number) => {
      await store.sql`
        insert into catalog_internal.due (sku, lane, reason, live, due_at, generation, claim, held_until)
        select 'S' || n, 6, 'sweep', false, now(), 1, 7, now() - interval '1 second' from generate_series(1, ${count}::int) n
        on conflict (sku) do update set held_until = excluded.held_until`;
    };
    await held(9999);
    expect(await run()).toMatchObject({ nextInMs: 60_000, counts: { released: 9999 } });
    await held(10_001);
    expect(await run()).toMatchObject({ nextInMs: 1000, counts: { released: 10_000 } });
    expect(await run()).toMatchObject({ nextInMs: 60_000, counts: { released: 1 } });
  });

  test('corrects sequences that a copy of the rows has left behind, so that daemons can continue with it', async () => {
    const { sql } = store;
    await sql`insert into catalog_internal.pace_sends (sent_at, lane) select now(), 'reprice' from generate_series(1, 9)`;
    const send = () =>
      sql`insert into catalog_internal.pace_sends (sent_at, lane) values (now(), 'reprice')`.execute();
    await sql`select setval(pg_get_serial_sequence('catalog_internal.pace_sends', 'id'), min(id), false) from catalog_internal.pace_sends`;
    await expect(send()).rejects.toMatchObject({ code: '23505' });
    await run();
    await send();
  });

  test('keeps the newest thousand samples', async () => {
    await store.sql`
      insert into catalog_internal.quarantine (source, reason, sample)
      select 'manifest', 'not-json', at::text from generate_series(1, 1005) as g(at) order by g.at`;
    await run();
    const [row] = await store.sql`
      select count(*)::int as count, min(sample::int) as first, max(sample::int) as last from catalog_internal.quarantine`;
    expect(row).toEqual({ count: 1000, first: 6, last: 1005 });
    await pruneQuarantine(store.sql, { keep: 1000 });
    expect(await store.sql`select from catalog_internal.quarantine`).toHaveLength(1000);
  });

  test('drops no history that is kept forever, and otherwise only once the clock has been watched for hours', async () => {
    const chunks = () =>
      store.sql`select inhrelid from pg_inherits where inhparent = 'catalog.price_history'::regclass`;
    const before = (await chunks()).length;
    await store.sql`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
      values ('A', '9', 1, 2, now() - interval '9 years')`;
    await store.sql`select setval('catalog_internal.change_positions', 5000001)`;
    expect(await run(0)).toMatchObject({ counts: { historyChunksDropped: 0 } });
    expect((await chunks()).length).toBeGreaterThanOrEqual(before);
    expect(await store.sql`select from catalog.price_history`).toHaveLength(1);
    // Nobody has watched the clock for long enough to know that nine years have passed.
    const rests = { historyChunksDropped: 0, retentionRests: 1 };
    await store.sql`update catalog_internal.clock set steady_since = clock_timestamp() - interval '30 minutes'`;
    expect(await run(HOUR)).toMatchObject({ nextInMs: 60_000, counts: rests });
    // A run from cron has just begun: the partner's next answer may confirm the clock.
    await store.sql`update catalog_internal.clock set steady_since = clock_timestamp()`;
    expect(await run(HOUR)).toMatchObject({ nextInMs: 5000, counts: rests });
    await watchedForHours(store.sql);
    const done = await run(HOUR);
    expect(done).toMatchObject({ nextInMs: 60_000, counts: { historyChunksDropped: 1 } });
    expect(done).not.toHaveProperty('counts.retentionRests');
  });

  test('completes all other steps if one fails, and then fails with the name of that step', async () => {
    const { sql } = store;
    const unlisted = ['unlisted', ...Array.from({ length: 7 }, (_, i) => `other ${i}`)];
    await knownSkus(sql, unlisted, { listed: false });
    await sql`update catalog.skus set state = 'not_found', asked_at = now() - interval '2 hours'`;
    await mark(sql, unlisted);
    await sql`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
      values ('A', '9', 1, 2, now() - interval '1 day')`;
    await sql.unsafe(`
      create table public.stock (sku text references catalog.skus);
      insert into public.stock values ('unlisted')`);
    try {
      expect(await run()).toEqual({
        kind: 'failed',
        nextInMs: 60_000,
        because: 'unknown-skus',
        hint: expect.any(String),
        problem: 'unknown-skus: SQLSTATE 23503, by stock_sku_fkey of public.stock',
      });
      expect(await sql`select sku from catalog.daily_prices`).toEqual([{ sku: 'A' }]);
      expect(await sql`select sku from catalog_internal.due`).toEqual([{ sku: 'unlisted' }]);
    } finally {
      await sql`drop table public.stock`;
    }
    expect(await run()).toMatchObject({ kind: 'done', counts: { forgotten: 1 } });
  });

  test('fails as a whole if Postgres accepts no writes', async () => {
    await using _ = await failing(store.sql, 'delete on catalog_internal.quarantine', { sqlState: '53100' });
    await expect(run()).rejects.toMatchObject({ code: '53100' });
  });
});
