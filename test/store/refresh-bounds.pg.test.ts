import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connect, type Notice } from '../../src/store/connection/db.ts';
import { pauseRequests } from '../../src/store/sellers/pause.ts';
import { takeRefreshes } from '../../src/store/sellers/refresh.ts';
import { registerInstance } from '../../src/store/setup/instance.ts';
import { actingLogins } from '../support/acting-login.ts';
import { askedFor, outcome, requested, taken } from './refreshing.ts';
import { answerAsked, failCall, found, HOUR, knownSkus, mark, useStore } from './support.ts';

const store = useStore();

/** Makes SKUs of one price source that are not due. */
async function priced(
  names: readonly string[],
  priceSource: 'live' | 'snapshot' = 'snapshot',
): Promise<void> {
  await knownSkus(store.sql, names, { priceSource });
  await mark(store.sql, names, 'new', priceSource === 'live');
  await store.sql`update catalog_internal.due set due_at = now() + interval '1 hour'`;
}
const skus = (n: number, of = 'S') => Array.from({ length: n }, (_, i) => `${of}${i}`);

/** Calls catalog.refresh for each SKU separately, as a loop in an application does. Returns how many were granted. */
async function looped(calls: number): Promise<number> {
  await store.sql.unsafe(`create or replace function pg_temp.looped() returns int language plpgsql as $$
    declare granted int := 0;
    begin
      for n in 0..${calls - 1} loop
        begin
          perform catalog.refresh(array['S' || n]);
          granted := granted + 1;
        exception when sqlstate 'CM004' then null;
        end;
      end loop;
      return granted;
    end $$`);
  const [row] = await store.sql.unsafe<[{ granted: number }]>('select pg_temp.looped() as granted');
  return row.granted;
}
const counted = async () => {
  const [row] = await store.sql<[{ asked: number; refused: number }]>`
    select pg_sequence_last_value('catalog_internal.refreshes_asked')::int as asked,
      pg_sequence_last_value('catalog_internal.refreshes_refused')::int as refused`;
  return row;
};

