import { beforeEach, describe, expect, test } from 'vitest';
import type { SkuJudgement } from '../../src/store/answer/judgements.ts';
import { followMoves } from '../../src/store/answer/mass-moves.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { learnBeliefs } from '../../src/store/trust/beliefs.ts';
import { daemon } from './doubting.ts';
import { line, baseline, standing } from './manifest.ts';
import { useStore } from './support.ts';

/* Results of refreshes while the delta led nowhere, or during a mass move, are counted separately once that is over. */

const store = useStore();
let token: string;

/**
 * Records refreshes of the cohorts from the hour before the token's on, with 200 and 20 moves each. The hours are
 * relative to the token's, because the current hour may end while a test runs.
 */
async function refreshed(): Promise<void> {
  await store.sql`
    insert into catalog_internal.calibration_hours (hour, cohort, bin, looks, "right", claimed, minutes, missed)
    select date_trunc('hour', token_at) + make_interval(hours => after), cohort, bin, 100, 90, 97, 500, 2
    from catalog_internal.sync, generate_series(-1, 2) after, unnest(array['snapshot', 'snapshot sizes', 'reported', 'live']) cohort, unnest(array[9, 10]) bin`;
}

/** Returns the number of refreshes of each cohort, the earliest hour first. */
async function found() {
  const rows = await store.sql<{ cohort: string; looks: string }[]>`
    select cohort, string_agg(looks::text, ' ' order by hour) as looks from (
      select cohort, hour, sum(looks) as looks from catalog_internal.calibration_hours group by 1, 2
    ) h group by cohort`;
  return Object.fromEntries(rows.map(({ cohort, looks }) => [cohort, looks]));
}

const ALL = '200 200 200 200';
const UNTOUCHED = { live: ALL, reported: ALL, snapshot: ALL, 'snapshot sizes': ALL };
/** From two hours ago on. */
const APART = {
  live: ALL,
  reported: '200',
  snapshot: '200',
  'snapshot sizes': '200',
  unreported: '400 400 400',
  'unreported sizes': '200 200 200',
};

const delta = async (toSnapshot: string) =>
  await applyDelta(store.sql, { since: token, toSnapshot, changed: [], removed: [], nowLive: [] });
const manifest = async () =>
  await baseline(store.url, [line('A')], { token: { snapshotId: 'm9', lines: 1 } });

beforeEach(async () => {
  const { sql } = store;
  await standing(store, line('A'));
  const [row] = await sql<[{ token: string }]>`
    update catalog_internal.sync set delta_checked_at = now(), token_at = now() - interval '2 hours' returning snapshot_id as token`;
  token = row.token;
  await refreshed();
});

const doubted = (doubt: string | null) => store.sql`
  update catalog_internal.sync set delta_doubt = ${doubt}, behind_since = now() - interval '40 minutes'`;

describe('results of refreshes before a delta that moves the token', () => {
  test.each([['behind'], ['distrusted'], ['suspected']])(
    'are set apart if the delta was %s for longer than it may be late',
    async (doubt) => {
      await doubted(doubt);
      await delta(token);
      expect(await found()).toEqual(UNTOUCHED);
      await delta('s9');
      expect(await found()).toEqual(APART);
    },
  );

  test.each([
    ['that was read all the while', null],
    ['that was suspected for some minutes only', 'suspected'],
  ])('(%s) stay, because they show what a delta leaves out', async (_, doubt) => {
    await doubted(doubt);
    await store.sql`update catalog_internal.sync set behind_since = now() - interval '20 minutes'`;
    await delta('s9');
    expect(await found()).toEqual(UNTOUCHED);
  });

  test('stay if the catalog merely differed', async () => {
    await store.sql`update catalog_internal.sync set catalog_differs_at = now() - interval '40 minutes'`;
    await delta('s9');
    expect(await found()).toEqual(UNTOUCHED);
  });

  test.each([
    ['after it was not read for long', null],
    ['after it said that the catalog is stale', '0014'],
  ])('are set apart %s', async (_, fault) => {
    await store.sql`
      update catalog_internal.sync set delta_checked_at = token_at, catalog_fault = ${fault}`;
    await delta('s9');
    expect(await found()).toEqual(APART);
  });

  test('are set apart for the last hour only, after a moment in which the catalog was stale', async () => {
    await store.sql`update catalog_internal.sync set catalog_fault = '0014'`;
    await delta('s9');
    expect(await found()).toMatchObject({ unreported: '400', snapshot: '200 200 200' });
  });
});

