import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { adoptAccount } from '../../src/store/setup/account.ts';
import { learnBeliefs, readLatePrices } from '../../src/store/trust/beliefs.ts';
import { storeCalibration } from '../../src/store/trust/calibration.ts';
import { lookingTwice, NEW, OLD } from './second-looks.ts';
import { claimAll, found, mark, pricesOf, REFRESH, useStore } from './support.ts';

const store = useStore();
const { answer, report, reported, pass, priced, next } = lookingTwice(store);

const SWEEP = { reason: 'sweep', lane: 6, minutes: 1200, again: false };
const AGAIN = { reason: 'again', lane: 5, minutes: 17, again: true };
const TRUSTED = { actionable: true, stale: false };

describe('a SKU whose answer to a report has nothing new', () => {
  test('is asked once more after 17 minutes, and then left to its sweep; it stays fresh all the time', async () => {
    await priced('A');
    await reported('A', OLD);
    expect(await next('A')).toEqual({ ...AGAIN, ...TRUSTED });
    await pass(17);
    expect(await next('A')).toMatchObject({ minutes: 0, ...TRUSTED });
    await answer([found('A', OLD)]);
    expect(await next('A')).toEqual({ ...SWEEP, ...TRUSTED });
  });

  test('is left to its sweep once the second look has found the change, of which nobody has failed to report', async () => {
    const { sql } = store;
    await priced('A');
    await reported('A', OLD);
    await pass(17);
    await answer([found('A', NEW)]);
    expect(await next('A')).toEqual({ ...SWEEP, ...TRUSTED });
    expect(await sql`select sku from catalog_internal.unreported_moves where reported_at is null`).toEqual(
      [],
    );
  });

  test('is not, where it is not of the part that is drawn', async () => {
    const { sql } = store;
    await priced('A');
    await sql`update catalog_internal.beliefs set again_share = 0.05`;
    await reported('A', OLD, 0.05);
    expect(await next('A')).toMatchObject(SWEEP);
    await reported('A', OLD, 0.049);
    expect(await next('A')).toMatchObject(AGAIN);
  });

  test('is asked at that time also where it is asked before, and finds nothing', async () => {
    await priced('A');
    await reported('A', OLD);
    await pass(5);
    await mark(store.sql, ['A'], 'refresh');
    await answer([found('A', OLD)]);
    expect(await next('A')).toMatchObject({ ...AGAIN, minutes: 12 });
    await pass(2);
    await mark(store.sql, ['A'], 'refresh');
    await answer([found('A', NEW)]);
    expect(await next('A')).toMatchObject(SWEEP);
  });

  test('is asked at once where another report comes, and once more after that, whatever it finds', async () => {
    await priced('A');
    await reported('A', OLD);
    await pass(5);
    await report('A');
    expect(await next('A')).toMatchObject({ reason: 'changed', lane: 1, minutes: 0, actionable: false });
    await answer([found('A', NEW)]);
    expect(await next('A')).toMatchObject(AGAIN);
  });

  test('is asked no more where it is gone, deferred as any other, and not waited for by another account', async () => {
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

  test('is asked again by its sweep where that comes first', async () => {
    const { sql } = store;
    await priced('A');
    await report('A');
    await applyAnswer(sql, await claimAll(sql), [found('A', OLD)], { ...REFRESH, snapshotMs: 600_000 });
    expect(await next('A')).toMatchObject({ ...AGAIN, minutes: 10 });
  });

  test('is told of: what it waits for, and how such looks have come out', async () => {
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

test('a change has no second look, nor has what the mirror asks of its own accord', async () => {
  await priced('A', 'B');
  await reported('A', NEW);
  expect(await next('A')).toMatchObject(SWEEP);
  await mark(store.sql, ['B'], 'refresh');
  await answer([found('B', OLD)]);
  expect(await next('B')).toMatchObject(SWEEP);
});

test('what second looks find decides how many there are, for all daemons', async () => {
  const { sql } = store;
  const second = { cohort: 'again', bin: 10, claimed: 0, minutes: 0, missed: 0, leverage: 0 };
  const learned = async () => {
    await learnBeliefs(sql);
    const [row] = await sql<[{ share: number; waiting: number }]>`
      select again_share as share, again_new_looks + again_new_found as waiting from catalog_internal.beliefs`;
    return row;
  };
  expect(await learned()).toEqual({ share: 1, waiting: 0 });
  await storeCalibration(sql, [{ ...second, looks: 40, right: 40 }]);
  await storeCalibration(sql, [{ ...second, looks: 30, right: 30 }]);
  expect(await learned()).toEqual({ share: 0.05, waiting: 0 });
  await storeCalibration(sql, [{ ...second, looks: 1, right: 0 }]);
  expect(await learned()).toEqual({ share: 1, waiting: 0 });
});

test('where second looks find changes, an answer without the reported change is not acted on before its own', async () => {
  const { sql } = store;
  const second = { cohort: 'again', bin: 10, claimed: 0, minutes: 0, missed: 0, leverage: 0 };
  await priced('A', 'B');
  await reported('A', OLD);
  expect(await next('A')).toMatchObject({ actionable: true });
  expect(await readLatePrices(sql)).toBeNull();
  await storeCalibration(sql, [{ ...second, looks: 20, right: 10 }]);
  expect(await learnBeliefs(sql)).toEqual({ kind: 'began', looks: 17, found: 9 });
  expect(await learnBeliefs(sql)).toBeNull();
  expect(await readLatePrices(sql)).toMatchObject({ since: expect.any(Date) as Date });
  expect(await next('A')).toMatchObject({ reason: 'again', actionable: false, stale: false });
  expect(await next('B')).toMatchObject({ actionable: true });
  await pass(17);
  expect(await next('A')).toMatchObject({ actionable: false });
  await answer([found('A', OLD)]);
  expect(await next('A')).toMatchObject({ actionable: true });
  await storeCalibration(sql, [{ ...second, looks: 300, right: 300 }]);
  expect(await learnBeliefs(sql)).toEqual({ kind: 'ended', minutes: 0 });
  expect(await readLatePrices(sql)).toBeNull();
});
