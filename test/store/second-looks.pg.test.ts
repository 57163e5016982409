import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { readDeltaAudit } from '../../src/store/catalog/audit.ts';
import { adoptAccount } from '../../src/store/setup/account.ts';
import { learnBeliefs, readLatePrices } from '../../src/store/trust/beliefs.ts';
import { type CalibrationBin, storeCalibration } from '../../src/store/trust/calibration.ts';
import { lookingTwice, NEW, OLD } from './second-looks.ts';
import { claimAll, found, knownSkus, mark, pricesOf, REFRESH, useStore } from './support.ts';

const store = useStore();
const { answer, report, removed, reported, stands, pass, priced, next } = lookingTwice(store);

const SWEEP = { reason: 'sweep', lane: 6, minutes: 1200, again: false };
const AGAIN = { reason: 'again', lane: 5, minutes: 17, again: true };
/** Returns the counts of second checks, `late` of which have shown that the answer before was late. */
const looked = (looks: number, late = 0): CalibrationBin => ({
  cohort: 'again',
  bin: 10,
  looks,
  right: looks - late,
  claimed: 0,
  minutes: 0,
  missed: 0,
  leverage: 0,
  judged: looks,
  late,
});
const TRUSTED = { actionable: true, stale: false };

describe('a SKU whose answer to a report contains nothing new', () => {
  test('is requested again after 17 minutes, then left to its sweep, and stays fresh all the time', async () => {
    await priced('A');
    await reported('A', OLD);
    expect(await next('A')).toEqual({ ...AGAIN, ...TRUSTED });
    await pass(17);
    expect(await next('A')).toMatchObject({ minutes: 0, ...TRUSTED });
    await answer([found('A', OLD)]);
    expect(await next('A')).toEqual({ ...SWEEP, ...TRUSTED });
  });

  describe('when its second check finds a change', () => {
    /** Moves the delta to a snapshot whose latest possible build time is known. */
    async function built() {
      await reported('B', OLD, 1);
      await stands();
      await pass(5);
    }
    async function foundLater() {
      await priced('A', 'B');
      await built();
      await reported('A', OLD);
      await pass(17);
      await answer([found('A', NEW)]);
      expect(await next('A')).toEqual({ ...SWEEP, ...TRUSTED });
      expect(await judgedLooks()).toEqual({ looks: 0, late: 0 });
    }
    const judgedLooks = async () =>
      (
        await store.sql`select again_new_looks as looks, again_new_found as late from catalog_internal.beliefs`
      )[0];
    const waiting = async () =>
      await store.sql`select sku from catalog_internal.unreported_moves where reported_at is null`;

    test('is requested after the delta that had to report it; if that adds nothing, a cache was at fault', async () => {
      await foundLater();
      await built();
      await report('B');
      expect(await next('A')).toMatchObject({ reason: 'changed', minutes: 0 });
      await answer([found('A', NEW), found('B', OLD)], 1);
      expect(await next('A')).toEqual({ ...SWEEP, ...TRUSTED });
      expect(await judgedLooks()).toEqual({ looks: 1, late: 1 });
      expect(await store.sql`select from catalog_internal.calibration_hours where looks = 0`).toHaveLength(0);
      expect(await waiting()).toEqual([]);
      expect((await readDeltaAudit(store.sql)).movesNeverReported).toBe(0);
    });

    test('is no evidence of a cache if the change is reported: it came later', async () => {
      await foundLater();
      await report('A');
      await answer([found('A', NEW)], 1);
      expect(await next('A')).toEqual({ ...SWEEP, ...TRUSTED });
      expect(await judgedLooks()).toEqual({ looks: 0, late: 0 });
      expect(await waiting()).toEqual([]);
    });
  });

  test('is requested again even if a refresh had found the move, and the answer has the price before that', async () => {
    await priced('A', 'B');
    await reported('B', OLD, 1);
    await mark(store.sql, ['A'], 'sweep');
    await answer([found('A', NEW)]);
    expect(await next('A')).toEqual({ ...SWEEP, ...TRUSTED });
    await reported('A', OLD);
    expect(await next('A')).toEqual({ ...AGAIN, ...TRUSTED });
    await pass(17);
    await answer([found('A', NEW)]);
    expect(await next('A')).toEqual({ ...SWEEP, ...TRUSTED });
  });

  test('is not requested again if it is not in the sampled part', async () => {
    const { sql } = store;
    await priced('A');
    await sql`update catalog_internal.beliefs set again_share = 0.05`;
    await reported('A', OLD, 0.05);
    expect(await next('A')).toMatchObject(SWEEP);
    await reported('A', OLD, 0.049);
    expect(await next('A')).toMatchObject(AGAIN);
  });

  test('is requested again at that time even if it is requested before, whatever that finds', async () => {
    await priced('A');
    await reported('A', OLD);
    await pass(5);
    await mark(store.sql, ['A'], 'refresh');
    await answer([found('A', OLD)]);
    expect(await next('A')).toMatchObject({ ...AGAIN, minutes: 12 });
    await pass(2);
    await mark(store.sql, ['A'], 'refresh');
    await answer([found('A', NEW)]);
    expect(await next('A')).toMatchObject({ ...AGAIN, minutes: 10 });
  });

  test('is requested at once after another report, and again after that, whatever it finds', async () => {
    await priced('A');
    await reported('A', OLD);
    await pass(5);
    await report('A');
    expect(await next('A')).toMatchObject({ reason: 'changed', lane: 1, minutes: 0, actionable: false });
    await answer([found('A', NEW)]);
    expect(await next('A')).toMatchObject(AGAIN);
  });

  test('is not requested again if it is gone, is deferred like any other, and is forgotten with the account', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await report('A', 'B');
    await answer([found('A', OLD), found('B', OLD)]);
    await pass(17);
    await answer([
      { sku: 'A', kind: 'not_found' },
      { sku: 'B', kind: 'deferred', waitMs: 60_000 },
    ]);
    expect(await next('A')).toMatchObject({ reason: 'metadata', again: false });
    expect(await next('B')).toMatchObject({ reason: 'again', again: true, minutes: 0 });
    await adoptAccount(sql, { baseUrl: 'https://other.example', apiKey: 'k' });
    expect(await next('B')).toMatchObject({ again: false });
  });

  test('is requested by its sweep if that comes first', async () => {
    const { sql } = store;
    await priced('A');
    await report('A');
    await applyAnswer(sql, await claimAll(sql), [found('A', OLD)], { ...REFRESH, snapshotMs: 600_000 });
    expect(await next('A')).toMatchObject({ again: true, reason: 'sweep', lane: 6, minutes: 10 });
  });

  test('is explained: when it is requested again, and the results of such checks', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await report('A', 'B');
    await answer([found('A', OLD), found('B', OLD)]);
    const [{ again }] = await sql<[{ again: string }]>`
      select catalog.explain('A') -> 'report' ->> 'again_at' as again`;
    expect((Date.parse(again) - Date.now()) / 60_000).toBeCloseTo(17, 1);
    await pass(17);
    await answer([found('A', NEW), found('B', OLD)]);
    expect(
      await sql`select looks::int, right_share::float8 as share from catalog.calibration where cohort = 'again'`,
    ).toEqual([{ looks: 2, share: 0.5 }]);
    expect(await pricesOf(sql, 'A')).toEqual(NEW);
  });
});

