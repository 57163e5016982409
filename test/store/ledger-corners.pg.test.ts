import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { ErrorCause, SkuResult } from '../../src/store/answer/types.ts';
import { storeFailedCall, storeLesson } from '../../src/store/call/call-lesson.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { promoteMetadata, endWaits } from '../../src/store/ledger/due.ts';
import { callPause } from '../../src/store/ledger/tasks.ts';
import {
  answerAsked,
  claimAll,
  failCall,
  found,
  HOUR,
  knownSkus,
  LEASE_MS,
  ledger,
  mark,
  passHours,
  REFRESH,
  useStore,
} from './support.ts';

const store = useStore();

describe('a row of the ledger', () => {
  test('that waits is not claimed by its name', async () => {
    const { sql } = store;
    await mark(sql, ['A', 'B'], 'live', true);
    await sql`update catalog_internal.due set held_until = now() + interval '1 hour' where sku = 'A'`;
    const claim = await claimDue(sql, { named: ['A', 'B'] }, LEASE_MS);
    expect(claim?.skus.map(({ sku }) => sku)).toEqual(['B']);
  });

  test('is released when its wait is over, and not before', async () => {
    const { sql } = store;
    await mark(sql, ['over', 'not yet']);
    await sql`
      update catalog_internal.due set held_until = now() + case sku when 'over' then interval '0' else interval '20 minutes' end`;
    expect(await endWaits(sql, 10)).toBe(1);
    expect((await ledger(sql)).get('not yet')?.heldFor).toBeCloseTo(1 / 3, 2);
  });

  test('of a live SKU is not moved for its metadata', async () => {
    const { sql } = store;
    await mark(sql, ['live'], 'sweep', true);
    await mark(sql, ['swept'], 'sweep', false);
    await passHours(sql, 2);
    expect(await promoteMetadata(sql, 3600, 10)).toBe(1);
    expect((await ledger(sql)).get('live')).toMatchObject({ reason: 'sweep', lane: 6 });
  });

  test('keeps the reason of a mark that came while it was asked', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await mark(sql, ['A'], 'sweep');
    const claim = await claimAll(sql);
    await mark(sql, ['A'], 'changed');
    await applyAnswer(sql, claim, [found('A')], REFRESH);
    expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'changed', lane: 1, claim: null });
  });

  test('that was in a failed call shares calls again once it is answered', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await mark(sql, ['A']);
    const claim = await claimAll(sql);
    await sql`update catalog_internal.due set largest_call = 4`;
    await applyAnswer(sql, claim, [found('A')], REFRESH);
    expect([...(await sql`select largest_call from catalog_internal.due`)]).toEqual([{ largest_call: null }]);
  });

  test('keeps its lane when it is deferred, and is in that of errors when it is again', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A'], { priceSource: 'live' });
    await mark(sql, ['A'], 'changed', true);
    for (const lane of [1, 4, 4]) {
      await sql`update catalog_internal.due set held_until = null`;
      await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'deferred', waitMs: HOUR }], REFRESH);
      expect((await ledger(sql)).get('A')).toMatchObject({ lane, failures: 0 });
    }
    await sql`update catalog_internal.due set held_until = null`;
    await applyAnswer(sql, await claimAll(sql), [found('A')], REFRESH);
    expect((await ledger(sql)).get('A')).toMatchObject({ lane: 2, deferrals: 0 });
  });

  test('is in its lane as before, and has failed once, after errors that all others share', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await mark(sql, ['A'], 'changed');
    const general = { sku: 'A', kind: 'error', waitMs: HOUR, blame: 'general' } as const;
    for (const failures of [1, 1, 1]) {
      await applyAnswer(sql, await claimAll(sql), [general], REFRESH);
      const { heldFor, ...row } = (await ledger(sql)).get('A') ?? {};
      expect(row).toMatchObject({ lane: 1, failures, deferrals: 0, claim: null });
      expect(heldFor).toBeCloseTo(1, 1);
      await sql`update catalog_internal.due set held_until = null`;
    }
  });

  test('says why its last answer was an error, until one is none', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B', 'C']);
    const causes = async () => {
      const rows = await sql<{ sku: string; why: string | null }[]>`
        select sku, catalog.explain(sku) -> 'next' ->> 'last_error' as why from catalog.skus order by sku`;
      return rows.map(({ why }) => why);
    };
    const ask = async (...results: readonly SkuResult[]) => {
      await mark(sql, ['A', 'B', 'C'], 'changed');
      await sql`update catalog_internal.due set held_until = null`;
      await applyAnswer(sql, await claimAll(sql), results, REFRESH);
    };
    const error = (sku: string, because: ErrorCause) =>
      ({ sku, kind: 'error', waitMs: HOUR, because, blame: 'general' }) as const;
    await ask(error('A', 'reported'), error('B', 'omitted'), error('C', 'unreadable'));
    expect(await causes()).toEqual(['reported', 'omitted', 'unreadable']);
    await ask(found('A'), { sku: 'B', kind: 'not_found' }, error('C', 'contradictory'));
    expect(await causes()).toEqual([null, null, 'contradictory']);
    await ask(found('A'), found('B'), { sku: 'C', kind: 'deferred', waitMs: HOUR });
    expect(await causes()).toEqual([null, null, null]);
  });

  test('counts as live for no more than 64 answers, however often it was deferred', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    for (let times = 0; times < 9; times += 1) {
      await mark(sql, ['A'], 'changed', false);
      await sql`update catalog_internal.due set held_until = null`;
      await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'deferred', waitMs: HOUR }], REFRESH);
    }
    expect([...(await sql`select live_marks, live_left from catalog_internal.due`)]).toEqual([
      { live_marks: 6, live_left: 64 },
    ]);
  });
});

