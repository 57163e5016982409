import { expect, test } from 'vitest';
import { restoreLostRows } from '../../src/store/ledger/lost-rows.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { healthOf } from '../support/health.ts';
import { setClockAhead } from '../support/movable-clock.ts';

const store = useStore({ movableClock: true });

interface Line extends Record<string, unknown> {
  readonly err?: { readonly code?: string };
}

/** Returns the lines about the missing function: on a busy machine a reading may also have timed out. */
const onTheFunction = (lines: readonly Line[]) => lines.filter(({ err }) => err?.code === '42883');
const named = (lines: readonly Line[], name: string) => lines.filter(({ event }) => event === name);

/** Returns what a daemon on this database exposes and logs. */
function daemon() {
  const lines: Line[] = [];
  const log = createLogger({
    level: 'info',
    secrets: () => [],
    destination: { write: (line: string) => lines.push(JSON.parse(line) as Line) },
  });
  const health = healthOf(store.sql, log);
  const value = async (metric: string) =>
    new RegExp(`^catalog_mirror_${metric} (.*)$`, 'm').exec(await health.metrics())?.[1];
  return {
    lines,
    reasons: async () => (await health.read()).health.reasons.map(({ text }) => text),
    isRead: async () => (await value('mirror_stats_available')) === '1',
    /** Waits for a scrape with this value: on a busy machine a reading may take longer than a scrape waits. */
    shows: (metric: string, expected: string) =>
      eventually(async () => expect(await value(metric)).toBe(expected)),
  };
}

test.each([-3600, 0, 3600])(
  'a back-off follows the clock of Postgres, here %d seconds ahead of the host’s',
  async (seconds) => {
    await setClockAhead(store.sql, seconds);
    await store.sql`insert into catalog_internal.pace (ceiling, raised_at, backoff_until) values (100, now(), now() + interval '1 min')`;
    const { shows } = daemon();
    await shows('backing_off', '1');
    await store.sql`update catalog_internal.pace set backoff_until = now()`;
    await shows('backing_off', '0');
  },
);

const rename = (from: string, to: string) =>
  store.sql.unsafe(`alter function catalog_internal.${from}() rename to ${to}`);

test('a failing reading is logged once with its reason, and once when it is over', async () => {
  const { lines, isRead, shows } = daemon();
  await shows('mirror_stats_available', '1');
  lines.length = 0;
  await rename('followers_now', 'followers_gone');
  try {
    for (let scrape = 0; scrape < 3; scrape += 1) expect(await isRead()).toBe(false);
    expect(onTheFunction(lines)).toMatchObject([{ level: 'warn', event: 'status.unread', times: 1 }]);
  } finally {
    await rename('followers_gone', 'followers_now');
  }
  await shows('mirror_stats_available', '1');
  expect(named(lines, 'status.read')).toMatchObject([{ level: 'info' }]);
  expect(named(lines, 'status.read')[0]?.['times']).toBeGreaterThan(1);
});

test('deleted rows are reported with what restores them, until they are back', async () => {
  const { reasons } = daemon();
  await store.sql`delete from catalog_internal.live_plan`;
  expect(await reasons()).toEqual([
    'the mirror cannot be read: catalog_internal.live_plan has no row; a daemon makes them anew within a minute, ' +
      '`catalog-mirror migrate` at once',
  ]);
  await restoreLostRows(store.sql);
  expect((await reasons()).join()).not.toContain('cannot be read');
});

test('a failing count of the catalog is logged with its reason, even while an old one is shown, and so is its end', async () => {
  const { lines, shows } = daemon();
  const fails = 'catalog_internal.catalog_counts';
  await shows('mirror_stats_available', '1');
  // A catalog that takes long to count, whose last counts are shown while new ones are made.
  await store.sql`update ${store.sql(fails)} set counted_at = now() - interval '40 minutes', counted_in_ms = 60000`;
  await store.sql`alter function catalog_internal.put_off_by(catalog_internal.due) rename to put_off_gone`;
  try {
    await shows('mirror_stats_available', '1');
    await eventually(() =>
      expect(onTheFunction(lines)).toMatchObject([{ level: 'warn', event: 'counts.failed' }]),
    );
    await store.sql`delete from ${store.sql(fails)}`;
    const { isRead: isReadAnew, lines: other } = daemon();
    expect(await isReadAnew()).toBe(false);
    await eventually(() =>
      expect(onTheFunction(other)).toMatchObject([{ event: 'counts.failed', times: 1 }]),
    );
  } finally {
    await store.sql`alter function catalog_internal.put_off_gone(catalog_internal.due) rename to put_off_by`;
  }
  await shows('mirror_stats_available', '1');
  const since = lines.indexOf(onTheFunction(lines)[0] ?? {});
  await eventually(() =>
    expect(named(lines.slice(since), 'counts.recovered')).toMatchObject([{ level: 'info' }]),
  );
});

