import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { type Claim, PROMISED } from '../../src/store/ledger/due.ts';
import { readWatchlist } from '../../src/store/sellers/watchlist.ts';
import { eventually } from '../support/eventually.ts';
import { promising } from './promising.ts';
import { claimAll, followWatchlist, found, LEASE_MS, mark, REFRESH, useStore } from './support.ts';

/* Promises that change while their SKUs are claimed and answered: who waits for whom, and what holds afterwards. */

const store = useStore();
const { priced, promise, comesIn, passSeconds } = promising(store);

/** Resolves once so many connections wait for somebody's lock. */
async function untilWaiting(count: number): Promise<void> {
  await eventually(async () => {
    const [row] = await store.sql<[{ count: number }]>`
      select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    expect(row.count).toBe(count);
  });
}

/** Reads the list and copies it to the ledger, however long that waits for locks. */
async function tellLedger(tx: Pick<Sql, 'unsafe'>): Promise<void> {
  await tx.unsafe('select from catalog_internal.watching for update');
  await tx.unsafe('select catalog_internal.read_watchlist(false, 1000)');
  await tx.unsafe('select catalog_internal.watched_to_ledger(1000)');
}

const answer = async (sql: Sql, claim: Claim) =>
  await applyAnswer(
    sql,
    claim,
    claim.skus.map(({ sku }) => found(sku, { 42: 100 })),
    REFRESH,
  );

const casesOf = async () =>
  (await store.sql<{ sku: string }[]>`select sku from catalog_internal.promise_cases order by sku`).map(
    ({ sku }) => sku,
  );

/** Runs work in which no lock is waited for longer than a second. */
async function impatiently(work: (sql: Sql) => Promise<void>): Promise<void> {
  const impatient = connect(store.url, { max: 2 });
  const database = new URL(store.url).pathname.slice(1);
  await store.sql.unsafe(`alter database ${database} set lock_timeout = '1s'`);
  try {
    await work(impatient);
  } finally {
    await store.sql.unsafe(`alter database ${database} reset lock_timeout`);
    await impatient.end({ timeout: 2 });
  }
}

describe('a seller who changes promises without committing', () => {
  test.each([
    ["update catalog.watchlist set max_age = '20 minutes'", 1155],
    ['update catalog.watchlist set max_age = null', null],
    ['delete from catalog.watchlist', null],
    ['truncate catalog.watchlist', null],
  ])('blocks no claim, answer or reading: %s', async (statement, seconds) => {
    const { sql } = store;
    await priced('A', 'B');
    await promise('10 minutes', 'A', 'B');
    await impatiently(async (impatient) => {
      await sql.begin(async (seller) => {
        await seller.unsafe(statement);
        await passSeconds(560);
        const quotas = [{ lane: PROMISED, live: false, count: 10, earlySeconds: 0 } as const];
        const claim = await claimDue(impatient, { quotas }, LEASE_MS);
        expect(claim?.skus).toHaveLength(2);
        await readWatchlist(impatient, { most: 100, everything: false });
        expect((await answer(impatient, claim as Claim)).promises).toEqual({
          kept: 2,
          hindered: 0,
          broken: 0,
        });
        expect(await comesIn('A')).toBeCloseTo(555, -1);
      });
    });
    await followWatchlist(sql);
    for (const sku of ['A', 'B'])
      if (seconds === null) expect(await comesIn(sku)).toBeNull();
      else expect(await comesIn(sku)).toBeCloseTo(seconds, -1);
    expect(await casesOf()).toEqual(seconds === null ? [] : ['A', 'B']);
  });

  test('waits neither for an answer being applied nor for the ledger', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await promise('10 minutes', 'A', 'B');
    await impatiently(async (impatient) => {
      await sql.begin(async (mirror) => {
        await mirror`select from catalog.skus order by sku for update`;
        await mirror`select from catalog_internal.due order by sku for update`;
        await mirror`select from catalog_internal.watching for update`;
        await mirror`select catalog_internal.weigh_promises()`;
        await impatient`update catalog.watchlist set max_age = '20 minutes' where sku = 'A'`;
        await impatient`delete from catalog.watchlist where sku = 'B'`;
      });
    });
    await followWatchlist(sql);
    expect(await comesIn('A')).toBeCloseTo(1155, -1);
    expect(await comesIn('B')).toBeNull();
  });
});

describe('an answer that waits for the list being copied to the ledger', () => {
  /** Claims A and B, runs `statement`, copies the list to the ledger, and lets an answer wait for that. */
  async function answerBehind(statement: string): Promise<void> {
    const { sql } = store;
    await priced('A', 'B');
    await promise('10 minutes', 'A', 'B');
    await mark(sql, ['A', 'B']);
    const claim = await claimAll(sql);
    await sql.unsafe(statement);
    let answering: Promise<unknown> = Promise.resolve();
    await sql.begin(async (telling) => {
      await tellLedger(telling);
      answering = answer(sql, claim);
      await untilWaiting(1);
    });
    await answering;
  }

  test('uses the max_age that was copied', async () => {
    await answerBehind("update catalog.watchlist set max_age = '20 minutes'");
    expect(await comesIn('A')).toBeCloseTo(1155, -1);
  });

  test.each(['update catalog.watchlist set max_age = null', 'delete from catalog.watchlist'])(
    'leaves nothing of a promise that ended: %s',
    async (statement) => {
      await answerBehind(statement);
      expect(await comesIn('A')).toBeNull();
      expect(await casesOf()).toEqual([]);
    },
  );
});

test.each([
  ["update catalog.watchlist set max_age = '20 minutes'", 1155],
  ['delete from catalog.watchlist', null],
])(
  'copying the list to the ledger waits for an answer, and the last commit wins: %s',
  async (statement, seconds) => {
    const { sql } = store;
    await priced('A', 'B');
    await promise('10 minutes', 'A', 'B');
    await mark(sql, ['A', 'B']);
    const claim = await claimAll(sql);
    await sql.unsafe(statement);
    const running: Promise<unknown>[] = [];
    await sql.begin(async (other) => {
      // The answer holds A's row of the ledger, and waits for B's.
      await other`select from catalog_internal.due where sku = 'B' for update`;
      running.push(answer(sql, claim));
      await untilWaiting(1);
      running.push(sql.begin(tellLedger));
      await untilWaiting(2);
    });
    await Promise.all(running);
    for (const sku of ['A', 'B'])
      if (seconds === null) expect(await comesIn(sku)).toBeNull();
      else expect(await comesIn(sku)).toBeCloseTo(seconds, -1);
    expect(await casesOf()).toEqual(seconds === null ? [] : ['A', 'B']);
  },
);

test('promises are weighed beside an answer, a mark and a seller, and another reading of the list is skipped', async () => {
  const { sql } = store;
  await priced('A', 'B', 'C');
  await promise('30 seconds', 'A', 'B');
  await mark(sql, ['A', 'B']);
  const claim = await claimAll(sql);
  await impatiently(async (impatient) => {
    await sql.begin(async (weighing) => {
      await weighing`select from catalog_internal.watching for update`;
      await weighing`update catalog_internal.settings set rate_share = 1`;
      await weighing`update catalog_internal.call_size set size = 1`;
      await weighing`select catalog_internal.weigh_promises()`;
      // They are no longer feasible, but nobody else knows that yet.
      await impatient`insert into catalog.watchlist (sku, max_age) values ('C', '30 seconds')`;
      expect(await readWatchlist(impatient, { most: 100, everything: true })).toBe(false);
      expect((await answer(impatient, claim)).promises).toEqual({ kept: 2, hindered: 0, broken: 0 });
      await mark(impatient, ['A']);
      expect(await comesIn('B')).toBeCloseTo(22, -1);
    });
  });
  await followWatchlist(sql);
  for (const sku of ['A', 'B', 'C']) expect(await comesIn(sku)).toBeNull();
});

test('many sellers, readers, calls and answers at once: no deadlock, and no SKU is claimed twice', async () => {
  const { sql } = store;
  const skus = Array.from({ length: 30 }, (_, n) => `S${String(n).padStart(2, '0')}`);
  await priced(...skus);
  await promise('10 minutes', ...skus);
  const sellers = connect(store.url, { max: 3 });
  const claimed = new Set<string>();
  const selling = async (n: number) => {
    for (let round = 0; round < 12; round += 1) {
      const own = skus.filter((_, at) => at % 3 === n);
      const age = round % 3 === 0 ? null : 600 + round;
      if (round % 4 === 3) await sellers`delete from catalog.watchlist where sku in ${sellers(own)}`;
      else
        await sellers`
          insert into catalog.watchlist (sku, max_age) select sku, make_interval(secs => ${age}) from unnest(${own}::text[]) as s(sku)
          on conflict (sku) do update set max_age = excluded.max_age`;
    }
  };
  const reading = async (everything: boolean) => {
    for (let round = 0; round < 20; round += 1) await readWatchlist(sql, { most: 100, everything });
  };
  const calling = async () => {
    for (let round = 0; round < 20; round += 1) {
      await mark(sql, skus);
      await sql`update catalog_internal.due set promised_at = now(), promised_by = now() where promised_at is not null and sku in (
        select sku from catalog_internal.due order by sku for update skip locked)`;
      const lanes = [PROMISED, 'urgent'] as const;
      const quotas = lanes.map((lane) => ({ lane, live: false, count: 10, earlySeconds: 0 }));
      const claim = await claimDue(sql, { quotas }, LEASE_MS);
      for (const { sku } of claim?.skus ?? []) {
        expect(claimed.has(sku)).toBe(false);
        claimed.add(sku);
      }
      if (claim === null) continue;
      // Until the commit that frees them, they are not free.
      for (const { sku } of claim.skus) claimed.delete(sku);
      await answer(sql, claim);
    }
  };
  try {
    await Promise.all([
      selling(0),
      selling(1),
      selling(2),
      reading(false),
      reading(true),
      calling(),
      calling(),
    ]);
  } finally {
    await sellers.end({ timeout: 2 });
  }
  await readWatchlist(sql, { most: 100, everything: true });
  const wrong = await sql`
    select d.sku from catalog_internal.due d left join catalog.watchlist l using (sku) join catalog.skus s using (sku)
    where (d.promised_at is null) <> (l.max_age is null)
      or abs(extract(epoch from d.promised_at - s.asked_at - l.max_age + interval '45 seconds')) > 1`;
  expect([...wrong]).toEqual([]);
  expect(
    await sql`select from catalog_internal.promise_cases p where not exists (select from catalog.watchlist l where l.sku = p.sku and l.max_age is not null)`,
  ).toHaveLength(0);
});
