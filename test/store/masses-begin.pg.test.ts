import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { type HourOfMoves, NO_MOVES } from '../../src/store/answer/hour-of-moves.ts';
import { followMoves } from '../../src/store/answer/mass-moves.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { connect, type Tx } from '../../src/store/connection/db.ts';
import { ofThisDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { doubting, USUAL } from './doubting.ts';
import { claimAll, found, knownSkus, ledger, mark, REFRESH, useStore } from './support.ts';

/* A mass move begins while an answer is being written that was judged before this was known. */

const store = useStore();

const { answer, passMinutes, priced, seen } = doubting(store);

const times = (factor: number) =>
  Object.fromEntries(Object.entries(USUAL).map(([size, price]) => [size, Math.round(price * factor)]));

const NOTHING_KNOWN = { since: null, kind: null, usual: null, factor: null, accepted: null };
const FAR = { answers: 300, moves: 300, move: 1 };
const FACTOR = { answers: 300, implausible: 300, implausibleSkus: 64, factor: Math.log(100) };

/** A step at which somebody holds what an answer waits for; `waits` selects the lock that it waits for. */
interface Step {
  readonly hold: (tx: Tx) => PromiseLike<unknown>;
  readonly waits: string;
}
const AT_LAST_LOCK: Step = {
  hold: (tx) => tx`select catalog_internal.lock_changes()`,
  waits: `relation = 'catalog_internal.lock_changes'::regclass`,
};
/** With a trigger of the test. */
const AT_COMMIT: Step = { hold: (tx) => tx`select pg_advisory_xact_lock(1)`, waits: `locktype = 'advisory'` };

/** Opens a daemon's connection that waits only briefly for locks. */
function impatient() {
  const sql = connect(store.url, { max: 2 });
  Object.assign(sql.options.connection, {
    options: `${String(sql.options.connection['options'])} -c lock_timeout=200`,
  });
  return { sql, [Symbol.asyncDispose]: () => sql.end({ timeout: 2 }) };
}

/** Lets another daemon begin a mass move while the answer waits; `reported` are marked between its claim and that. */
async function answeredMeanwhile(
  results: readonly SkuResult[],
  {
    hour = FAR,
    reported = [],
    step = AT_LAST_LOCK,
    isWaitedFor = false,
    isKilled = false,
    isImpatient = false,
  }: {
    hour?: Partial<HourOfMoves>;
    reported?: readonly string[];
    step?: Step;
    /** Whether its SKUs moved within the hour before, so that it locks what is to be doubted first. */
    isWaitedFor?: boolean;
    /** Whether the other daemon ends once it has begun the mass move and waits for the answer. */
    isKilled?: boolean;
    /** Whether the other daemon waits for the answer for less time than writing it takes. */
    isImpatient?: boolean;
  } = {},
): Promise<void> {
  const { sql } = store;
  await using other = isImpatient ? impatient() : { sql, [Symbol.asyncDispose]: () => Promise.resolve() };
  await mark(
    sql,
    results.map(({ sku }) => sku),
  );
  const claim = await claimAll(sql);
  if (reported.length > 0) await mark(sql, reported);
  const moves = { ...NO_OBSERVERS.moves, hour: () => ({ ...NO_MOVES, ...hour }) };
  const running: Promise<unknown>[] = [];
  await sql.begin(async (tx) => {
    await step.hold(tx);
    running.push(applyAnswer(sql, claim, results, REFRESH));
    await eventually(async () => {
      expect(
        await sql`select from pg_locks where ${sql.unsafe(step.waits)} and not granted and ${ofThisDatabase(sql)}`,
      ).toHaveLength(1);
    });
    const follows = followMoves(other.sql, moves, [], NOTHING_KNOWN);
    follows.catch(() => {});
    running.push(follows);
    if (isImpatient) await follows;
    else
      await eventually(async () => {
        const begun = await sql`select from catalog_internal.mass_move where since is not null`;
        const waiting = await sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        expect(isWaitedFor ? waiting.length : begun.length + 1).toBe(2);
      });
    if (isKilled) {
      const waits = sql`relation = 'catalog_internal.lock_changes'::regclass and not granted and ${ofThisDatabase(sql)}`;
      await eventually(async () => {
        expect(await sql`select pg_terminate_backend(pid) from pg_locks where ${waits}`).toHaveLength(1);
      });
    }
  });
  const [, begun] = await Promise.allSettled(running);
  expect(begun).toMatchObject(isKilled ? { status: 'rejected' } : { value: { event: 'began' } });
}

test('the moves of an answer being written are doubted, and requested again after five minutes', async () => {
  await priced('A', 'B');
  await answeredMeanwhile([found('A', times(0.6)), found('B', USUAL)]);
  expect(await seen('A')).toEqual({ doubt: 'mass-move', actionable: false, price: 2460 });
  expect(await seen('B')).toMatchObject({ doubt: null, actionable: true });
  const row = (await ledger(store.sql)).get('A');
  expect(row).toMatchObject({ reason: 'doubted', lane: 1, claim: null });
  expect(row?.dueIn).toBeLessThanOrEqual(0);
  expect(row?.heldFor).toBeCloseTo(5 / 60, 2);
  const [held] = await store.sql`select believed from catalog_internal.due where sku = 'A'`;
  expect(held).toEqual({ believed: USUAL });
});

/** Makes answers wait at their commit while `AT_COMMIT` holds them. */
async function holding(): Promise<AsyncDisposable> {
  const { sql } = store;
  await sql.unsafe(`
    create function public.hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return null; end $$;
    create constraint trigger hold after update on catalog.skus deferrable initially deferred for each row execute function public.hold()`);
  return { [Symbol.asyncDispose]: async () => void (await sql.unsafe('drop function public.hold cascade')) };
}

test('the moves of an answer being written are doubted even if only its commit is left', async () => {
  await priced('A');
  await using _ = await holding();
  await answeredMeanwhile([found('A', times(0.6))], { step: AT_COMMIT });
  expect(await seen('A')).toMatchObject({ doubt: 'mass-move', actionable: false });
});

test('if writing the answer takes longer than the wait for it, the next answer doubts its moves', async () => {
  await priced('A', 'B');
  await using _ = await holding();
  await answeredMeanwhile([found('A', times(0.6))], { step: AT_COMMIT, isImpatient: true });
  await answer([found('B', USUAL)]);
  expect(await seen('A')).toMatchObject({ doubt: 'mass-move', actionable: false });
});

test('if the daemon dies before it has doubted what came meanwhile, the next answer does so', async () => {
  await priced('A', 'B');
  await using _ = await holding();
  await answeredMeanwhile([found('A', times(0.6))], { step: AT_COMMIT, isKilled: true });
  await answer([found('B', USUAL)]);
  expect(await seen('A')).toMatchObject({ doubt: 'mass-move', actionable: false });
  // Only once: what a second answer confirms is believed.
  await passMinutes(6);
  await answer([found('A', times(0.6))]);
  await answer([found('B', USUAL)]);
  expect(await seen('A')).toMatchObject({ doubt: null, price: 2460 });
});

test('a SKU that moved earlier too is doubted from the answer that was waited for', async () => {
  const { sql } = store;
  await priced('A');
  await answer([found('A', times(1.02))]);
  await passMinutes(10);
  await sql`update catalog.price_history set observed_at = observed_at - interval '10 minutes'`;
  await answeredMeanwhile([found('A', times(0.6))], { isWaitedFor: true });
  expect(await seen('A')).toMatchObject({ doubt: 'mass-move', price: 2460 });
  expect((await ledger(sql)).get('A')?.heldFor).toBeCloseTo(5 / 60, 2);
});

test('a SKU that was reported since its request is requested again at once', async () => {
  await priced('A');
  await answeredMeanwhile([found('A', times(0.6))], { reported: ['A'] });
  expect(await seen('A')).toMatchObject({ doubt: 'mass-move' });
  expect((await ledger(store.sql)).get('A')).toMatchObject({ reason: 'changed', heldFor: null });
});

test.each([
  { how: 'in another unit', hour: FACTOR, doubt: 'mass-move' },
  { how: 'far', hour: FAR, doubt: null },
])('if prices move $how, first prices have the doubt $doubt', async ({ hour, doubt }) => {
  await priced('A');
  await knownSkus(store.sql, ['new']);
  await answeredMeanwhile([found('new', USUAL)], { hour });
  expect(await seen('new')).toMatchObject({ doubt });
});

test('a mass move begins once: later calls doubt nothing more, nor does one beside another that begins it', async () => {
  const { sql } = store;
  await priced('A');
  await answer([found('A', times(0.6))]);
  const hour = () => ({ ...NO_MOVES, ...FAR });
  const busy = { ...NO_OBSERVERS.moves, hour, alone: () => Promise.resolve(null) };
  expect(await followMoves(sql, busy, [], NOTHING_KNOWN)).toBeNull();
  expect(await seen('A')).toMatchObject({ doubt: null });

  const moves = { ...NO_OBSERVERS.moves, hour };
  expect(await followMoves(sql, moves, [], NOTHING_KNOWN)).toMatchObject({
    event: 'began',
    kind: 'far',
    skus: 1,
  });
  await sql`update catalog_internal.due set doubt = null where sku = 'A'`;
  expect(await followMoves(sql, moves, [], NOTHING_KNOWN)).toBeNull();
  expect(await sql`select doubt from catalog_internal.due`).toEqual([{ doubt: null }]);
});

test('moves within the hour are found without reading the history of the years before', async () => {
  const { sql } = store;
  await priced('A');
  const old = 30_000;
  await using one = oneSession();
  await one.sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
    select 'A', '41', 4100, 4100, now() - interval '40 days' from generate_series(1, ${old}::int)`;
  await sql`
    insert into catalog_internal.history_milestones (position, at)
    select max(id), now() - interval '30 days' from catalog.price_history`;
  await answer([found('A', times(0.6))]);
  await one.sql.unsafe('vacuum analyze catalog.price_history');
  const read = async () => {
    await one.sql`select pg_stat_force_next_flush()`;
    const [row] = await one.sql<[{ rows: number }]>`
      select sum(seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_user_tables where relname like 'price_history%'`;
    return row.rows;
  };
  const before = await read();
  const moves = { ...NO_OBSERVERS.moves, hour: () => ({ ...NO_MOVES, ...FAR }) };
  expect(await followMoves(one.sql, moves, [], NOTHING_KNOWN)).toMatchObject({ event: 'began', skus: 1 });
  expect((await read()) - before).toBeLessThan(old / 2);
});

/** Opens a session whose statistics are flushed on request. */
function oneSession() {
  const sql = connect(store.url, { max: 1 });
  return { sql, [Symbol.asyncDispose]: async () => await sql.end() };
}
