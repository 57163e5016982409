import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { unmovedProbability, withPrior } from '../../src/store/live/rate-prior.ts';
import { useStore } from './support.ts';

const store = useStore();

/** Nothing that is stored or measured is so small that products of it underflow in Postgres. */
const double = (min: number, max: number) =>
  fc.double({ min, max, noNaN: true }).map((value) => (value < 1e-12 ? 0 : value));

const rate = {
  alpha: double(0.01, 200),
  beta: double(0.1, 50_000),
};
const seen = double(0, 300);
const part = double(0, 1);
const minutes = fc.oneof(double(0, 60), double(0, 500_000));

interface LiveCase {
  readonly alpha: number;
  readonly beta: number;
  readonly seen: number;
  readonly moved: number;
  readonly minutes: number;
  readonly believed: number;
  readonly prior: number;
  readonly hazard: number | null;
  readonly hinted: number | null;
}

const liveCase: fc.Arbitrary<LiveCase> = fc
  .record({
    ...rate,
    seen,
    part,
    minutes,
    believed: part,
    prior: double(0.5, 20_000).map((value) => Math.max(0.5, value)),
    hazard: fc.option(double(0, 5)),
    hinted: fc.option(double(0, 4)),
  })
  .map(({ part: moved, ...more }) => ({ ...more, moved: moved * more.seen }));

interface SnapshotCase {
  readonly movedPart: number;
  readonly reportedMoves: number;
  readonly waitingMoves: number;
  readonly missedRate: number;
  readonly moveRate: number;
  readonly silent: number;
  readonly minutes: number;
}

const perMinute = double(0, 0.1);
const snapshotCase: fc.Arbitrary<SnapshotCase> = fc.record({
  movedPart: part,
  reportedMoves: part,
  waitingMoves: part,
  missedRate: perMinute,
  moveRate: perMinute,
  silent: fc.oneof(fc.constant(0), fc.constant(Infinity), double(0, 10_000)),
  minutes,
});

/** Cohorts whose SKUs have their own rates. */
const BY_RATE = new Set(['live', 'unlisted']);

interface Answer {
  readonly sku: number;
  readonly size: number;
}

/** Returns p_right of live cases, read in one statement. */
async function ofLive(cases: readonly LiveCase[]): Promise<readonly Answer[]> {
  const column = (of: (one: LiveCase) => number) => cases.map(of);
  return await store.sql<Answer[]>`
    select catalog_internal.p_right(true, false, false, minutes, r, e) as sku, catalog_internal.p_right(true, false, true, minutes, r, e) as size
    from unnest(${column((c) => c.alpha)}::float8[], ${column((c) => c.beta)}::float8[], ${column((c) => c.seen)}::real[],
      ${column((c) => c.moved)}::real[], ${column((c) => c.minutes)}::float8[], ${column((c) => c.believed)}::float8[], ${column((c) => c.prior)}::float8[],
      ${cases.map((c) => c.hazard)}::float8[], ${cases.map((c) => c.hinted)}::float8[]) with ordinality as c(alpha, beta, seen, moved, minutes, believed, prior, hazard, hinted, at)
    cross join lateral (select jsonb_populate_record(null::catalog_internal.live_rates, jsonb_build_object('sku', 'A', 'alpha', alpha, 'beta', beta,
      'sizes_seen', seen, 'sizes_moved', moved, 'hazard', hazard, 'hint_hazard', hinted)) as r) rates
    cross join lateral (select row(believed, 0, 0, 0, 0, 0, prior, 0, 0.95, '1 hour', 0)::catalog_internal.held_beliefs as e) held
    order by at`;
}

/** Between the moves expected of an unreported SKU and of a reported one, or below both. */
const lateMoves = ({ reportedMoves }: SnapshotCase) => reportedMoves / 2;

async function ofSnapshot(cohort: string, cases: readonly SnapshotCase[]): Promise<readonly Answer[]> {
  const column = (of: (one: SnapshotCase) => number) => cases.map(of);
  const reported = cohort === 'again' ? null : cohort === 'reported';
  return await store.sql<Answer[]>`
    select catalog_internal.p_right(false, ${reported}, false, minutes, null, e) as sku, catalog_internal.p_right(false, ${reported}, true, minutes, null, e) as size
    from unnest(${column((c) => c.movedPart)}::float8[], ${column((c) => c.reportedMoves)}::float8[], ${column((c) => c.waitingMoves)}::float8[],
      ${column((c) => c.missedRate)}::float8[], ${column((c) => c.moveRate)}::float8[], ${column((c) => c.silent)}::float8[],
      ${column((c) => c.minutes)}::float8[], ${column(lateMoves)}::float8[])
      with ordinality as c(part, reported, waiting, missed, rate, silent, minutes, late, at)
    cross join lateral (select row(1, part, reported, waiting, missed, rate, 30, silent, 0.95, '1 hour', late)::catalog_internal.held_beliefs as e) held
    order by at`;
}

/**
 * Multiplies the chances that each of three things has not happened to a snapshot-priced SKU, or to one of its
 * sizes.
 */