describe('the first answer to a report of a SKU without a record', () => {
  test('is checked again if the SKU is new and has no price', async () => {
    await priced('B');
    await report('A', 'C');
    await answer([found('A', {}), found('C', OLD)], 0);
    expect(await next('A')).toEqual({ ...AGAIN, ...TRUSTED });
    expect(await next('C')).toEqual({ ...SWEEP, ...TRUSTED });
    await pass(17);
    await answer([found('A', NEW), found('C', OLD)]);
    expect(await next('A')).toEqual({ ...SWEEP, ...TRUSTED });
    expect(await pricesOf(store.sql, 'A')).toEqual(NEW);

    await store.sql`update catalog_internal.beliefs set again_share = 0.05`;
    await report('D', 'E');
    await answer([found('D', {}), found('E', OLD)], 1);
    expect(await next('D')).toMatchObject(AGAIN);
    expect(await next('E')).toMatchObject(SWEEP);
  });

  test.each(['removed', 'not_found'] as const)(
    'is checked again if the SKU was %s, and has the price from before',
    async (gone) => {
      await priced('A');
      if (gone === 'removed') await removed('A');
      await mark(store.sql, ['A'], 'refresh');
      await answer([{ sku: 'A', kind: 'not_found' }]);
      await pass(60);
      await reported('A', OLD);
      expect(await next('A')).toMatchObject(AGAIN);
      await pass(17);
      await answer([found('A', NEW)]);
      expect(await next('A')).toMatchObject(SWEEP);
      expect(await pricesOf(store.sql, 'A')).toEqual(NEW);
    },
  );

  describe('whose second check finds nothing is no evidence that there is no cache', () => {
    const NEWS = Array.from({ length: 40 }, (_, n) => `N${n}`);
    const judgedLooks = async () =>
      (await store.sql`select again_new_looks + again_new_found as n from catalog_internal.beliefs`)[0]?.[
        'n'
      ];
    const unjudged = async () =>
      (await store.sql`select from catalog_internal.unreported_moves where reported_at is not null`).length;
    const answerAll = async (prices: Readonly<Record<string, number>>, draw = 0) =>
      await answer(
        NEWS.map((sku) => found(sku, prices)),
        draw,
      );

    test('if they are new and have no price', async () => {
      await priced('B');
      await report(...NEWS);
      await answerAll({}, 1);
      expect(await next('N0')).toMatchObject(AGAIN);
      await pass(17);
      await answerAll({});
      expect(await next('N0')).toMatchObject(SWEEP);
      expect([await judgedLooks(), await unjudged()]).toEqual([0, 0]);
    });

    test('if they were gone and have the prices from before', async () => {
      await priced(...NEWS);
      await removed(...NEWS);
      await mark(store.sql, NEWS, 'refresh');
      await answer(NEWS.map((sku) => ({ sku, kind: 'not_found' as const })));
      await pass(60);
      await report(...NEWS);
      await answerAll(OLD, 0);
      expect(await next('N0')).toMatchObject(AGAIN);
      await pass(17);
      await answerAll(OLD);
      expect(await next('N0')).toMatchObject(SWEEP);
      expect([await judgedLooks(), await unjudged()]).toEqual([0, 0]);
    });

    test('even if another answer comes before it', async () => {
      await priced('B');
      await report(...NEWS);
      await answerAll({});
      await pass(5);
      await mark(store.sql, NEWS, 'refresh');
      await answerAll({});
      await pass(12);
      await answerAll({});
      expect([await judgedLooks(), await unjudged()]).toEqual([0, 0]);
    });

    test('and leaves nothing behind if there is no second check', async () => {
      await priced('B');
      await report(...NEWS);
      await store.sql`update catalog_internal.beliefs set again_share = 0.05`;
      await answerAll(OLD, 1);
      expect(await unjudged()).toBe(0);
    });
  });

  test('is checked again if the SKU was reported during its request, and has no price', async () => {
    const { sql } = store;
    await priced('B');
    await sql`update catalog_internal.beliefs set again_share = 0.05`;
    await knownSkus(sql, ['A']);
    await mark(sql, ['A'], 'new');
    const claim = await claimAll(sql);
    await report('A');
    const askedAt = new Date(claim.askedAt.getTime() - 1000);
    await applyAnswer(sql, { ...claim, askedAt }, [found('A', {})], REFRESH);
    expect(await next('A')).toMatchObject({ minutes: 0, again: false });
    await answer([found('A', {})], 1);
    expect(await next('A')).toMatchObject(AGAIN);
  });

  test('is believed if only a manifest lists the SKU', async () => {
    await priced('A');
    expect(await next('A')).toMatchObject({ ...SWEEP, minutes: 1140 });
  });
});