describe('the bounds of refreshes from SQL', () => {
  // A quarter of 120 requests a minute: 30 calls of 5 live SKUs, or of 100 others.
  test('give a loop over live SKUs a quarter of the calls', async () => {
    const own = connect(store.url, { max: 1 });
    onTestFinished(() => own.end());
    await priced(skus(400), 'live');
    const from = Date.now();
    const granted = await looped(400);
    const minutes = (Date.now() - from) / 60_000;
    expect(granted).toBeGreaterThanOrEqual(150);
    expect(granted).toBeLessThanOrEqual(Math.ceil(150 * (1 + minutes)));
    const { asked, refused } = await counted();
    expect([asked, refused]).toEqual([granted, 400 - granted]);
    await expect(askedFor(store.sql, skus(400).slice(300))).rejects.toMatchObject({
      code: 'CM004',
      hint: expect.stringMatching(/^Try again in \d+ s\.$/) as string,
    });
    // A rollback gives nothing back.
    await store.sql`select setval('catalog_internal.refreshes_paid', 1, false)`;
    await store.sql`truncate catalog_internal.refresh_requests`;
    const undone = new Error('undone');
    const undo = store.sql.begin(async (tx) => {
      await tx`select catalog.refresh(${skus(150)})`;
      throw undone;
    });
    await expect(undo).rejects.toBe(undone);
    expect(await requested(store.sql)).toEqual([]);
    await expect(askedFor(store.sql, skus(100))).rejects.toMatchObject({ code: 'CM004' });
  });

  test('charge three thousand calls for the same SKU as one', async () => {
    await priced(['S0']);
    await store.sql.unsafe(
      `do $$ begin for n in 1..3000 loop perform catalog.refresh('{S0}'); end loop; end $$`,
    );
    expect(await requested(store.sql)).toEqual(['S0']);
    const paid = async () => {
      const [row] = await store.sql<[{ paid: string }]>`
        select pg_sequence_last_value('catalog_internal.refreshes_paid') as paid`;
      return row.paid;
    };
    // The next call has the SKU anyway: another request for it costs nothing and writes nothing.
    expect(await takeRefreshes(store.sql)).toBe(1);
    await store.sql`select setval('catalog_internal.refreshes_paid', ${(Date.now() + 40_000) * 1000}::bigint)`;
    const before = await paid();
    for (let n = 0; n < 3; n += 1) expect(await askedFor(store.sql, ['S0'])).toBe(1);
    expect([await paid(), await requested(store.sql)]).toEqual([before, []]);
    // Once it is answered, it costs again.
    await answerAsked(store.sql, found('S0'));
    expect(await askedFor(store.sql, ['S0'])).toBe(1);
    expect(BigInt(await paid())).toBeGreaterThan(BigInt(before));
  });

  test('allow no more in one call than in a minute, and no more than a thousand', async () => {
    await priced(skus(151), 'live');
    await expect(askedFor(store.sql, skus(151))).rejects.toMatchObject({
      code: 'CM004',
      hint: expect.stringContaining('fewer at a time') as string,
    });
    expect(await askedFor(store.sql, skus(150))).toBe(150);
    await expect(askedFor(store.sql, skus(1001, 'unknown'))).rejects.toMatchObject({ code: 'CM004' });
    expect(await askedFor(store.sql, skus(1000, 'unknown'))).toBe(0);
  });

  test('recover with time; a clock that was ahead costs nothing', async () => {
    await priced(skus(300), 'live');
    expect(await askedFor(store.sql, skus(150))).toBe(150);
    await store.sql`select setval('catalog_internal.refreshes_paid', pg_sequence_last_value('catalog_internal.refreshes_paid') - 30000000)`;
    expect(await askedFor(store.sql, skus(200).slice(150))).toBe(50);
    await expect(askedFor(store.sql, skus(300).slice(200))).rejects.toMatchObject({ code: 'CM004' });
    await store.sql`select setval('catalog_internal.refreshes_paid', ${(Date.now() + HOUR) * 1000}::bigint)`;
    expect(await askedFor(store.sql, skus(300).slice(200))).toBe(100);
  });

  test('charge a whole call for a SKU that failed alone, and for any while calls fail', async () => {
    await priced(skus(60));
    await store.sql`update catalog_internal.due set largest_call = 1`;
    await expect(askedFor(store.sql, skus(31))).rejects.toMatchObject({ code: 'CM004' });
    expect(await askedFor(store.sql, skus(30))).toBe(30);
    await store.sql`select setval('catalog_internal.refreshes_paid', 1, false)`;
    await store.sql`update catalog_internal.due set largest_call = null`;
    await failCall(store.sql, HOUR, 0);
    expect(await looped(60)).toBeLessThanOrEqual(60);
    await store.sql`truncate catalog_internal.refresh_requests`;
    await expect(askedFor(store.sql, ['S59'])).rejects.toMatchObject({ code: 'CM004' });
  });

  test('do not apply to the command', async () => {
    const { refreshSkus } = await import('../../src/store/sellers/refresh.ts');
    await priced(skus(400), 'live');
    expect(await refreshSkus(store.sql, skus(400))).toMatchObject({ due: 400 });
    expect(await refreshSkus(store.sql, skus(400))).toMatchObject({ due: 400 });
  });
});

describe('catalog.refresh_now, however it is called', () => {
  async function client(): Promise<pg.Client> {
    const own = new pg.Client({ connectionString: store.url });
    await own.connect();
    onTestFinished(() => own.end());
    return own;
  }
  const CALL = `call catalog.refresh_now('{A}', '30 s')`;
  const ways: [how: string, call: () => Promise<unknown>][] = [
    ['postgres.js, with parameters', () => store.sql`call catalog.refresh_now(${['A']}, '30 s')`.execute()],
    ['postgres.js, simple', () => store.sql`call catalog.refresh_now('{A}', '30 s')`.simple().execute()],
    ['pg, simple', async () => await (await client()).query(CALL)],
    [
      'pg, with parameters',
      async () => await (await client()).query('call catalog.refresh_now($1, $2)', [['A'], '30 s']),
    ],
    ['pg, prepared', async () => await (await client()).query({ name: 'now', text: CALL })],
    ['in a DO', () => store.sql.unsafe(`do $$ begin ${CALL}; end $$`).execute()],
  ];
  test.each(ways)('waits: %s', async (_, call) => {
    await priced(['A']);
    const waiting = outcome(call());
    await taken(store.sql, 'A');
    await answerAsked(store.sql, found('A'));
    expect(await waiting).toBe('done');
  });

  const inside: [how: string, call: () => Promise<unknown>][] = [
    ['postgres.js begin', () => store.sql.begin((tx) => tx`call catalog.refresh_now(array['A'])`)],
    [
      'BEGIN; CALL',
      async () => {
        const own = await client();
        await own.query('begin');
        await own.query(CALL);
      },
    ],
    ['several statements', () => store.sql.unsafe(`select 1; ${CALL}`).execute()],
    [
      'a function',
      async () => {
        await store.sql.unsafe(
          `create or replace function public.wrapped() returns int language plpgsql as $$ begin ${CALL}; return 1; end $$`,
        );
        await store.sql`select public.wrapped()`;
      },
    ],
    [
      'a block with an exception handler',
      async () =>
        await store.sql.unsafe(
          `do $$ begin begin ${CALL}; exception when sqlstate 'P0001' then null; end; end $$`,
        ),
    ],
  ];
  test.each(inside)('refuses to wait in a transaction, at once and with a hint: %s', async (_, call) => {
    await priced(['A']);
    const error = await call().catch((problem: unknown) => problem);
    expect(error).toMatchObject({ code: '25001', hint: expect.stringContaining('autocommit') as string });
    expect(await requested(store.sql)).toEqual([]);
  });
});