function unmoved(cohort: string, one: SnapshotCase, of: number): number {
  const moves = {
    snapshot: one.waitingMoves,
    reported: one.reportedMoves,
    again: Math.max(one.waitingMoves, lateMoves(one)),
  }[cohort];
  const waiting = 1 - of * (moves ?? 0);
  const missed = Math.exp(-Math.min(60, one.missedRate * one.minutes * of));
  const silent = (1 + 2 * one.moveRate * Math.min(one.minutes, one.silent) * of) ** -0.5;
  return waiting * missed * silent;
}

const many = <T>(of: fc.Arbitrary<T>) => fc.array(of, { minLength: 1, maxLength: 50, size: 'max' });
const LEAST = Math.exp(-60);

describe('the probability of a price', () => {
  test('with a rate of its own equals what the policy of live refreshes uses', async () => {
    await fc.assert(
      fc.asyncProperty(many(liveCase), async (cases) => {
        const answers = await ofLive(cases);
        for (const [
          at,
          { alpha, beta, prior, seen: sizes, moved, minutes: tau, believed, hazard, hinted },
        ] of cases.entries()) {
          // As Postgres stores them.
          const [held, ofThem] = [Math.fround(sizes), Math.fround(moved)];
          const sizePart = (ofThem + 20 * believed) / (held + 20);
          const expected = [1, sizePart].map((each) =>
            Math.max(
              LEAST,
              unmovedProbability(withPrior({ alpha, beta }, { minutes: prior }), tau, each) *
                Math.exp(-(hazard ?? 0) - (hinted ?? 0)),
            ),
          );
          const { sku, size } = answers[at] as Answer;
          expect(sku).toBeCloseTo(expected[0] as number, 9);
          expect(size).toBeCloseTo(expected[1] as number, 6);
        }
      }),
      { numRuns: 20 },
    );
  });

  test.each(['snapshot', 'reported', 'again'])(
    'of the cohort %s is that of three things not having happened',
    async (cohort) => {
      await fc.assert(
        fc.asyncProperty(many(snapshotCase), async (cases) => {
          const answers = await ofSnapshot(cohort, cases);
          for (const [at, one] of cases.entries()) {
            const { sku, size } = answers[at] as Answer;
            expect(sku).toBeCloseTo(unmoved(cohort, one, 1), 9);
            expect(size).toBeCloseTo(unmoved(cohort, one, one.movedPart), 9);
          }
        }),
        { numRuns: 20 },
      );
    },
  );

  test('never grows with age, and is in [0, 1], for a size no less than for its SKU', async () => {
    const older = fc
      .tuple(minutes, minutes)
      .map((both) => both.toSorted((a, b) => a - b) as [number, number]);
    const twice = <T extends { readonly minutes: number }>(one: T, [young, old]: [number, number]) => [
      { ...one, minutes: young },
      { ...one, minutes: old },
    ];
    const inOrder = (answers: readonly Answer[]) => {
      for (const { sku, size } of answers) {
        expect(sku).toBeGreaterThanOrEqual(0);
        expect(size).toBeGreaterThanOrEqual(sku - 1e-12);
        expect(size).toBeLessThanOrEqual(1);
      }
      for (const [at, { sku, size }] of answers.entries())
        if (at % 2 === 1) {
          expect(sku).toBeLessThanOrEqual((answers[at - 1] as Answer).sku);
          expect(size).toBeLessThanOrEqual((answers[at - 1] as Answer).size);
        }
    };
    await fc.assert(
      fc.asyncProperty(
        many(fc.tuple(liveCase, snapshotCase, older)),
        fc.constantFrom('snapshot', 'reported', 'again'),
        async (cases, cohort) => {
          inOrder(await ofLive(cases.flatMap(([live, , ages]) => twice(live, ages))));
          inOrder(
            await ofSnapshot(
              cohort,
              cases.flatMap(([, snapshot, ages]) => twice(snapshot, ages)),
            ),
          );
        },
      ),
      { numRuns: 10 },
    );
  });
});

describe('the first probability, before anything was learned', () => {
  test.each([
    ['live', 0, 1],
    ['live', 1.987, 0.95],
    ['unlisted', 30, 0.574],
    ['snapshot', 0, 0.98],
    ['snapshot', 500_000, 0.98],
    ['reported', 1, 0.1],
  ])('%s after %d minutes: %d', async (cohort, after, expected) => {
    const { sql } = store;
    await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now()`;
    const [{ p }] = await sql<[{ p: number }]>`
      select catalog_internal.p_right(${BY_RATE.has(cohort)}, ${cohort === 'reported'}, false, ${after}, null, e) as p from catalog_internal.price_beliefs() e`;
    expect(p).toBeCloseTo(expected, 3);
  });

  test('a snapshot price gets less likely for as long as nothing reports its moves', async () => {
    const { sql } = store;
    const after = async (delta: string) => {
      await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now() - ${delta}::interval`;
      const [{ p }] = await sql<[{ p: number }]>`
        select catalog_internal.p_right(false, false, false, 100000, null, e) as p from catalog_internal.price_beliefs() e`;
      return p;
    };
    const [well, late, aDay] = [await after('1 minute'), await after('25 minutes'), await after('25 hours')];
    expect(well).toBeCloseTo(0.98, 6);
    expect(late).toBeLessThan(well);
    expect(aDay).toBeLessThan(late - 0.1);
  });
});
