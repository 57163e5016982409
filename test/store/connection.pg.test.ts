import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { connect, connectAlone, type Sql } from '../../src/store/connection/db.ts';
import { waitForDatabase } from '../../src/store/connection/startup.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { through } from '../support/net.ts';
import { atStatement } from '../support/postgres-wire.ts';
import { type Proxy, proxyTo } from '../support/proxy.ts';

/*
 * What postgres.js does with a lost connection (ops/patches): every statement settles, none runs in a transaction
 * of another, and the connection works again. One connection, so that everything meets on it.
 */

let database: TestDatabase;
let aside: Sql;
beforeAll(async () => {
  database = await createDatabase();
  aside = connect(database.url, { max: 1 });
  await aside`create table public.rows_written (what text)`;
});
afterAll(async () => {
  await aside.end({ timeout: 2 });
  await database.drop();
});

const LOST = /CONNECTION_CLOSED|ECONNRESET|terminating connection/u;

interface Line extends AsyncDisposable {
  readonly sql: Sql;
  readonly proxy: Proxy;
}

async function openLine(max = 1): Promise<Line> {
  // A statement that slept when its connection was cut sleeps on, and keeps its locks.
  await terminate();
  await aside`truncate public.rows_written`;
  const proxy = await proxyTo(database.url);
  const sql = connect(through(database.url, proxy), { max, name: 'the line' });
  await sql`select 1`;
  return {
    sql,
    proxy,
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 2 });
      await proxy[Symbol.asyncDispose]();
    },
  };
}

test('no statement is JIT-compiled, whatever server and database say, because that takes seconds per call', async () => {
  const [{ name }] = await aside<[{ name: string }]>`select current_database() as name`;
  await aside.unsafe(`alter database "${name}" set jit = on`);
  const sql = connect(database.url, { max: 1 });
  try {
    expect(await sql`show jit`).toEqual([{ jit: 'off' }]);
  } finally {
    await sql.end({ timeout: 2 });
  }
});

test('views stay readable, whatever the database says, on later connections and outside of a pool too', async () => {
  const [{ name, known }] = await aside<[{ name: string; known: boolean }]>`
    select current_database() as name, current_setting('restrict_nonsystem_relation_kind', true) is not null as known`;
  // The first minor releases of 14 to 16 do not have the setting.
  if (!known) return;
  await aside`create view public.one_row as select 1 as one`;
  await aside.unsafe(`alter database "${name}" set restrict_nonsystem_relation_kind = 'view'`);
  const sql = connect(database.url, { max: 3 });
  try {
    await waitForDatabase(sql, systemClock, 60_000);
    const read = () => sql`select one, pg_sleep(0.05)::text as slept from public.one_row`;
    for (const rows of await Promise.all([read(), read(), read()])) expect(rows).toMatchObject([{ one: 1 }]);
    const client = await connectAlone(database.url, { application_name: 'alone' });
    const { rows } = await client.query('select one from public.one_row');
    await client.end();
    expect(rows).toEqual([{ one: 1 }]);
  } finally {
    await sql.end({ timeout: 2 });
    await aside.unsafe(`alter database "${name}" reset restrict_nonsystem_relation_kind`);
  }
});

async function written(): Promise<string[]> {
  const rows = await aside<{ what: string }[]>`select what from public.rows_written order by what`;
  return rows.map(({ what }) => what);
}

/** Resolves once a statement of the line is under way at the server. */
async function underWay(what: string): Promise<void> {
  await eventually(
    async () => {
      const [{ there }] = await aside<[{ there: boolean }]>`
      select exists (select from pg_stat_activity
        where datname = current_database() and application_name = 'the line' and state = 'active' and query like ${`%${what}%`}) as there`;
      return there;
    },
    { what: `a statement with ${what}` },
  );
}

/**
 * Returns what a promise is rejected with. The promise then counts as handled, even if nobody awaits the result
 * yet.
 */