describe('when no requests are sent', () => {
  async function told(call: string): Promise<string[]> {
    const notices: Notice[] = [];
    const own = connect(store.url, { max: 1, onNotice: (notice) => notices.push(notice) });
    const how = await outcome(own.unsafe(call));
    await own.end();
    return [...notices.map((notice) => `${notice['severity']}: ${notice['message']}`), how];
  }
  const NOW = `call catalog.refresh_now('{A}', '0')`;
  const inVain = (why: string) => [
    `WARNING: nothing is refreshed now: ${why}`,
    expect.stringContaining(`s: ${why} | Not answered: A (due)`),
  ];

  test('a caller is warned at once, and gets the reason at the timeout', async () => {
    const { sql } = store;
    await priced(['A']);
    expect(await told(NOW)).toEqual(inVain('no daemon is running'));
    const leave = await registerInstance(store.url);
    onTestFinished(leave);
    expect(await told(`select catalog.refresh('{A}')`)).toEqual(['done']);
    await pauseRequests(sql, { forMs: null, by: 'ann@desk' });
    const paused = 'requests to the partner are paused until `catalog-mirror resume` (by ann@desk)';
    expect(await told(NOW)).toEqual(inVain(paused));
    expect(await takeRefreshes(sql)).toBe(1);
    expect(await told(`select catalog.refresh('{A}')`)).toEqual([
      `WARNING: nothing is refreshed now: ${paused}`,
      'done',
    ]);
    expect(await told(`select catalog.refresh('{unknown}')`)).toEqual(['done']);
    await sql`update catalog_internal.pause set until = '2999-01-02T03:04:05Z'`;
    expect((await told(NOW))[0]).toContain('until 2999-01-02T03:04:05Z (by ann@desk)');
    await sql`update catalog_internal.pause set until = now()`;
    await sql`
      insert into catalog_internal.pace (ceiling, raised_at, backoff_until, refusal)
      values (10, now(), '2999-01-02T03:04:05Z', 'throttled-or-forbidden')`;
    expect(await told(NOW)).toEqual(
      inVain(
        'the partner rejects requests (throttled-or-forbidden), and the mirror backs off until 2999-01-02T03:04:05Z',
      ),
    );
    await sql`update catalog_internal.pace set backoff_until = now()`;
    await failCall(sql, HOUR, 0);
    expect(await told(NOW)).toEqual([
      expect.stringContaining('bulk calls fail, and the next one is made at 20'),
    ]);
  });

  test("a daemon from before the server's start does not count, even if a session has its process number", async () => {
    const { sql, url } = store;
    await using acting = await actingLogins(sql, url);
    const like = connect(await acting.login(), { max: 1 });
    const own = connect(url, { max: 1 });
    const why = async (since: string) => {
      await own`
        insert into catalog_internal.instances (number, pid, backend_start)
        values (1, pg_backend_pid(), pg_postmaster_start_time() + ${since}::text::interval)
        on conflict (number) do update set backend_start = excluded.backend_start`;
      const [row] = await like<[{ why: string | null }]>`select catalog_internal.nothing_leaves() as why`;
      return row.why;
    };
    expect([await why('-1 s'), await why('1 s')]).toEqual(['no daemon is running', null]);
    await Promise.all([like.end(), own.end()]);
  });

  test('SKUs that the catalog does not contain are named', async () => {
    const leave = await registerInstance(store.url);
    onTestFinished(leave);
    expect(await told(`call catalog.refresh_now('{X,Y}', '1 s')`)).toEqual([
      'WARNING: 2 of the SKUs are not in the catalog, or out of scope: X, Y',
      'done',
    ]);
  });
});
