import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { seeded } from '../../bench/freshness/random.ts';
import { keepSome } from '../../src/sync/reprice/failed-call.ts';
import { letBackoffEnd } from '../contract/backoff.ts';
import { claimAll, mark, useStore } from '../store/support.ts';
import { runs } from '../support/soak.ts';
import { named, RefusingPartner } from './refusing-partner.ts';

const store = useStore();
let partner: RefusingPartner;

beforeEach(() => {
  partner = new RefusingPartner(store.sql);
});

const otherRequest = () => partner.otherRequest();

describe.each(['throttled-or-forbidden', 'authorizer-fault'] as const)(
  'a SKU whose calls are refused with %s, as by a gateway that rejects a body,',
  (refusal) => {
    beforeEach(() => {
      partner.kind = refusal;
    });

    test('delays no other, is found in a few calls, and is named once others succeed in between', async () => {
      await partner.due(named(300));
      partner.refuses = (skus) => skus.includes('S7');
      await partner.iterations(40, otherRequest);
      expect((await partner.waiting()).map(({ sku }) => sku)).toEqual(['S7']);
      expect(partner.lost).toBeLessThanOrEqual(8);
      for (let again = 0; again < 3; again += 1) {
        expect(partner.blamed).toEqual([]);
        await partner.waitsEnd();
        await partner.iterations(1, otherRequest);
      }
      expect(partner.blamed).toEqual(['S7']);
      const [row] = await store.sql`
        select extract(epoch from held_until - now()) / 60 between 55 and 65 as "waitsAnHour", largest_call, failures from catalog_internal.due where sku = 'S7'`;
      expect(row).toEqual({ waitsAnHour: true, largest_call: 1, failures: 4 });
    });

    test('is found even if nobody else asks for anything, once its waits are over', async () => {
      await partner.due(named(300));
      partner.refuses = (skus) => skus.includes('S7');
      await partner.iterations(80, () => partner.waitsEnd());
      expect((await partner.waiting()).map(({ sku }) => sku)).toEqual(['S7']);
      expect(partner.blamed).toEqual([]);
    });

    test('leaves other routes their requests if it is all there is to ask for', async () => {
      await partner.due(['S7']);
      partner.refuses = (skus) => skus.includes('S7');
      await partner.iterations(5, otherRequest);
      expect(partner.lost).toBe(1);
      expect(partner.calls).toHaveLength(1);
    });
  },
);

describe('a back-off that another request has begun', () => {
  beforeEach(() => {
    partner = new RefusingPartner(store.sql, seeded(5));
  });

  test('does not make calls repeat the same SKUs if one of them is refused', async () => {
    await partner.due(named(300));
    partner.refuses = (skus) => skus.includes('S0');
    await partner.otherRequest(partner.kind);
    await letBackoffEnd(store.sql);
    while ((await partner.waiting()).length > 1 && partner.calls.length < 50)
      await partner.iterations(1, () => partner.waitsEnd());
    expect((await partner.waiting()).map(({ sku }) => sku)).toEqual(['S0']);
    // Each of eight halvings loses its call, and usually the one after its back-off.
    expect(partner.lost).toBeLessThanOrEqual(20);
  });

  test('keeps the drawn SKUs of a claim, and gives the others back', async () => {
    await partner.due(named(4));
    const claim = await claimAll(store.sql);
    const draws = [0.9, 0.1, 0.8, 0.2];
    const kept = await keepSome({ ...partner.ctx, random: () => draws.shift() ?? 0 }, claim, 2);
    expect(kept.skus).toEqual([claim.skus[1], claim.skus[3]]);
    const rows = await store.sql<
      { sku: string }[]
    >`select sku from catalog_internal.due where claim is not null`;
    expect(rows.map(({ sku }) => sku).toSorted()).toEqual(kept.skus.map(({ sku }) => sku).toSorted());
  });

  test('does not make calls repeat their size if larger calls are refused', async () => {
    await partner.due(named(300));
    partner.refuses = (skus) => skus.length > 60;
    await partner.otherRequest(partner.kind);
    await letBackoffEnd(store.sql);
    await partner.iterations(40);
    expect(await partner.waiting()).toEqual([]);
    expect(partner.lost).toBeLessThanOrEqual(12);
  });
});

describe('a credential that is wrong for a while', () => {
  test('is blamed on no SKU, however often it is tried, and afterwards costs hardly any extra calls', async () => {
    await partner.due(named(300));
    partner.refuses = () => true;
    await partner.iterations(30);
    expect(partner.blamed).toEqual([]);
    const suspected = (await partner.waiting()).filter(({ largestCall }) => largestCall !== null);
    expect(suspected).toHaveLength(100);
    const before = partner.calls.length;
    partner.refuses = () => false;
    await partner.iterations(20);
    expect(await partner.waiting()).toEqual([]);
    expect(partner.calls.length - before).toBeLessThanOrEqual(9);
  });

  test('is blamed on no SKU either if there is only one, which is soon asked for again', async () => {
    await partner.due(['A']);
    partner.refuses = () => true;
    for (let tries = 0; tries < 12; tries += 1) {
      await partner.iterations(1);
      const [row] = await store.sql`
        select extract(epoch from held_until - now()) / 60 < 6 as soon, failures < 2 as once from catalog_internal.due`;
      expect(row).toEqual({ soon: true, once: true });
      await partner.waitsEnd();
    }
    expect(partner.calls).toHaveLength(12);
    expect(partner.blamed).toEqual([]);
  });
});