async function reasonOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return 'nothing';
  } catch (error) {
    return String(error);
  }
}

async function terminate(): Promise<void> {
  await aside`select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'the line' and datname = current_database()`;
}

const CUTS: [string, (line: Line) => Promise<void>][] = [
  ['reset', async ({ proxy }) => void proxy.reset()],
  ['half-closed', async ({ proxy }) => proxy.halfClose('to-client')],
  ['terminated', terminate],
];

describe.each(CUTS)('a connection that is %s', (_, cut) => {
  test('under a statement: what is sent right afterwards settles with its own answer', async () => {
    await using line = await openLine();
    const { sql } = line;
    const answers: number[] = [];
    // Each is sent at the very moment at which the one before it fails: between the socket's error and its close.
    const follow = async (number: number): Promise<void> => {
      try {
        const [row] = await sql<[{ number: number }]>`select ${number}::int as number, pg_sleep(0)`;
        answers.push(row.number - number);
      } catch {
        await follow(number);
      }
    };
    for (let round = 0; round < 5; round += 1) {
      const slow = sql`select pg_sleep(30) as slow_${sql.unsafe(String(round))}`.catch(() => follow(round));
      const queued = [10, 20, 30].map((number) => follow(number + round));
      await underWay(`slow_${round}`);
      await cut(line);
      await Promise.all([slow, ...queued]);
    }
    expect(answers).toEqual(Array.from({ length: 20 }, () => 0));
  });

  test('under a transaction: the transaction is rejected, and the next one is whole', async () => {
    await using line = await openLine();
    const { sql } = line;
    for (let round = 0; round < 3; round += 1) {
      const lost = sql.begin(async (tx) => {
        await tx`insert into public.rows_written values ('lost')`;
        await tx`select pg_sleep(30) as slow_tx_${tx.unsafe(String(round))}`;
      });
      const failure = reasonOf(lost);
      const next = sql
        .begin((tx) => tx`insert into public.rows_written values (${`next ${round}`})`)
        .catch(() => {});
      await underWay(`slow_tx_${round}`);
      await cut(line);
      expect(await failure).toMatch(LOST);
      await next;
      await sql.begin((tx) => tx`insert into public.rows_written values (${`after ${round}`})`);
    }
    const rows = await written();
    expect(rows.filter((what) => what.startsWith('after'))).toEqual(['after 0', 'after 1', 'after 2']);
    expect(rows).not.toContain('lost');
  });

  test('between two statements of a transaction: the second runs in nobody else’s', async () => {
    await using line = await openLine();
    const { sql } = line;
    const ready = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const lost = sql.begin(async (tx) => {
      await tx`insert into public.rows_written values ('lost')`;
      ready.resolve();
      await goOn.promise;
      await tx`insert into public.rows_written values ('lost, too')`;
    });
    const failure = reasonOf(lost);
    await ready.promise;
    await cut(line);
    expect(await failure).toMatch(LOST);
    const other = sql.begin(async (tx) => {
      await tx`insert into public.rows_written values ('other')`;
      goOn.resolve();
      await tx`select pg_sleep(0.05)`;
    });
    await other;
    expect(await written()).toEqual(['other']);
  });

  test('under the first of several statements of a transaction: all of them settle', async () => {
    await using line = await openLine();
    const { sql } = line;
    const settled: Promise<PromiseSettledResult<unknown>[]>[] = [];
    const lost = sql.begin(async (tx) => {
      const statements = [
        tx`select pg_sleep(30) as slow_first`,
        ...Array.from({ length: 120 }, (__, number) => tx`select ${number}::int, ${'x'.repeat(4096)}::text`),
      ].map(async (statement) => await statement);
      settled.push(Promise.allSettled(statements));
      await Promise.all(statements);
    });
    const failure = reasonOf(lost);
    await underWay('slow_first');
    await cut(line);
    expect(await failure).toMatch(LOST);
    const results = await settled[0];
    expect(results?.every(({ status }) => status === 'rejected')).toBe(true);
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  });

  test('lets its pool end', async () => {
    await using line = await openLine();
    const slow = line.sql`select pg_sleep(30) as slow_end`.catch(() => 'lost');
    await underWay('slow_end');
    const ended = line.sql.end();
    await cut(line);
    expect(await slow).toBe('lost');
    await ended;
  });
});

