import { describe, expect, test } from 'vitest';
import { noteCatalogFault } from '../../src/store/catalog/tokens.ts';
import { storeIncident } from '../../src/store/live/limits.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { countCatalog } from '../../src/store/status/counts-reader.ts';
import { line, standing } from './manifest.ts';
import { someCatalog } from './some-catalog.ts';
import {
  found,
  HOUR,
  knownSkus,
  ledger,
  answerAsked,
  mark,
  passHours,
  removeByDelta,
  useStore,
} from './support.ts';
import { watchNow } from './watching.ts';

const store = useStore();

interface Trust {
  readonly sku: string;
  readonly doubt: string | null;
  readonly actionable: boolean;
  readonly stale: boolean;
  readonly fresh: boolean;
  readonly past_target: boolean;
  readonly owed: boolean;
  readonly owed_reason: string | null;
  readonly owed_lane: string | null;
  readonly owed_since: Date | null;
  readonly deferrals: number;
  readonly failures: number;
  readonly next_look_at: Date | null;
}

async function trust(sku: string): Promise<Trust> {
  const [row] = await store.sql<Trust[]>`select * from catalog.sku_trust where sku = ${sku}`;
  if (row === undefined) throw new Error(`no ${sku}`);
  return row;
}

/** Lets prices grow older than the ledger shows, as if nobody had refreshed them for so long. */
const age = async (hours: number) =>
  await store.sql`update catalog.skus set priced_at = priced_at - make_interval(secs => ${hours * 3600})`;

describe('trust', () => {
  test.each([0.11, 0.22, 0.33])(
    'agrees between the view, current_prices and fresh_skus (seed %d)',
    async (seed) => {
      const { sql } = store;
      await someCatalog(sql, 2000, seed);
      await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now()`;
      const figures = await countCatalog(sql);
      const counted = await sql<{ priceSource: string; count: number }[]>`
      select coalesce(price_source, 'unknown') as "priceSource", (count(*) filter (where fresh))::int as count
      from catalog.sku_trust where state = 'priced' group by 1 order by 1`;
      expect([...counted]).toEqual(figures.freshSkus);
      // `stale` written out, without the view, for every SKU with prices.
      const [{ differing, stale }] = await sql<[{ differing: number; stale: number }]>`
      select (count(*) filter (where c.stale is distinct from plain.stale or t.stale is distinct from plain.stale))::int as differing,
        (count(*) filter (where c.stale))::int as stale
      from catalog.skus s
      join catalog.current_prices c on c.sku = s.sku
      join catalog.sku_trust t on t.sku = s.sku
      left join catalog_internal.due d on d.sku = s.sku
      cross join lateral (
        select coalesce(d.due_at <= now() and d.reason <> 'metadata', false)
          or ((s.price_source is not distinct from 'live' or coalesce(d.live and d.reason = 'live', false) or not s.in_manifest)
            and s.priced_at < now() - interval '30 minutes') as stale
      ) plain`;
      expect(differing).toBe(0);
      expect(stale).toBeGreaterThan(100);
    },
  );

  test.each([0.44, 0.55])('makes only likely prices without a doubt actionable (seed %d)', async (seed) => {
    const { sql } = store;
    await someCatalog(sql, 2000, seed);
    const counts = async () => {
      const [row] = await sql<
        [{ fresh: number; reported: number; young: number; live: number; wrong: number }]
      >`
      select (count(*) filter (where fresh))::int as fresh,
        (count(*) filter (where actionable and price_source is distinct from 'live'))::int as reported,
        (count(*) filter (where actionable and price_source is distinct from 'live' and price_age <= interval '30 minutes'))::int as young,
        (count(*) filter (where actionable and price_source = 'live'))::int as live,
        (count(*) filter (where actionable <> (doubt is null and coalesce(p_right, 0) >= 0.95)
          or size_actionable <> (doubt is null and coalesce(size_p_right, 0) >= 0.95)
          or (p_right is null) <> (state <> 'priced') or p_right not between 0 and size_p_right or size_p_right > 1
          or actionable and not fresh and price_source is distinct from 'live' or fresh is null or stale is null
          or past_target is null or owed <> (owed_lane is not null) or owed <> (owed_reason is not null)))::int as wrong
      from catalog.sku_trust`;
      return row;
    };
    await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now()`;
    const well = await counts();
    expect([well.wrong, well.reported > 0, well.live > 0]).toEqual([0, true, true]);
    await staleCatalog();
    const faulty = await counts();
    // Nothing reports moves, so they count by age, like live ones.
    expect(faulty).toMatchObject({ fresh: well.fresh, reported: well.young, live: well.live, wrong: 0 });
    expect([well.young > 0, well.young < well.reported]).toEqual([true, true]);
    const differing = await sql`
        select from catalog.current_prices c join catalog.sku_trust t using (sku)
        where c.actionable is distinct from (t.size_actionable and c.price is not null)`;
    expect(differing).toHaveLength(0);
  });
});

const lastDelta = (ago: string) =>
  store.sql`update catalog_internal.sync set delta_checked_at = now() - ${ago}::interval`;

