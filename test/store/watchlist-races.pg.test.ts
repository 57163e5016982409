import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { storeFailedCall, storeLesson } from '../../src/store/call/call-lesson.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { type Claim, returnClaim } from '../../src/store/ledger/due.ts';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import { readWatchlist } from '../../src/store/sellers/watchlist.ts';
import { ANY_SIZE } from '../../src/sync/reprice/call-size.ts';
import { eventually } from '../support/eventually.ts';
import { baseline, line, standing } from './manifest.ts';
import {
  allDue,
  answerAsked,
  claimAll,
  found,
  knownSkus,
  LEASE_MS,
  mark,
  REFRESH,
  useStore,
} from './support.ts';
import { dueNow } from './watching.ts';

/*
 * Orders of the mirror's transactions that went wrong once, each forced by locks. One of the transactions copies
 * the watchlist to the ledger.
 */

const store = useStore();

const FAILED = { because: 'timeout', failures: 1, pauseMs: 0, holdMs: 0, largestCall: 1, callSize: null };

/** Resolves once so many connections wait for somebody's lock. */
async function untilWaiting(count: number): Promise<void> {
  const waiting = async () => {
    const [row] = await store.sql<[{ count: number }]>`
      select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    return row.count;
  };
  await eventually(async () => expect(await waiting()).toBe(count));
}

const delta = (changed: readonly string[], removed: readonly string[] = []) =>
  applyDelta(store.sql, { since: 'm0', toSnapshot: 'd1', changed, removed, nowLive: [] });

/** Reads the list and copies it to the ledger, however long it waits for locks. */
async function tellLedger(tx: Pick<Sql, 'unsafe'>): Promise<void> {
  await tx.unsafe('select catalog_internal.read_watchlist(false, 1000)');
  await tx.unsafe('select catalog_internal.watched_to_ledger(1000)');
}

const watchAndTell = async (sql: Sql, ...skus: readonly string[]) => {
  await sql`
    insert into catalog.watchlist (sku) select unnest(${skus as string[]}::text[]) on conflict (sku) do update set weight = 1`;
  await sql`insert into catalog_internal.watch_changes (added, skus) values (true, ${skus as string[]}::text[])`;
  await sql.begin(tellLedger);
};

describe('the rank of an urgent SKU is the weight that was committed last', () => {
  test('even if a mark read the former weight and then waited for the new one to be copied', async () => {
    const { sql } = store;
    await watchAndTell(sql, 'A');
    await sql`update catalog.watchlist set weight = 9`;
    let marking: Promise<unknown> = Promise.resolve();
    await sql.begin(async (telling) => {
      await tellLedger(telling);
      marking = mark(sql, ['A']);
      await untilWaiting(1);
    });
    await marking;
    expect(await dueNow(sql)).toEqual(['A changed 9']);
  });

  test.each(['update catalog.watchlist set weight = 9', 'delete from catalog.watchlist'])(
    'even after %s, committed beside an uncommitted mark that made the SKU urgent',
    async (statement) => {
      const { sql } = store;
      await sql`insert into catalog.watchlist (sku, weight) values ('A', 5)`;
      await answerAsked(sql, found('A'));
      let selling: Promise<unknown> = Promise.resolve();
      await sql.begin(async (marking) => {
        await marking`select catalog_internal.mark_due(array['A'], 'changed')`;
        await sql.unsafe(statement);
        selling = sql.begin(tellLedger);
        await untilWaiting(1);
      });
      await selling;
      expect(await dueNow(sql)).toEqual([statement.startsWith('delete') ? 'A changed 1' : 'A changed 9']);
    },
  );
});

describe('there is no deadlock if', () => {
  /** Starts `work`, which comes to wait for B, watches A and then A and B again, and releases B. */
  async function besideSellers(work: () => Promise<unknown>): Promise<void> {
    const { sql } = store;
    const running: Promise<unknown>[] = [];
    await sql.begin(async (other) => {
      await other`select from catalog.skus where sku = 'B' for update`;
      running.push(work());
      await untilWaiting(1);
      const first = watchAndTell(sql, 'A');
      running.push(first);
      await Promise.race([first, untilWaiting(2)]);
      running.push(watchAndTell(sql, 'A', 'B'));
      await untilWaiting((await sql`select from catalog.skus where sku = 'A'`).length > 0 ? 2 : 3);
    });
    await Promise.all(running);
    expect((await dueNow(sql)).map((row) => row.split(' ')[0])).toEqual(['A', 'B']);
  }

  test('sellers watch what a delta is about to add', async () => {
    await standing(store, line('B'));
    await besideSellers(() => delta(['A', 'B']));
  });

  test('sellers watch what a manifest is about to add', async () => {
    await standing(store, line('B'));
    await besideSellers(() => baseline(store.url, [line('A'), line('B', { hash: 'h2' })]));
  });

  test('sellers watch what somebody refreshes', async () => {
    await knownSkus(store.sql, ['B']);
    await besideSellers(() => refreshSkus(store.sql, ['A', 'B']));
  });

  /** Watches both SKUs; B's row of the ledger is written first. */
  async function watchBoth(): Promise<void> {
    await watchAndTell(store.sql, 'B');
    await watchAndTell(store.sql, 'A');
  }

  /** Lets a seller's commit of new weights wait for A's row of the ledger, and `work` behind it, and releases A. */
  async function besideWeights(work: () => Promise<unknown>): Promise<void> {
    const { sql } = store;
    const seller = connect(store.url, { max: 1 });
    try {
      // The mirror's own transactions are retried, so they must not be the ones that detect the deadlock.
      await seller`set deadlock_timeout = '1ms'`;
      const running: Promise<unknown>[] = [];
      await sql.begin(async (other) => {
        await other`select from catalog_internal.due where sku = 'A' for update`;
        await seller`update catalog.watchlist set weight = 2`;
        running.push(seller.begin(tellLedger));
        await untilWaiting(1);
        running.push(work());
        await untilWaiting(2);
      });
      await Promise.all(running);
    } finally {
      await seller.end({ timeout: 2 });
    }
    expect([...(await sql`select from catalog_internal.due where lane = 1 and rank <> 2`)]).toEqual([]);
  }

  test('a seller changes weights of what a delta marks, new SKUs after those with a price', async () => {
    await standing(store, line('B'));
    await watchBoth();
    await answerAsked(store.sql, found('B', { 9: 90 }));
    await besideWeights(() => delta(['A', 'B']));
  });

  test('a seller changes weights of what a manifest marks, SKUs that it lacks before those that differ', async () => {
    await standing(store, line('A'), line('B'));
    await watchBoth();
    await answerAsked(store.sql, found('A', { 9: 90 }), found('B', { 9: 90 }));
    await besideWeights(() => baseline(store.url, [line('A', { hash: 'h2' })]));
  });

  test('a seller changes weights while everything is being refreshed', async () => {
    const { sql } = store;
    await watchBoth();
    await sql`update catalog_internal.due set due_at = now() + interval '1 hour'`;
    await besideWeights(() => refreshAll(sql, 'prices'));
  });

  test('a seller changes weights of SKUs whose call is given back', async () => {
    await watchBoth();
    const claim = await claimAll(store.sql);
    await besideWeights(() => returnClaim(store.sql, claim, ['A', 'B']));
  });

  test('a seller changes weights of SKUs whose call failed', async () => {
    await watchBoth();
    const claim = await claimAll(store.sql);
    await besideWeights(() => storeFailedCall(store.sql, { claim, ...FAILED }));
  });

  test('a call failed while somebody refreshes one of its SKUs', async () => {
    const { sql } = store;
    await watchBoth();
    const claim = await claimAll(sql);
    await sql`update catalog_internal.tasks set failures = 1, next_at = now() + interval '1 hour' where task = 'reprice'`;
    const impatient = connect(store.url, { max: 1 });
    try {
      await impatient`set deadlock_timeout = '1ms'`;
      const running: Promise<unknown>[] = [];
      await sql.begin(async (other) => {
        await other`select from catalog_internal.due where sku = 'A' for update`;
        running.push(storeFailedCall(impatient, { claim, ...FAILED }));
        await untilWaiting(1);
        // It would wait for the pause that it ends, with B locked.
        const refreshing = refreshSkus(sql, ['B']);
        running.push(refreshing);
        await Promise.race([refreshing, untilWaiting(2)]);
      });
      await Promise.all(running);
    } finally {
      await impatient.end({ timeout: 2 });
    }
  });

  test('one call failed while another works, and both teach the size of calls', async () => {
    const { sql } = store;
    await watchBoth();
    const claim = await claimAll(sql);
    const callSize = { ...ANY_SIZE, step: 1 };
    const lesson = { call: null, budget: null, ceiling: null, ceilingStep: 0, trial: false, incident: null };
    await sql`update catalog_internal.tasks set failures = 1 where task = 'reprice'`;
    const impatient = connect(store.url, { max: 1 });
    try {
      await impatient`set deadlock_timeout = '1ms'`;
      const running: Promise<unknown>[] = [];
      await sql.begin(async (other) => {
        await other`select from catalog_internal.call_size for update`;
        running.push(storeLesson(impatient, lesson, { failures: 1, callSize, cleared: null }));
        await untilWaiting(1);
        running.push(storeFailedCall(sql, { claim, ...FAILED, callSize }));
        await untilWaiting(2);
      });
      await Promise.all(running);
    } finally {
      await impatient.end({ timeout: 2 });
    }
  });
});

describe('no delta, answer, baseline or refresh is blocked by', () => {
  test.each([
    ['a seller who has locked the list', 'lock table catalog.watchlist in access exclusive mode'],
    ['a seller who is emptying it', 'truncate catalog.watchlist'],
    [
      'a seller who has every deferred trigger run, and goes on',
      "insert into catalog.watchlist (sku) values ('A'), ('new'); set constraints all immediate",
    ],
  ])('%s', async (_, statement) => {
    const { sql } = store;
    await standing(store, line('A'), line('B'));
    await watchAndTell(sql, 'B');
    const seller = connect(store.url, { max: 1 });
    const impatient = connect(store.url, { max: 3 });
    const database = new URL(store.url).pathname.slice(1);
    try {
      await seller.begin(async (tx) => {
        await tx`set local idle_in_transaction_session_timeout = 0`;
        await tx.unsafe(statement);
        await sql.unsafe(`alter database ${database} set lock_timeout = '1s'`);
        await sql`insert into catalog_internal.watch_changes (added, skus) values (true, '{B}')`;
        await readWatchlist(impatient, { most: 10, everything: true });
        expect(await delta(['A', 'B', 'new'])).toMatchObject({ applied: true });
        const claim = await claimDue(impatient, { quotas: allDue(20) }, LEASE_MS);
        const results = (claim?.skus ?? []).map(({ sku }) => found(sku, { 9: 91 }));
        expect(await applyAnswer(impatient, claim as Claim, results, REFRESH)).toMatchObject({ accepted: 3 });
        await baseline(store.url, [line('A', { hash: 'h3' }), line('B')], {
          token: { tokenAtRequest: 'd1' },
        });
        await refreshSkus(impatient, ['A', 'B', 'C']);
        await refreshAll(impatient, 'prices');
      });
    } finally {
      await sql.unsafe(`alter database ${database} reset lock_timeout`);
      await Promise.all([seller.end({ timeout: 2 }), impatient.end({ timeout: 2 })]);
    }
    expect((await dueNow(sql)).map((row) => row.split(' ')[0])).toEqual(
      expect.arrayContaining(['A', 'B', 'C']),
    );
  });
});