test("a database without the mirror's tables is reported with what to do", async () => {
  const { reasons } = daemon();
  await store.sql`alter schema catalog_internal rename to elsewhere`;
  try {
    expect(await reasons()).toEqual([
      expect.stringMatching(
        /^tables of the mirror are not in this database \((?:42P01|3F000)\): restore a backup; where all are gone, `catalog-mirror migrate` /,
      ),
    ]);
  } finally {
    await store.sql`alter schema elsewhere rename to catalog_internal`;
  }
  expect((await reasons()).join()).not.toContain('not in this database');
});

test('a reading that takes longer than a second is waited for', async () => {
  const { shows } = daemon();
  const [{ result }] = await store.sql<[{ result: string }]>`
    select pg_get_function_result('catalog_internal.followers_now()'::regprocedure) as result`;
  await rename('followers_now', 'followers_quick');
  try {
    await store.sql
      .unsafe(`create function catalog_internal.followers_now() returns ${result} language plpgsql as $$
      #variable_conflict use_column
      begin perform pg_sleep(1.5); return query select * from catalog_internal.followers_quick(); end $$`);
    await shows('mirror_stats_available', '1');
  } finally {
    await store.sql.unsafe('drop function catalog_internal.followers_now()');
    await rename('followers_quick', 'followers_now');
  }
});

test('a scrape counts how far followers are behind, and reads at most one change of each', async () => {
  const { sql } = store;
  await sql`insert into catalog.skus (sku, state, in_manifest) values ('A', 'priced', true)`;
  // Rows in all three tables, interleaved.
  for (const batch of [3, 2, 4]) {
    await sql`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at) select 'A', n::text, 1, n, now() from generate_series(2, 6) n`;
    await sql`insert into catalog.product_history (sku, field, old_value, new_value, observed_at) values ('A', 'name', 'x', ${`y${batch}`}, now())`;
    const skus = Array.from({ length: batch }, (_, n) => `B${n}`);
    await sql`
      with last as (select setval('catalog_internal.change_positions', nextval('catalog_internal.change_positions') + ${batch - 1}) as id)
      insert into catalog_internal.change_batches (id, last_id, kind, skus, sizes, prices, observed_at)
      select id - ${batch - 1}, id, 'price', ${skus}::text[], ${skus}::text[], ${skus.map((_, n) => n + 1)}::int[], now() from last`;
  }
  const [{ oldest }] = await sql<[{ oldest: string }]>`select catalog.changes_oldest()::text as oldest`;
  const every = await sql<
    { position: string }[]
  >`select "position"::text from catalog.changes(${oldest}, 1000)`;
  expect(every).toHaveLength(3 * 6 + 9);
  const positions = [oldest, ...every.map(({ position }) => position)];
  await sql`
    insert into catalog_internal.followers (name, delivery, "position")
    select 'f' || p, 'webhook', p::bigint from unnest(${positions}::text[]) p`;
  await sql`alter function catalog.changes(bigint, integer) rename to changes_unbounded`;
  try {
    await sql.unsafe(`create function catalog.changes(after bigint, most integer) returns table (observed_at timestamptz)
      language plpgsql as $$ #variable_conflict use_column
      begin
        if most > 1 then raise exception 'all are read'; end if;
        return query select observed_at from catalog.changes_unbounded(after, most);
      end $$`);
    const behind = await sql<{ behind: number; timed: boolean }[]>`
      select behind, behind_seconds > 0 as timed from catalog_internal.followers_now() order by "position"`;
    const expected = positions.map((_, n) => ({
      behind: every.length - n,
      timed: n < every.length,
    }));
    expect(behind.map((row) => ({ ...row }))).toEqual(expected);
    const [{ bounded }] = await sql<[{ bounded: number }]>`
      select catalog_internal.changes_after(${oldest}, 10) as bounded`;
    expect(bounded).toBe(10);
  } finally {
    await sql`drop function if exists catalog.changes(bigint, integer)`;
    await sql`alter function catalog.changes_unbounded(bigint, integer) rename to changes`;
    await sql`delete from catalog_internal.followers`;
  }
});
