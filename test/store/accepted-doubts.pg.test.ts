import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { acceptDoubted } from '../../src/store/answer/seller-doubts.ts';
import { LONGEST_CACHED_SECONDS } from '../../src/store/catalog/audit.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { endWaits } from '../../src/store/ledger/due.ts';
import { eventually } from '../support/eventually.ts';
import { doubting, POISON, USUAL } from './doubting.ts';
import { baseline, line, standing } from './manifest.ts';
import {
  allDue,
  answerAsked,
  claimAll,
  found,
  HOUR,
  LEASE_MS,
  ledger,
  mark,
  passHours,
  REFRESH,
  useStore,
} from './support.ts';

/* A seller accepts doubted prices: their SKUs are still asked for whatever was reported about them since. */

const store = useStore();

const { answer, priced, seen } = doubting(store);

test('a report that came before the second answer is not lost when the seller accepts the price', async () => {
  const { sql } = store;
  await priced('A', 'B');
  await answer([found('A', POISON), found('B', POISON)]);
  await sql`update catalog_internal.sync set snapshot_id = 's1'`;
  const nothing = { removed: [], nowLive: [] };
  await applyDelta(sql, { since: 's1', toSnapshot: 's2', changed: ['A'], ...nothing });
  expect(await acceptDoubted(sql, null)).toBe(2);
  // Nothing was reported about B: it waits for its sweep.
  expect(await seen('B')).toMatchObject({ doubt: null, actionable: true });
  expect(await seen('A')).toMatchObject({ doubt: 'owed', actionable: false });
  expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'changed', lane: 1 });
});

test('an accepted SKU waits for its metadata refresh if there are no sweeps', async () => {
  const { sql } = store;
  await sql`update catalog_internal.settings set sweep_interval = 0`;
  await priced('A');
  await answer([found('A', POISON)]);
  await acceptDoubted(sql, null);
  expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'metadata', lane: 5 });
});

test('an accepted SKU that counts as live because of deferrals is next due as a live SKU', async () => {
  const { sql } = store;
  await sql`update catalog_internal.settings set live_interval = 1800`;
  await priced('A');
  const deferred = { sku: 'A', kind: 'deferred', waitMs: HOUR } as const;
  await answer([deferred]);
  await answer([found('A', { ...USUAL, 40: 4050 })]);
  await answer([deferred]);
  await answer([found('A', POISON)]);
  expect(await seen('A')).toMatchObject({ doubt: 'implausible' });
  await acceptDoubted(sql, ['A']);
  const row = (await ledger(sql)).get('A');
  expect(row).toMatchObject({ reason: 'live', lane: 2, live: true });
  expect(row?.dueIn).toBeCloseTo(0.5, 1);
});

test('an accepted SKU still gets the second check that an earlier report requires', async () => {
  const { sql } = store;
  await priced('A');
  await sql`update catalog_internal.sync set snapshot_id = 's1'`;
  await applyDelta(sql, { since: 's1', toSnapshot: 's2', changed: ['A'], removed: [], nowLive: [] });
  await answer([found('A', USUAL)]);
  expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'again' });
  await answer([found('A', POISON)]);
  await acceptDoubted(sql, ['A']);
  const row = (await ledger(sql)).get('A');
  expect(row).toMatchObject({ reason: 'again', lane: 5 });
  expect(row?.dueIn).toBeCloseTo(LONGEST_CACHED_SECONDS / 3600, 2);
});

test('accepting a price does not cancel what a manifest has reported since', async () => {
  const { sql } = store;
  await standing(store, line('A'));
  await answerAsked(sql, found('A', USUAL));
  await answer([found('A', POISON)]);
  await baseline(store.url, [line('A', { hash: 'h2' })]);
  await acceptDoubted(sql, ['A']);
  expect(await seen('A')).toMatchObject({ doubt: 'owed', actionable: false });
});

test.each(['refresh', 'watched', 'absent', 'clock'])(
  'accepting a price does not cancel a mark with the reason %s',
  async (reason) => {
    const { sql } = store;
    await priced('A');
    await answer([found('A', POISON)]);
    await mark(sql, ['A'], reason);
    await acceptDoubted(sql, ['A']);
    const row = (await ledger(sql)).get('A');
    expect(row).toMatchObject({ reason, lane: 1 });
    expect(row?.dueIn).toBeLessThanOrEqual(0);
  },
);

test('accepting a price does not shorten the wait of a SKU whose second answer was deferred', async () => {
  const { sql } = store;
  await priced('A');
  await answer([found('A', POISON)]);
  await passHours(sql, 0.2);
  await endWaits(sql, 9);
  await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'deferred', waitMs: HOUR }], REFRESH);
  await acceptDoubted(sql, ['A']);
  expect(await seen('A')).toMatchObject({ doubt: null, actionable: true });
  await mark(sql, ['A']);
  expect((await ledger(sql)).get('A')?.heldFor).toBeGreaterThan(0.9);
  expect(await claimDue(sql, { quotas: allDue(9) }, LEASE_MS)).toBeNull();
});

test('a price doubted after the seller accepted stays doubted, however long ending the other doubts takes', async () => {
  const { sql } = store;
  await priced('A', 'Z');
  await answer([found('A', POISON)]);
  const accepting: Promise<number>[] = [];
  await sql.begin(async (tx) => {
    await tx`select from catalog_internal.due where sku = 'A' for update`;
    accepting.push(acceptDoubted(sql, null));
    await eventually(async () => {
      expect(
        await sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      ).toHaveLength(1);
    });
    await answer([found('Z', POISON)]);
  });
  expect(await accepting[0]).toBe(1);
  expect(await seen('A')).toMatchObject({ doubt: null });
  expect(await acceptDoubted(sql, ['A'])).toBe(0);
  expect(await seen('Z')).toMatchObject({ doubt: 'implausible', actionable: false });
});

test('a doubt dated by a clock that ran ahead can be accepted as well', async () => {
  const { sql } = store;
  await priced('A');
  await answer([found('A', POISON)]);
  await sql`update catalog_internal.due set doubted_at = clock_timestamp() + interval '1 hour' where sku = 'A'`;
  expect(await acceptDoubted(sql, null)).toBe(1);
});

test('if a mass move begins meanwhile, the doubts it raises need another acceptance', async () => {
  const { sql } = store;
  await priced('A', 'B');
  await answer([found('A', POISON), found('B', POISON)]);
  const accepting: Promise<number>[] = [];
  await sql.begin(async (tx) => {
    // Here the acceptance has ended the earlier mass moves.
    await tx`lock table catalog_internal.odd_moves in access exclusive mode`;
    accepting.push(acceptDoubted(sql, null));
    await eventually(async () => {
      expect(
        await sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      ).toHaveLength(1);
    });
    await sql`update catalog_internal.mass_move set since = clock_timestamp(), kind = 'far'`;
  });
  expect(await accepting[0]).toBe(0);
  expect(await seen('A')).toMatchObject({ doubt: 'implausible' });
});