describe('other users of the account who use up its limit', () => {
  test('make suspects of one call at a time, however many are under way', async () => {
    await partner.due(named(300));
    const [ended, all] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    partner.refuses = () => true;
    partner.meanwhile = async () => {
      if (partner.calls.length === 3) all.resolve();
      await ended.promise;
    };
    const under = [1, 2, 3].map(() => partner.iterate());
    await all.promise;
    ended.resolve();
    await Promise.all(under);
    expect((await partner.waiting()).filter(({ largestCall }) => largestCall !== null)).toHaveLength(100);
  });

  test('do not keep urgent SKUs of a refused call behind others', async () => {
    await partner.due(named(200));
    await store.sql`update catalog_internal.due set largest_call = 50, due_at = now() - interval '1 hour', lane = catalog_internal.lane_of('sweep')`;
    await store.sql`update catalog_internal.due set lane = 1, rank = 'Infinity', due_at = now() where sku in ('S150', 'S3')`;
    partner.refuses = () => false;
    await partner.iterations(1);
    expect(partner.calls[0]?.skus).toEqual(expect.arrayContaining(['S150', 'S3']));
  });

  test('do not get a SKU blamed for a single refusal, however often it was in errors before', async () => {
    await partner.due(['S7']);
    await store.sql`update catalog_internal.due set failures = 5, lane = catalog_internal.lane_of('error')`;
    partner.refuses = () => true;
    await partner.iterations(1);
    expect(partner.blamed).toEqual([]);
    const [row] = await store.sql`
      select failures, held_until < now() + interval '40 minutes' as soon from catalog_internal.due`;
    expect(row).toEqual({ failures: 6, soon: true });
  });

  test('make no suspects if the refusal is a 429', async () => {
    await partner.due(named(10));
    partner.status = 429;
    partner.refuses = () => true;
    await partner.iterations(1);
    expect((await partner.waiting()).filter(({ largestCall }) => largestCall !== null)).toEqual([]);
  });
});

test.each(['unauthorised', 'account-not-configured'] as const)(
  '%s shows nothing about SKUs: all stay as they were',
  async (refusal) => {
    partner.kind = refusal;
    await partner.due(named(10));
    partner.refuses = () => true;
    await partner.iterations(3);
    expect((await partner.waiting()).map(({ largestCall }) => largestCall)).toEqual(Array(10).fill(null));
  },
);

/**
 * A partner drawn at random: SKUs whose calls it always refuses, and a time in which others of the account use up
 * its limit.
 */
interface Drawn {
  readonly skus: number;
  readonly bad: readonly number[];
  /** The part of calls in the noisy time that is refused whatever they ask for, and how many calls it lasts. */
  readonly noise: number;
  readonly noisy: number;
  /** How often another route sends a request between two calls, and how often the waits of SKUs end. */
  readonly others: number;
  readonly ends: number;
  readonly seed: number;
}

const drawn: fc.Arbitrary<Drawn> = fc.record({
  skus: fc.integer({ min: 1, max: 250 }),
  bad: fc.uniqueArray(fc.nat(249), { maxLength: 3 }),
  noise: fc.constantFrom(0.1, 0.5, 0.9, 1),
  noisy: fc.integer({ min: 0, max: 60 }),
  others: fc.constantFrom(0, 0.3, 1),
  ends: fc.constantFrom(0.1, 0.5),
  seed: fc.integer(),
});

async function tellsApart({ skus, bad, noise, noisy, others, ends, seed }: Drawn): Promise<void> {
  await store.sql`truncate catalog.skus cascade`;
  await store.sql`truncate catalog_internal.pace, catalog_internal.pace_sends`;
  const random = seeded(seed);
  const happens = (part: number) => random() < part;
  partner = new RefusingPartner(store.sql, random);
  const hidden = new Set(named(skus).filter((_, n) => bad.includes(n)));
  const step = async (isNoisy: boolean) => {
    partner.refuses = (asked) => (isNoisy && happens(noise)) || asked.some((sku) => hidden.has(sku));
    await partner.iterate();
    await letBackoffEnd(store.sql);
    if (happens(others)) await partner.otherRequest(isNoisy && happens(noise) ? partner.kind : 'ok');
    await letBackoffEnd(store.sql);
    if (happens(ends)) await partner.waitsEnd();
  };
  await partner.due(named(skus));
  for (let n = 0; n < noisy; n += 1) await step(true);
  await mark(store.sql, named(skus), 'changed');
  // A suspect that is asked while everything is refused shows nothing, and there may be many such calls until
  // others succeed.
  const judged = () => ({
    calls: partner.calls.length - partner.unjudged,
    lost: partner.lost - partner.unjudged,
  });
  const [before, blamed] = [judged(), partner.blamed.length];
  const isDone = async () => (await partner.waiting()).every(({ sku }) => hidden.has(sku));
  for (let steps = 0; steps < 500 && !(await isDone()); steps += 1) await step(false);
  expect(await isDone()).toBe(true);
  const after = judged();
  expect(after.calls - before.calls).toBeLessThanOrEqual(25 + 15 * hidden.size);
  expect(after.lost - before.lost).toBeLessThanOrEqual(10 * hidden.size);
  expect(partner.blamed.slice(blamed).filter((sku) => !hidden.has(sku))).toEqual([]);
}

test('whatever is refused, all SKUs that the partner answers are answered soon afterwards', async () => {
  await fc.assert(fc.asyncProperty(drawn, tellsApart), { numRuns: runs(12) });
});