/** Lets something happen, followed by an hour without a refresh. */
async function anHourAfter(happens: Promise<unknown>): Promise<void> {
  await happens;
  await age(1);
}

/** What happens to a SKU 'A' that was refreshed just now, beside a live one 'L', and the doubt that each then has. */
const staleCatalog = () => noteCatalogFault(store.sql, { kind: 'snapshot-stale' });

const DOUBTS: [what: string, happens: () => Promise<unknown>, ofA: string | null, ofLive: string | null][] = [
  ['nothing', async () => {}, null, null],
  ['a report of the delta', () => mark(store.sql, ['A']), 'owed', null],
  [
    'a refresh that is to refresh metadata',
    () => mark(store.sql, ['A', 'L'], 'metadata'),
    'size_type',
    'size_type',
  ],
  ['a new watch', () => watchNow(store.sql, 'A'), 'owed', null],
  ['a removal', () => removeByDelta(store.sql, 'A'), 'removed', null],
  ['0009', () => answerAsked(store.sql, { sku: 'A', kind: 'not_found' }), 'not_found', null],
  ['a deferral', () => answerAsked(store.sql, { sku: 'L', kind: 'deferred', waitMs: HOUR }), null, 'owed'],
  ['an error', () => answerAsked(store.sql, { sku: 'A', kind: 'error', waitMs: HOUR }), 'owed', null],
  ['an hour without a refresh', () => age(1), null, 'past_target'],
  ['a day and more without a refresh', () => age(25), 'past_target', 'past_target'],
  ['a turn that has come', () => passHours(store.sql, 11), null, null],
  ['a sweep that has come', () => passHours(store.sql, 21), 'owed', null],
  ['0014 of the catalog, just asked', staleCatalog, null, null],
  ['0014 of the catalog', () => anHourAfter(staleCatalog()), 'catalog_stale', 'past_target'],
  [
    'an old snapshot',
    () =>
      anHourAfter(
        store.sql`update catalog_internal.sync set snapshot_generated_at = now() - interval '25 hours'`,
      ),
    'catalog_stale',
    'past_target',
  ],
  [
    'no baseline',
    () => store.sql`update catalog_internal.sync set manifest_applied_at = null`,
    'no_baseline',
    null,
  ],
  ['a delta of half an hour ago', () => lastDelta('29 minutes'), null, null],
  [
    'no delta for more than half an hour',
    () => anHourAfter(lastDelta('31 minutes')),
    'delta_late',
    'past_target',
  ],
  ['no delta for as long, just asked', () => lastDelta('31 minutes'), null, null],
  [
    'no delta for that long where it is asked for once an hour',
    async () => {
      await lastDelta('119 minutes');
      await store.sql`update catalog_internal.settings set delta_interval = 3600`;
    },
    null,
    null,
  ],
  [
    'an incident',
    () => storeIncident(store.sql, () => 'live-count').then(() => age(0.6)),
    'incident',
    'past_target',
  ],
  ['an incident, just asked', () => storeIncident(store.sql, () => 'live-count'), null, null],
];

test.each(DOUBTS)(
  'after %s: the doubts of a snapshot-priced and a live SKU',
  async (_what, happens, ofA, ofLive) => {
    const { sql } = store;
    await standing(store, line('A'), line('L', { priceSource: 'live' }));
    await sql`update catalog.skus set priced_at = now()`;
    await sql`update catalog_internal.sync set snapshot_generated_at = now(), delta_checked_at = now()`;
    await happens();
    expect([(await trust('A')).doubt, (await trust('L')).doubt]).toEqual([ofA, ofLive]);
    const actionable =
      await sql`select distinct sku from catalog.current_prices where actionable order by sku`;
    expect(actionable.map(({ sku }) => sku as string)).toEqual(
      [ofA === null ? 'A' : '', ofLive === null ? 'L' : ''].filter((sku) => sku !== ''),
    );
  },
);

describe('a SKU’s row', () => {
  test('contains what is due, why, since when, and how often it was postponed', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await mark(sql, ['A'], 'new');
    expect(await trust('A')).toMatchObject({ doubt: 'pending', owed_reason: 'new', owed_lane: 'new' });
    await answerAsked(sql, found('A', { 9: 90 }));
    expect(await trust('A')).toMatchObject({
      owed: false,
      owed_reason: null,
      owed_lane: null,
      owed_since: null,
    });
    await answerAsked(sql, { sku: 'A', kind: 'deferred', waitMs: HOUR });
    expect(await trust('A')).toMatchObject({
      owed_reason: 'changed',
      owed_lane: 'deferred',
      deferrals: 1,
      owed_since: expect.any(Date),
    });
    await passHours(sql, 2);
    await sql`update catalog_internal.due set held_until = null`;
    await answerAsked(sql, { sku: 'A', kind: 'error', waitMs: HOUR });
    expect(await trust('A')).toMatchObject({ owed_lane: 'deferred', deferrals: 1, failures: 1, stale: true });
    await sql`update catalog_internal.due set held_until = null`;
    await answerAsked(sql, found('A', { 9: 90 }));
    await refreshSkus(sql, ['A']);
    expect(await trust('A')).toMatchObject({
      owed_reason: 'refresh',
      owed_lane: 'changed',
      deferrals: 0,
      failures: 0,
    });
    const lanes = ['metadata', 'sweep', 'live'];
    for (const reason of lanes) {
      await answerAsked(sql, found('A', { 9: 90 }));
      await mark(sql, ['A'], reason);
      expect(await trust('A')).toMatchObject({ owed_reason: reason, owed_lane: reason });
    }
  });

  test('has the target of its class, even if sweeps are off or metadata comes sooner', async () => {
    const { sql } = store;
    await standing(store, line('A'), line('L', { priceSource: 'live' }));
    const targets = async () => {
      const rows = await sql`
        select (extract(epoch from target_age) / 3600)::float8 as hours from catalog.sku_trust order by sku`;
      return rows.map(({ hours }) => hours as number);
    };
    expect(await targets()).toEqual([24, 0.5]);
    await sql`update catalog_internal.settings set sweep_interval = 0`;
    expect(await targets()).toEqual([168, 0.5]);
    await sql`update catalog_internal.settings set sweep_interval = 7200, metadata_interval = 3600, live_interval = 60 * 15`;
    expect(await targets()).toEqual([1, 0.25]);
  });
});

