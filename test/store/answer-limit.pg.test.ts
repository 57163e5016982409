import { finished } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Baseline } from '../../src/store/catalog/baseline.ts';
import { askAfter, connect, connectAlone, scanning, type Sql } from '../../src/store/connection/db.ts';
import { endingDropped } from '../../src/store/connection/dropped-sessions.ts';
import { actingLogins } from '../support/acting-login.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { through } from '../support/net.ts';
import { type Proxy, proxyTo, when } from '../support/proxy.ts';

const WITHIN_MS = 500;

let database: TestDatabase;
let aside: Sql;
beforeAll(async () => {
  database = await createDatabase();
  aside = connect(database.url, { max: 1 });
  await aside`create table public.written (what text)`;
});
afterAll(async () => {
  await aside.end({ timeout: 2 });
  await database.drop();
});

interface Line extends AsyncDisposable {
  readonly sql: Sql;
  readonly proxy: Proxy;
}

async function openLine(max: number, url = database.url, workWithinMs?: number): Promise<Line> {
  const proxy = await proxyTo(url);
  const sql = connect(through(url, proxy), {
    max,
    name: 'the line',
    answerWithinMs: WITHIN_MS,
    ...(workWithinMs !== undefined && { workWithinMs }),
  });
  // This opens all of its connections.
  await Promise.all(Array.from({ length: max }, () => sql`select pg_sleep(0.05)`));
  return {
    sql,
    proxy,
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 0 });
      await proxy[Symbol.asyncDispose]();
    },
  };
}