describe('behind a statement that failed after some of its rows', () => {
  const failing: [string, (sql: Sql) => Promise<unknown>][] = [
    ['by an error', (sql) => sql`select 1 / (3 - n) from generate_series(1, 5) n`],
    [
      'with its connection',
      // Postgres sends the first row before it notices that it must end.
      (sql) => sql`select pg_terminate_backend(pg_backend_pid()) from generate_series(1, 2)`,
    ],
  ];

  test.each(failing)('%s, the next statement has its own rows, each in its place', async (_, fail) => {
    await using line = await openLine();
    const { sql } = line;
    // As in a daemon; otherwise the driver's own statement is the next one.
    await waitForDatabase(sql, systemClock, 10_000);
    for (let round = 0; round < 3; round += 1) {
      expect(await reasonOf(fail(sql))).toMatch(/division by zero|terminating connection|CONNECTION_CLOSED/);
      const rows = await sql<{ round: number }[]>`select ${round}::int as round`;
      expect([...rows]).toEqual([{ round }]);
    }
  });
});

test('if a connection is lost while the driver reads array types, statements settle and no rejection is unhandled', async () => {
  await using proxy = await proxyTo(database.url);
  const types = atStatement(/pg_catalog\.pg_type/);
  proxy.watch(types.watcher);
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  const sql = connect(through(database.url, proxy), { max: 1 });
  try {
    const first = reasonOf(sql`select 1 as one`);
    await eventually(() => types.hits() > 0, { what: 'the statement on types is lost' });
    proxy.heal();
    expect(await first).toMatch(/nothing|CONNECTION_CLOSED|ECONNRESET/);
    const [{ ids }] = await sql<[{ ids: number[] }]>`select array[1, 2]::int[] as ids`;
    expect(ids).toEqual([1, 2]);
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
    await sql.end({ timeout: 2 });
  }
});

test('if all connections are lost at once, repeatedly, nothing hangs and no answer goes to another statement', async () => {
  await using line = await openLine(4);
  const { sql, proxy } = line;
  const wrong: number[] = [];
  const done = { statements: 0, transactions: 0 };
  const over = new AbortController();
  const asks = async (worker: number): Promise<void> => {
    for (let number = worker * 1_000_000; !over.signal.aborted; number += 1) {
      try {
        const [row] = await sql<
          [{ number: number }]
        >`select ${number}::int as number, ${'y'.repeat(number % 3000)} as y`;
        if (row.number !== number) wrong.push(number);
        done.statements += 1;
        await sql.begin(async (tx) => {
          const [first] = await tx<[{ id: string }]>`select pg_current_xact_id()::text as id`;
          const [again] = await tx<[{ id: string }]>`select pg_current_xact_id()::text as id, ${number}::int`;
          if (first.id !== again.id) wrong.push(number);
        });
        done.transactions += 1;
      } catch {
        // Retry at once, as daemons that share a pool do.
      }
    }
  };
  const workers = [1, 2, 3, 4, 5, 6, 7, 8].map(asks);
  for (let round = 0; round < 12; round += 1) {
    const before = { ...done };
    await eventually(
      () => done.transactions > before.transactions + 20 && done.statements > before.statements + 20,
      { what: 'work goes on' },
    );
    if (round % 3 === 2) await terminate();
    else proxy.reset();
  }
  over.abort();
  await Promise.all(workers);
  expect(wrong).toEqual([]);
});