test("neither a change nor a refresh of the mirror's own accord has a second check", async () => {
  await priced('A', 'B');
  // The prices of A are known to belong to the snapshot that its report starts from.
  await report();
  await stands();
  await pass(5);
  await report();
  await reported('A', NEW);
  expect(await next('A')).toMatchObject(SWEEP);
  await mark(store.sql, ['B'], 'refresh');
  await answer([found('B', OLD)]);
  expect(await next('B')).toMatchObject(SWEEP);
});

test('the results of second checks decide how many there are, for all daemons', async () => {
  const { sql } = store;
  const learned = async () => {
    await learnBeliefs(sql);
    const [row] = await sql<[{ share: number; waiting: number }]>`
      select again_share as share, again_new_looks + again_new_found as waiting from catalog_internal.beliefs`;
    return row;
  };
  expect(await learned()).toEqual({ share: 1, waiting: 0 });
  await storeCalibration(sql, [looked(40)]);
  await storeCalibration(sql, [looked(30)]);
  expect(await learned()).toEqual({ share: 0.05, waiting: 0 });
  await storeCalibration(sql, [looked(1, 1)]);
  expect(await learned()).toEqual({ share: 1, waiting: 0 });
});

test('if second checks find changes, an answer without the reported change is not actionable before its own', async () => {
  const { sql } = store;
  await priced('A', 'B');
  await reported('A', OLD);
  expect(await next('A')).toMatchObject({ actionable: true });
  expect(await readLatePrices(sql)).toBeNull();
  await storeCalibration(sql, [looked(20, 10)]);
  expect(await learnBeliefs(sql)).toEqual({ kind: 'began', looks: 17, found: 9 });
  expect(await learnBeliefs(sql)).toBeNull();
  expect(await readLatePrices(sql)).toMatchObject({ since: expect.any(Date) as Date });
  expect(await next('A')).toMatchObject({ reason: 'again', actionable: false, stale: false });
  expect(await next('B')).toMatchObject({ actionable: true });
  await pass(17);
  expect(await next('A')).toMatchObject({ actionable: false });
  await answer([found('A', OLD)]);
  expect(await next('A')).toMatchObject({ actionable: true });
  await storeCalibration(sql, [looked(300)]);
  expect(await learnBeliefs(sql)).toEqual({ kind: 'ended', minutes: 0 });
  expect(await readLatePrices(sql)).toBeNull();
});