const codeOf = async (work: PromiseLike<unknown>): Promise<unknown> => {
  try {
    await work;
    return 'none';
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
};

/** Resolves once the promise has settled. Only work that waits for a network to give up takes longer. */
async function settles(what: string, work: Promise<unknown>): Promise<void> {
  let settled = false;
  void work.catch(() => {}).finally(() => (settled = true));
  await eventually(() => settled, { what, within: 10_000 });
}

async function sleepers(): Promise<number> {
  const [{ n }] = await aside<[{ n: number }]>`
    select count(*)::int as n from pg_stat_activity
    where application_name = 'the line' and state = 'active' and datname = current_database()`;
  return n;
}

describe('a pool connection that leaves a statement unanswered', () => {
  test('is lost: the statement and those behind it fail, and the next one is answered', async () => {
    await using line = await openLine(1);
    const { sql, proxy } = line;
    proxy.silence();
    const codes = await Promise.all([codeOf(sql`select 1`), codeOf(sql`select 2`)]);
    expect(codes).toEqual(['ANSWER_TIMEOUT', 'ANSWER_TIMEOUT']);
    expect(await sql`select 3 as three`).toEqual([{ three: 3 }]);
  });

  test('loses its transaction: none of it is applied, or runs in the next one', async () => {
    await using line = await openLine(1);
    const { sql, proxy } = line;
    const lost = codeOf(
      sql.begin(async (tx) => {
        await tx`insert into public.written values ('in vain')`;
        proxy.silence();
        await tx`insert into public.written values ('unanswered')`.catch(() => {});
        await tx`insert into public.written values ('after it')`;
      }),
    );
    expect(await lost).toBe('ANSWER_TIMEOUT');
    await sql.begin((tx) => tx`insert into public.written values ('of another')`);
    expect(await aside`select what from public.written`).toEqual([{ what: 'of another' }]);
  });

  test('takes other unanswered connections of the pool with it: the next statements do not wait again', async () => {
    await using line = await openLine(4);
    const { sql, proxy } = line;
    proxy.silence();
    expect(await codeOf(sql`select 1`)).toBe('ANSWER_TIMEOUT');
    const codes = await Promise.all([1, 2, 3, 4].map((n) => codeOf(sql`select ${n}::int, pg_sleep(0.1)`)));
    expect(codes).toEqual(['none', 'none', 'none', 'none']);
  });

  test('is not one whose answer arrives in pieces, or that has nothing to answer', async () => {
    await using line = await openLine(1);
    const { sql, proxy } = line;
    proxy.set({ bytesPerSecond: 20_000 });
    const [row] = await sql`select repeat('x', 20000) as long`;
    expect(row?.['long']).toHaveLength(20_000);
    const connections = proxy.connections;
    await sql.begin(async (tx) => {
      await tx`select 1`;
      await aside`select pg_sleep(${(2 * WITHIN_MS) / 1000})`;
      await tx`select 2`;
    });
    expect(proxy.connections).toBe(connections);
  });

  test.each([
    ['', 0],
    [', and the connection by which that is ended falls silent, too', 1],
  ])('keeps no locks, even if its server waits for the rest of a message%s', async (_, silent) => {
    await using line = await openLine(1);
    const { sql, proxy } = line;
    await aside`insert into public.written values ('locked')`;
    const ending = when('to-server', { pattern: 'pg_terminate_backend' }, 'silence', silent);
    const lost = codeOf(
      sql.begin(async (tx) => {
        await tx`update public.written set what = 'lost' where what = 'locked'`;
        // Nobody receives the description of the statement: Postgres waits for its values.
        const described = when('to-client', { bytes: 1 }, 'silence');
        proxy.watch(() => {
          const [answer, request] = [described.watcher(), ending.watcher()];
          return (piece, way) => (answer(piece, way) === 'pass' ? request(piece, way) : 'silence');
        });
        await tx`select ${1}::int as one`;
      }),
    );
    expect(await lost).toBe('ANSWER_TIMEOUT');
    await eventually(
      async () => {
        const free = await aside`select from public.written where what = 'locked' for update skip locked`;
        return free.count > 0;
      },
      { what: 'a row without a lock', within: 5000 },
    );
    expect(ending.hits()).toBe(silent);
    await aside`delete from public.written where what = 'locked'`;
  });

  test('keeps no locks, even if its server reaches the statement only now', async () => {
    await aside`insert into public.written values ('locked')`;
    const late = connect(database.url, { max: 1, name: 'the line' });
    const asking = connect(database.url, { max: 1, name: 'the line' });
    const [{ pid }] = await late<[{ pid: number }]>`select pg_backend_pid() as pid`;
    const begunAt = performance.now();
    const lost = codeOf(
      late.begin(async (tx) => {
        await tx`update public.written set what = 'lost' where what = 'locked'`;
        endingDropped(() => asking, WITHIN_MS)(pid, begunAt);
        await tx`select pg_sleep(60)`;
      }),
    );
    expect(await lost).not.toBe('none');
    await Promise.all([late, asking].map((sql) => sql.end({ timeout: 1 })));
    await aside`delete from public.written where what = 'locked'`;
  });

  test('is not confused with a session that has its process number by now', async () => {
    const asking = connect(database.url, { max: 1, name: 'the line' });
    const away = connect('postgres://127.0.0.1:1/none', { max: 1 });
    const pools = [away, asking];
    // As of a connection older than asking may take.
    const begunAt = performance.now() - 10_000;
    const others = connect(database.url, { max: 1, name: 'the line' });
    const [{ pid }] = await others<[{ pid: number }]>`select pg_backend_pid() as pid`;
    endingDropped(() => pools.shift() ?? asking, WITHIN_MS)(pid, begunAt);
    await eventually(() => pools.length === 0, { what: 'the second attempt', within: 10_000 });
    // Its transaction is over once the pool's only connection runs another one.
    await asking.begin((tx) => tx`select 1`);
    expect(await others`select pg_backend_pid() as pid`).toEqual([{ pid }]);
    await Promise.all([others, asking, away].map((sql) => sql.end({ timeout: 1 })));
  });

  test('is ended on its server, if that can be reached, since nobody waits for it', async () => {
    await using line = await openLine(1, database.url, WITHIN_MS);
    expect(await codeOf(line.sql`select pg_sleep(60)`)).toBe('ANSWER_TIMEOUT');
    await eventually(async () => (await sleepers()) === 0, {
      what: 'a server that sleeps no more',
      within: 10_000,
    });
  });

  test('is ended on its server even if the login acts as another role', async () => {
    await using acting = await actingLogins(aside, database.url);
    await using line = await openLine(1, await acting.login(), WITHIN_MS);
    expect(await codeOf(line.sql`select pg_sleep(60)`)).toBe('ANSWER_TIMEOUT');
    await eventually(async () => (await sleepers()) === 0, {
      what: 'a server that sleeps no more',
      within: 10_000,
    });
  });

  test('leaves the pool when its lifetime is over', async () => {
    await using proxy = await proxyTo(database.url);
    const sql = postgres(through(database.url, proxy), { max: 1, max_lifetime: 0.5 });
    await sql`select 1`;
    proxy.silence();
    // Long enough for the driver to send its goodbye.
    await aside`select pg_sleep(1)`;
    await settles('a statement after the life of a connection', sql`select 2`.execute());
    await sql.end({ timeout: 0 });
  });

  test('has more time for a statement that scans the catalog', async () => {
    await using line = await openLine(1);
    const slow = scanning(
      line.sql<{ n: number }[]>`select 1 as n, pg_sleep(${(2 * WITHIN_MS) / 1000})::text`,
    );
    expect((await slow)[0]?.n).toBe(1);
  });
});

describe('a dedicated connection without an answer', () => {
  test.each(['a statement', 'a COPY'])('to %s is lost', async (what) => {
    await using proxy = await proxyTo(database.url);
    const client = await connectAlone(through(database.url, proxy), {
      application_name: 'alone',
      answerWithinMs: WITHIN_MS,
    });
    await client.query('create temporary table staging (what text)');
    proxy.silence();
    const copied = async () => {
      const copy = client.query(copyFrom('copy staging from stdin'));
      copy.end('one\n');
      await finished(copy);
    };
    expect(await codeOf(what === 'a COPY' ? copied() : client.query('select 1'))).toBe('ANSWER_TIMEOUT');
    expect(await codeOf(client.query('select 2'))).not.toBe('none');
  });

  test('is lost when Postgres no longer works for it, and lives as long as Postgres does', async () => {
    await using proxy = await proxyTo(database.url);
    const sql = connect(database.url, { max: 1, answerWithinMs: WITHIN_MS });
    const client = await connectAlone(through(database.url, proxy), {
      application_name: 'alone',
      answerWithinMs: WITHIN_MS,
    });
    await askAfter(client, sql);
    const { rows } = await client.query('select 1 as n, pg_sleep($1)', [(3 * WITHIN_MS) / 1000]);
    expect(rows).toMatchObject([{ n: 1 }]);
    const slow = codeOf(client.query('select pg_sleep($1)', [(3 * WITHIN_MS) / 1000]));
    proxy.silence();
    expect(await slow).toBe('ANSWER_TIMEOUT');
    await sql.end({ timeout: 1 });
  });

  test.each(['the same login', 'another login, as after a rotation,'])(
    'lives while Postgres works for it as another role, asked about by %s',
    async (who) => {
      await using acting = await actingLogins(aside, database.url);
      const url = await acting.login();
      await using proxy = await proxyTo(database.url);
      const sql = connect(who === 'the same login' ? url : await acting.login(), {
        max: 1,
        answerWithinMs: WITHIN_MS,
      });
      const client = await connectAlone(through(url, proxy), {
        application_name: 'alone',
        answerWithinMs: WITHIN_MS,
      });
      await askAfter(client, sql);
      const { rows } = await client.query('select 1 as n, pg_sleep($1)', [(3 * WITHIN_MS) / 1000]);
      expect(rows).toMatchObject([{ n: 1 }]);
      proxy.silence();
      expect(await codeOf(client.query('select 2'))).toBe('ANSWER_TIMEOUT');
      await sql.end({ timeout: 1 });
    },
  );

  test('is lost when Postgres waits for the rows of a COPY', async () => {
    await using proxy = await proxyTo(database.url);
    const sql = connect(database.url, { max: 1, answerWithinMs: WITHIN_MS });
    const client = await connectAlone(through(database.url, proxy), {
      application_name: 'alone',
      answerWithinMs: WITHIN_MS,
    });
    await askAfter(client, sql);
    // The server's request for rows does not reach it.
    proxy.watch(() => (_, direction) => (direction === 'to-client' ? 'silence' : 'pass'));
    const copy = client.query(copyFrom('copy public.written from stdin'));
    copy.end('one\n');
    expect(await codeOf(finished(copy))).toBe('ANSWER_TIMEOUT');
    await sql.end({ timeout: 1 });
  });

  test('to the first statements of a manifest is lost, as for the later ones', async () => {
    await using proxy = await proxyTo(database.url);
    const sql = connect(database.url, { max: 1, answerWithinMs: WITHIN_MS });
    proxy.watch(
      () => (piece, direction) =>
        direction === 'to-server' && piece.includes('transaction_timeout') ? 'silence' : 'pass',
    );
    await settles('a manifest that fails', Baseline.open(through(database.url, proxy), sql));
    await sql.end({ timeout: 1 });
  });

  test('is not waited for when it ends', async () => {
    await using proxy = await proxyTo(database.url);
    const client = await connectAlone(through(database.url, proxy), { application_name: 'alone' });
    proxy.silence();
    await settles('the end of a silent connection', client.end());
  });

  test('is noticed even when idle if idle checks are on', async ({ onTestFinished }) => {
    await using proxy = await proxyTo(database.url);
    const ended = Promise.withResolvers<void>();
    const client = await connectAlone(through(database.url, proxy), {
      application_name: 'alone',
      checkIdleMs: 50,
    });
    onTestFinished(() => client.end().catch(() => {}));
    client.answers.withinMs = WITHIN_MS;
    client.once('end', () => ended.resolve());
    proxy.silence();
    await ended.promise;
  });
});