describe('results of refreshes before a manifest', () => {
  test.each<[string | null, object]>([
    ['behind', APART],
    // Nothing has shown that it stands still; if it does, only refreshes show that prices are wrong.
    ['distrusted', UNTOUCHED],
    [null, UNTOUCHED],
  ])('are set apart only if the delta was behind (state: %s)', async (doubt, after) => {
    await doubted(doubt);
    await manifest();
    expect(await found()).toEqual(after);
  });
});

describe('results of refreshes before the end of a mass move', () => {
  const usual = { odd: false, onePrice: false, lost: false, untold: true, factor: null, move: null };
  const judged = Array.from({ length: 200 }, (_, n): SkuJudgement => {
    return { sku: `S${n}`, judgement: { kind: 'none' }, confirmInMs: null, sample: usual };
  });
  const goingOn = async (kind: 'lost' | 'far') => {
    const [{ since }] = await store.sql<[{ since: Date }]>`
      update catalog_internal.mass_move set since = token_at + interval '1 hour', kind = ${kind}
      from catalog_internal.sync returning since`;
    return { since, kind, usual: null, factor: null, accepted: null } as const;
  };

  test('are set apart from an hour before it began', async () => {
    const known = await goingOn('lost');
    const ended = await followMoves(store.sql, daemon(), judged, known);
    expect(ended).toMatchObject({ event: 'ended' });
    expect(await found()).toEqual(APART);
  });

  test('stay if plausible prices moved far, because unreported moves must stay known', async () => {
    const known = await goingOn('far');
    const ended = await followMoves(store.sql, daemon(), judged, known);
    expect(ended).toMatchObject({ event: 'ended' });
    expect(await found()).toEqual(UNTOUCHED);
  });

  test('stay while it lasts', async () => {
    const known = await goingOn('lost');
    expect(await followMoves(store.sql, daemon(), judged.slice(1), known)).toBeNull();
    expect(await found()).toEqual(UNTOUCHED);
  });
});

test('results set apart teach how often prices move, but not what a delta leaves out', async () => {
  const { sql } = store;
  await learnBeliefs(sql);
  const [before] = await sql`select * from catalog_internal.beliefs`;
  await doubted('behind');
  await store.sql`update catalog_internal.sync set token_at = now() - interval '9 hours'`;
  await delta('s9');
  await learnBeliefs(sql);
  const [after] = await sql`select * from catalog_internal.beliefs`;
  const { snapshot_moved_part } = before ?? {};
  expect(before).not.toMatchObject({ waiting_moves: 0.02, missed_rate: 0 });
  const nothing = { waiting_moves: 0.02, missed_rate: 0, reported_moves: 0.9 };
  expect(after).toMatchObject({ ...nothing, snapshot_moved_part });
  expect(after?.['move_rate']).toBeCloseTo(before?.['move_rate'] as number, 4);
});

describe('while the delta is distrusted, a snapshot price counts as old as', () => {
  const silent = async (): Promise<number | null> => {
    const [row] = await store.sql<[{ minutes: number | null }]>`
      select case when silent_minutes < 'infinity' then round(silent_minutes + delta_interval / 60)::int end as minutes
      from catalog_internal.price_beliefs(), catalog_internal.settings`;
    return row.minutes;
  };

  test.each<[string, object, number | null]>([
    ['the last check that named nothing newer', {}, 20],
    ['the manifest, where that came later', { token_at: '15 minutes' }, 15],
    ['the manifest, where a newer snapshot is named', { seen_snapshot_id: 's9' }, 120],
    ['nothing, where it is trusted', { delta_doubt: null }, 10],
    ['any, where no delta was read for so long that it is late', { delta_checked_at: '40 minutes' }, null],
  ])('%s', async (_, more, minutes) => {
    const { sql } = store;
    const at = {
      delta_checked_at: '10 minutes',
      catalog_checked_at: '20 minutes',
      token_at: '2 hours',
      ...more,
    };
    const ago = (text: string) => sql`now() - ${text}::interval`;
    await sql`
      update catalog_internal.sync set delta_doubt = ${'delta_doubt' in more ? null : 'distrusted'},
        seen_snapshot_id = ${'seen_snapshot_id' in more ? 's9' : token},
        delta_checked_at = ${ago(at.delta_checked_at)}, catalog_checked_at = ${ago(at.catalog_checked_at)},
        token_at = ${ago(at.token_at)}`;
    expect(await silent()).toBe(minutes);
  });
});