describe('a failed call', () => {
  test('holds its SKUs for as long as it says', async () => {
    const { sql } = store;
    await mark(sql, ['A']);
    const claim = await claimAll(sql);
    const fate = { because: 'network', failures: 0, pauseMs: 0, largestCall: null, callSize: null };
    await storeFailedCall(sql, { claim, ...fate, holdMs: 2 * HOUR });
    expect((await ledger(sql)).get('A')?.heldFor).toBeCloseTo(2, 1);
  });

  test('does not shorten a pause', async () => {
    await failCall(store.sql, 2 * HOUR, 0);
    await failCall(store.sql, HOUR, 1);
    expect((await callPause(store.sql)).ms / HOUR).toBeCloseTo(2, 1);
  });
});

test('an incident that goes on for another reason began when it began', async () => {
  const { sql } = store;
  await sql`update catalog_internal.live_plan set incident_because = 'deferrals', incident_since = to_timestamp(1000)`;
  const nothing = { call: null, budget: null, ceiling: null, ceilingStep: 0, trial: false };
  const incident = { from: 'deferrals', to: 'live-count' } as const;
  await storeLesson(sql, { ...nothing, incident }, { failures: 0, callSize: null, cleared: null });
  const [row] = await sql`
    select incident_because as because, extract(epoch from incident_since)::int as since from catalog_internal.live_plan`;
  expect(row).toEqual({ because: 'live-count', since: 1000 });
});

test('metadata has changed when a field did, and was seen with each record', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  const times = async () => {
    const [row] = await sql<[{ changed: Date; seen: Date }]>`
      select changed_at as changed, refreshed_at as seen from catalog.products`;
    return row;
  };
  const named = (name: string) => answerAsked(sql, found('A', {}, { name }));
  await named('old');
  const first = await times();
  await named('old');
  const second = await times();
  expect(second.changed).toEqual(first.changed);
  expect(second.seen.getTime()).toBeGreaterThan(first.seen.getTime());
  await named('new');
  const third = await times();
  expect(third.changed).toEqual(third.seen);
  expect(third.changed.getTime()).toBeGreaterThan(second.changed.getTime());
});

test('a hash of before it was live says nothing of a SKU whose price has moved since', async () => {
  const { sql } = store;
  await knownSkus(sql, ['moved', 'still'], { priceSource: 'live' });
  await answerAsked(sql, found('moved', { 9: 100 }), found('still', { 9: 100 }));
  await sql`update catalog.skus set hash_before_live = 'h1'`;
  await answerAsked(sql, found('moved', { 9: 200 }), found('still', { 9: 100 }));
  expect([...(await sql`select sku, hash_before_live as hash from catalog.skus order by sku`)]).toEqual([
    { sku: 'moved', hash: null },
    { sku: 'still', hash: 'h1' },
  ]);
});