describe('the estimate of the next refresh', () => {
  /** Sets up a daemon at work at 60 requests a minute with 100 SKUs each; `counted` is the last count of due SKUs. */
  async function atWork(counted: Record<string, number> | null, secondsAgo = 10): Promise<void> {
    const { sql } = store;
    await sql`update catalog_internal.tasks set finished_at = now() where task = 'maintenance'`;
    await sql`insert into catalog_internal.pace (ceiling, raised_at) values (59, now() + interval '1 hour')`;
    await sql`update catalog_internal.settings set rate_share = 61`;
    if (counted === null) return;
    const due = Object.entries(counted).map(([reason, count]) => ({ reason, count, oldestAgeSeconds: 1 }));
    await sql`
      insert into catalog_internal.catalog_counts (counted_at, counted_in_ms, counts)
      values (now() - make_interval(secs => ${secondsAgo}), 1, ${sql.json({ due })})`;
  }
  /** Returns minutes from now. */
  async function minutes(sku: string): Promise<number | null> {
    const [row] = await store.sql<[{ minutes: number | null }]>`
      select (extract(epoch from next_look_at - now()) / 60)::float8 as minutes from catalog.sku_trust where sku = ${sku}`;
    return row.minutes;
  }

  test('is the plan if nothing is due, and the end of the wait of a postponed SKU', async () => {
    const { sql } = store;
    await atWork(null);
    await standing(store, line('A'), line('B'), line('L', { priceSource: 'live' }));
    expect(await minutes('A')).toBeCloseTo(20 * 60, 0);
    expect(await minutes('L')).toBeCloseTo(10 * 60, 0);
    await answerAsked(sql, { sku: 'A', kind: 'deferred', waitMs: HOUR });
    expect(await minutes('A')).toBeCloseTo(60, 0);
    await sql`update catalog_internal.pace set backoff_until = now() + interval '70 minutes'`;
    expect(await minutes('A')).toBeCloseTo(70, 0);
    expect((await ledger(sql)).get('A')?.heldFor).toBeCloseTo(1, 1);
  });

  test('is the time for the work ahead of it at the current pace if a refresh is due', async () => {
    const { sql } = store;
    await atWork({ changed: 11_800, new: 5900, sweep: 59_000, live: 2950, deferred: 0 });
    await standing(store, line('A'), line('L', { priceSource: 'live' }));
    await mark(sql, ['A', 'L'], 'changed');
    expect(await minutes('A')).toBeCloseTo(2, 1);
    expect(await minutes('L')).toBeCloseTo(10, 1);
    await answerAsked(sql, found('A'), found('L'));
    await mark(sql, ['A'], 'sweep');
    await mark(sql, ['L'], 'live');
    expect(await minutes('A')).toBeCloseTo(13, 1);
    await sql`update catalog_internal.live_ceiling set per_minute = 59`;
    expect(await minutes('L')).toBeCloseTo(50, 1);
  });

  test.each([
    ['an old count', async () => {}, 400],
    [
      'no daemon',
      () => store.sql`update catalog_internal.tasks set finished_at = now() - interval '6 minutes'`,
      10,
    ],
    ['refusals', () => store.sql`update catalog_internal.pace set refusal = 'unauthorised'`, 10],
  ])('is unknown with %s', async (_what, happens, secondsAgo) => {
    await atWork({ changed: 10 }, secondsAgo);
    await knownSkus(store.sql, ['A']);
    await mark(store.sql, ['A']);
    await happens();
    expect(await minutes('A')).toBeNull();
  });

  test('is unknown for a SKU that nobody will refresh', async () => {
    await atWork({ changed: 10 });
    await standing(store, line('A'));
    await removeByDelta(store.sql, 'A');
    await answerAsked(store.sql, { sku: 'A', kind: 'not_found' });
    expect(await trust('A')).toMatchObject({ next_look_at: null, owed: false, doubt: 'removed' });
  });
});
