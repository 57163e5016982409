import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect } from '../../src/store/connection/db.ts';
import { eventually } from '../support/eventually.ts';
import { answerAsked, claimAll, found, knownSkus, mark, pricesOf, REFRESH, useStore } from './support.ts';

/*
 * A neighbour locks rows in another order than the mirror, which becomes the deadlock's victim. The error belongs
 * to one of several statements that were sent in one go, and their transaction is run again.
 */

const store = useStore();

const deadlocks = async () => {
  const [row] = await store.sql<[{ deadlocks: number }]>`
    select deadlocks::int from pg_stat_database where datname = current_database()`;
  return row.deadlocks;
};

const work = {
  'an answer': async () => {
    const claim = await claimAll(store.sql);
    return async () => {
      const { accepted } = await applyAnswer(
        store.sql,
        claim,
        [found('A', { 9: 2 }), found('B', { 9: 2 })],
        REFRESH,
      );
      expect(accepted).toBe(2);
      expect(await pricesOf(store.sql, 'A')).toEqual({ 9: 2 });
    };
  },
  'a delta': async () => {
    await store.sql`update catalog_internal.sync set snapshot_id = '0'`;
    return async () => {
      await applyDelta(store.sql, {
        since: '0',
        toSnapshot: '1',
        changed: ['A', 'B'],
        removed: [],
        nowLive: [],
      });
      const [row] = await store.sql`select snapshot_id from catalog_internal.sync`;
      expect(row).toEqual({ snapshot_id: '1' });
    };
  },
};

test.each([
  ['an answer', 'catalog.skus'],
  ['an answer', 'catalog_internal.due'],
  ['an answer', 'catalog.products'],
  ['an answer', 'catalog.prices'],
  ['a delta', 'catalog.skus'],
  ['a delta', 'catalog_internal.due'],
] as const)('%s that is the victim of a deadlock in %s is applied', async (name, table) => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B']);
  await answerAsked(sql, found('A', { 9: 1 }), found('B', { 9: 1 }));
  await mark(sql, ['A', 'B']);
  const apply = await work[name]();
  const before = await deadlocks();
  const neighbour = connect(store.url, { max: 1 });
  // Whoever has waited for a second detects the deadlock and is its victim; the neighbour never does.
  await neighbour`set deadlock_timeout = '1h'`;
  const under: Promise<void>[] = [];
  await neighbour.begin(async (tx) => {
    await tx.unsafe(`select from ${table} where sku = 'B' for update`);
    const applied = apply();
    applied.catch(() => {});
    under.push(applied);
    // One message, because Postgres checks for a deadlock only once, a second after the mirror has begun to wait.
    await tx
      .unsafe(
        `do $$ begin
          while not exists (
            select from pg_locks l join pg_stat_activity a using (pid)
            where not l.granted and a.datname = current_database()
          ) loop
            perform pg_stat_clear_snapshot(), pg_sleep(0.002);
          end loop;
        end $$;
        select from ${table} where sku = 'A' for update`,
      )
      .simple();
  });
  await Promise.all(under);
  await neighbour.end({ timeout: 5 });
  // At least one: the retry may lock the first of the rows before the neighbour has woken up.
  await eventually(async () => expect(await deadlocks()).toBeGreaterThan(before));
});
