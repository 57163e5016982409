import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer, type SentPermit } from '../../src/pace/pacer.ts';
import type { BulkAnswer } from '../../src/partner/answers.ts';
import { PartnerError, type PartnerErrorKind } from '../../src/partner/errors.ts';
import { DueFloors } from '../../src/store/due-floors.ts';
import type { SyncContext, SyncEvent } from '../../src/sync/context.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { letBackoffEnd } from '../contract/backoff.ts';
import { knownSkus, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const MINUTE = 60_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const limits = { maxPerWindow: 1_000_000, windowMs: 1000, backoffMs: 10 * MINUTE };

/** What the partner, or a gateway before it, refuses. */
let refuses: (skus: readonly string[]) => boolean;
let kind: PartnerErrorKind;
let status: number;
/** What happens while a call is under way. */
let meanwhile: () => Promise<void>;
let events: SyncEvent[];
/** Each call: its SKUs, and whether it was let through. */
let calls: { readonly skus: readonly string[]; readonly worked: boolean }[];
let ctx: SyncContext;

async function bulk(permit: SentPermit, skus: readonly string[]): Promise<BulkAnswer> {
  const worked = !refuses(skus);
  calls.push({ skus, worked });
  await meanwhile();
  await permit.settle(worked ? 'ok' : kind);
  if (!worked) throw new PartnerError(kind, 'bulk', { status });
  const nothing = { deferred: [], errors: [], requested: null, deduped: null };
  return { results: new Map(), notFound: [...skus], ...nothing };
}

beforeEach(() => {
  [events, calls, kind, status] = [[], [], 'throttled-or-forbidden', 403];
  meanwhile = async () => {};
  ctx = {
    sql: store.sql,
    pacer: createPacer(store.sql, systemClock, limits),
    client: { bulk },
    clock: systemClock,
    floors: new DueFloors(systemClock),
    random: () => 0.5,
    emit: (event: SyncEvent) => events.push(event),
    settings: settingsWith({}),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
});

/** So many iterations one after the other, as a slice makes them; each back-off is over at once, and no wait of a SKU ever is. */
async function iterations(count: number, others: () => Promise<void> = async () => {}): Promise<void> {
  for (let number = 1; number <= count; number += 1) {
    await repriceOnce(ctx, { number, sinceLastCallMs: Infinity }, MINUTE, signals);
    await letBackoffEnd(store.sql);
    await others();
  }
}

/** Another route's request, which the partner lets through. */
async function otherRequest(): Promise<void> {
  const acquired = await ctx.pacer.acquire('delta', MINUTE);
  if (acquired.kind === 'granted') await acquired.permit.settle('ok');
}

/** The waits of SKUs are over as if their time had passed. */
const waitsEnd = () => store.sql`update catalog_internal.due set held_until = null where claim is null`;

async function due(skus: readonly string[]): Promise<void> {
  await knownSkus(store.sql, skus);
  await mark(store.sql, skus, 'changed');
}

const named = (of: number) => Array.from({ length: of }, (_, n) => `S${n}`);
/** SKUs that are due still, with the largest call that they may share. */
const waiting = async () =>
  await store.sql<{ sku: string; largestCall: number | null }[]>`
    select sku, largest_call as "largestCall" from catalog_internal.due where due_at <= now() order by sku`;
const lost = () => calls.filter(({ worked }) => !worked).length;
const blamed = () =>
  events.flatMap((event) => (event.event === 'bulk.failed' && event.sku ? [event.sku] : []));

describe.each(['throttled-or-forbidden', 'authorizer-fault'] as const)(
  'a SKU whose calls are refused with %s, as a gateway does that dislikes a body,',
  (refusal) => {
    beforeEach(() => {
      kind = refusal;
    });

    test('holds up no other, is found in a few calls, and is named once others were let through in between', async () => {
      await due(named(300));
      refuses = (skus) => skus.includes('S7');
      await iterations(40, otherRequest);
      expect((await waiting()).map(({ sku }) => sku)).toEqual(['S7']);
      expect(lost()).toBeLessThanOrEqual(8);
      for (let again = 0; again < 3; again += 1) {
        expect(blamed()).toEqual([]);
        await waitsEnd();
        await iterations(1, otherRequest);
      }
      expect(blamed()).toEqual(['S7']);
      const [row] = await store.sql`
        select extract(epoch from held_until - now()) / 60 > 55 as "waitsAnHour", largest_call, failures from catalog_internal.due where sku = 'S7'`;
      expect(row).toEqual({ waitsAnHour: true, largest_call: 1, failures: 4 });
    });

    test('is found, too, where nobody else asks for anything, once its waits are over', async () => {
      await due(named(300));
      refuses = (skus) => skus.includes('S7');
      await iterations(80, async () => void (await waitsEnd()));
      expect((await waiting()).map(({ sku }) => sku)).toEqual(['S7']);
      expect(blamed()).toEqual([]);
    });

    test('that is all there is to ask about, leaves other routes their requests', async () => {
      await due(['S7']);
      refuses = (skus) => skus.includes('S7');
      await iterations(5, otherRequest);
      expect(lost()).toBe(1);
      expect(calls).toHaveLength(1);
    });
  },
);

describe('a credential that is wrong for a while', () => {
  test('is blamed on no SKU, however often it is tried, and afterwards all are asked in hardly more calls', async () => {
    await due(named(300));
    refuses = () => true;
    await iterations(30);
    expect(blamed()).toEqual([]);
    const suspected = (await waiting()).filter(({ largestCall }) => largestCall !== null);
    expect(suspected).toHaveLength(100);
    const before = calls.length;
    refuses = () => false;
    await iterations(20);
    expect(await waiting()).toEqual([]);
    expect(calls.length - before).toBeLessThanOrEqual(9);
  });

  test('is blamed on none either where there is but one, which is asked soon after', async () => {
    await due(['A']);
    refuses = () => true;
    for (let tries = 0; tries < 12; tries += 1) {
      await iterations(1);
      const [row] = await store.sql`
        select extract(epoch from held_until - now()) / 60 < 6 as soon, failures < 2 as once from catalog_internal.due`;
      expect(row).toEqual({ soon: true, once: true });
      await waitsEnd();
    }
    expect(calls).toHaveLength(12);
    expect(blamed()).toEqual([]);
  });
});

describe('other users of the account who use up its limit', () => {
  test('make suspects of one call at a time, however many are under way', async () => {
    await due(named(300));
    const [ended, all] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    refuses = () => true;
    meanwhile = async () => {
      if (calls.length === 3) all.resolve();
      await ended.promise;
    };
    const under = [1, 2, 3].map((number) =>
      repriceOnce(ctx, { number, sinceLastCallMs: Infinity }, MINUTE, signals),
    );
    await all.promise;
    ended.resolve();
    await Promise.all(under);
    expect((await waiting()).filter(({ largestCall }) => largestCall !== null)).toHaveLength(100);
  });

  test('do not keep urgent SKUs that were in a refused call behind others', async () => {
    await due(named(200));
    await store.sql`update catalog_internal.due set largest_call = 50, due_at = now() - interval '1 hour', lane = catalog_internal.lane_of('sweep')`;
    await store.sql`update catalog_internal.due set lane = 1, rank = 'Infinity', due_at = now() where sku in ('S150', 'S3')`;
    refuses = () => false;
    await iterations(1);
    expect(calls[0]?.skus).toEqual(expect.arrayContaining(['S150', 'S3']));
  });

  test('make none where a 429 says so', async () => {
    await due(named(10));
    status = 429;
    refuses = () => true;
    await iterations(1);
    expect((await waiting()).filter(({ largestCall }) => largestCall !== null)).toEqual([]);
  });
});

test.each(['unauthorised', 'account-not-configured'] as const)(
  '%s says nothing of SKUs: all stay as they were',
  async (refusal) => {
    kind = refusal;
    await due(named(10));
    refuses = () => true;
    await iterations(3);
    expect((await waiting()).map(({ largestCall }) => largestCall)).toEqual(Array(10).fill(null));
  },
);
