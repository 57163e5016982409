import { describe, expect, onTestFinished, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { connect } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { returnClaim } from '../../src/store/ledger/due.ts';
import { REFRESHES_CAME, takeRefreshes } from '../../src/store/sellers/refresh.ts';
import { registerInstance } from '../../src/store/setup/instance.ts';
import { eventually } from '../support/eventually.ts';
import { hasEnded, outcome, requested, taken } from './refreshing.ts';
import {
  allDue,
  answerAsked,
  claimAll,
  found,
  HOUR,
  knownSkus,
  LEASE_MS,
  ledger,
  mark,
  REFRESH,
  removeByDelta,
  useStore,
} from './support.ts';

const store = useStore();
const now = (skus: readonly string[], timeout = '30 s') =>
  outcome(store.sql`call catalog.refresh_now(${skus as string[]}, ${timeout}::text::interval)`);
const came = async () => {
  const [row] = await store.sql.unsafe<[{ came: boolean }]>(`select ${REFRESHES_CAME} as came`);
  return row.came;
};
/** Prices SKUs that are then not due for a long time. */
async function priced(...skus: string[]): Promise<void> {
  await knownSkus(store.sql, skus);
  await answerAsked(store.sql, ...skus.map((sku) => found(sku, { 8: 80 })));
}

describe('catalog.refresh_now', () => {
  const answers: [what: string, result: SkuResult][] = [
    ['prices', found('A', { 8: 90 })],
    ['not found', { sku: 'A', kind: 'not_found' }],
  ];
  test.each(answers)('returns once an answer is committed: %s', async (_, result) => {
    const { sql } = store;
    await priced('A', 'B');
    const call = now(['A', 'A', 'unknown']);
    await taken(sql, 'A');
    expect(await hasEnded(call)).toBe(false);
    await answerAsked(sql, result);
    expect(await call).toBe('done');
    expect(await sql`select from catalog_internal.refresh_places where pid is not null`).toHaveLength(0);
  });

  test('requests a removed SKU, and takes "still removed" as an answer', async () => {
    const { sql } = store;
    await priced('A');
    await removeByDelta(sql, 'A');
    await answerAsked(sql, { sku: 'A', kind: 'not_found' });
    const call = now(['A']);
    await taken(sql, 'A');
    await answerAsked(sql, { sku: 'A', kind: 'not_found' });
    expect(await call).toBe('done');
  });

  test('ignores the answer to a request from before the call, which does not postpone the SKU either', async () => {
    const { sql } = store;
    await priced('A');
    for (const kind of ['record', 'deferred', 'released'] as const) {
      await mark(sql, ['A']);
      const before = await claimAll(sql);
      const call = now(['A']);
      await eventually(async () => expect(await requested(sql)).toEqual(['A']));
      // It is left until the answer.
      expect([await came(), await takeRefreshes(sql)]).toEqual([false, 0]);
      if (kind === 'released') await returnClaim(sql, before, ['A']);
      else {
        const result: SkuResult = kind === 'record' ? found('A') : { sku: 'A', kind, waitMs: HOUR };
        await applyAnswer(sql, before, [result], REFRESH);
      }
      expect(await came()).toBe(true);
      expect(await takeRefreshes(sql)).toBe(1);
      expect(await hasEnded(call)).toBe(false);
      await applyAnswer(sql, await claimAll(sql), [found('A')], REFRESH);
      expect(await call).toBe('done');
    }
  });

  test('counts an answer although another mark came after its request, and leaves that mark due', async () => {
    const { sql } = store;
    await priced('A');
    const call = now(['A']);
    await taken(sql, 'A');
    const claim = await claimAll(sql);
    await mark(sql, ['A']);
    await applyAnswer(sql, claim, [found('A')], REFRESH);
    expect(await call).toBe('done');
    expect((await ledger(sql)).get('A')?.dueIn).toBeLessThanOrEqual(0);
  });

  test('does not end with a claim that was lost before its answer', async () => {
    const { sql } = store;
    await priced('A');
    const call = now(['A']);
    await taken(sql, 'A');
    const lost = await claimAll(sql);
    await returnClaim(sql, lost, ['A']);
    const second = await claimAll(sql);
    expect((await applyAnswer(sql, lost, [found('A')], REFRESH)).accepted).toBe(0);
    expect(await hasEnded(call)).toBe(false);
    await applyAnswer(sql, second, [found('A')], REFRESH);
    expect(await call).toBe('done');
  });

  test('gives sessions that ask for the same SKUs, in any order, one answer together', async () => {
    const { sql } = store;
    await priced('A', 'B');
    const calls = [now(['A', 'B']), now(['B', 'A']), now(['B'])];
    await eventually(async () =>
      expect(await sql`select from catalog_internal.refresh_places where pid is not null`).toHaveLength(3),
    );
    while (await came()) await takeRefreshes(sql);
    await answerAsked(sql, found('A'), found('B'));
    expect(await Promise.all(calls)).toEqual(['done', 'done', 'done']);
  });

  test.each(['deferred', 'error'] as const)(
    'does not wait for a SKU that the partner postpones for longer (%s), but does if it is for less',
    async (kind) => {
      const { sql } = store;
      await priced('A', 'B');
      const call = now(['A', 'B'], '60 s');
      await taken(sql, 'A', 'B');
      const [waitMs, word] = [HOUR, kind === 'error' ? 'failed' : kind];
      await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind, waitMs }, found('B')], REFRESH);
      expect(await call).toMatch(
        new RegExp(
          String.raw`^CM003 \| 1 of 2 SKUs were answered .* \| Not answered: A \(${word} until 20\S+Z\)$`,
        ),
      );
      const again = now(['A']);
      await taken(sql, 'A');
      await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind, waitMs: 1 }], REFRESH);
      await sql`update catalog_internal.due set held_until = null where sku = 'A'`;
      await applyAnswer(sql, await claimAll(sql), [found('A')], REFRESH);
      expect(await again).toBe('done');
    },
  );

  test('fails at the timeout with the number answered, and the state of each other SKU', async () => {
    const { sql } = store;
    await priced('A', 'B', 'C');
    const call = now(['A', 'B', 'C'], '4 s');
    await taken(sql, 'A', 'B', 'C');
    const asked = async (...skus: string[]) =>
      (await claimDue(sql, { quotas: allDue(skus.length) }, LEASE_MS))!;
    const first = await asked('A');
    await asked('B');
    const sku = first.skus[0]?.sku ?? '';
    await applyAnswer(sql, first, [found(sku)], REFRESH);
    expect(await call).toMatch(
      /^CM003 \| 1 of 3 SKUs were answered within 4\.\d s: no daemon is running \| Not answered: \w \((due|asked for)\), \w \((due|asked for)\)$/,
    );
  });

  test.each([[null], ['-1 s'], ['601 s'], ['1 month']])('refuses a timeout of %s', async (timeout) => {
    await priced('A');
    expect(
      await outcome(store.sql`call catalog.refresh_now(array['A'], ${timeout}::text::interval)`),
    ).toMatch(/^22023 \| timeout: expected/);
    expect(await requested(store.sql)).toEqual([]);
  });

  test('reports at the timeout what a running daemon does, and failing calls only if they fail', async () => {
    const { sql } = store;
    await priced('A', 'B');
    const leave = await registerInstance(store.url);
    try {
      const call = now(['A', 'B'], '3 s');
      await taken(sql, 'A', 'B');
      const [quota] = allDue(1).filter(({ lane, live }) => lane === 'urgent' && !live);
      await claimDue(sql, { quotas: quota === undefined ? [] : [quota] }, LEASE_MS);
      expect(await call).toMatch(
        /^CM003 \| 0 of 2 .* s: 1 asked for at the moment, 0 put off by the partner, 1 waiting for their turn \| Not answered: \w \((due|asked for)\), \w \((due|asked for)\)$/,
      );
      expect(await now(['A'], '0')).toContain('asked for at the moment');
      for (const next of ["now() + interval '5 minutes'", "'infinity'"]) {
        await sql.unsafe(
          `update catalog_internal.tasks set failures = 8, next_at = ${next} where task = 'reprice'`,
        );
        expect(await now(['A'], '0')).toMatch(
          next === "'infinity'"
            ? /when an operator says so/
            : /bulk calls fail, and the next one is made at 20/,
        );
      }
    } finally {
      await leave();
    }
  });

  test('returns at once if there is nothing to wait for; with a timeout of zero it still marks SKUs', async () => {
    const { sql } = store;
    await priced('A');
    expect(await now([])).toBe('done');
    expect(await now(['unknown'])).toBe('done');
    expect(await outcome(sql`call catalog.refresh_now(null)`)).toBe('done');
    expect(await now(['A'], '0')).toMatch(/^CM003 \| 0 of 1 /);
    expect(await requested(sql)).toEqual(['A']);
  });

  test('waits without a lock and without a lasting snapshot', async () => {
    const { sql } = store;
    await priced('A');
    const call = now(['A']);
    await eventually(async () => expect(await requested(sql)).toEqual(['A']));
    const waiter = sql`(select pid from catalog_internal.refresh_places where pid is not null)`;
    const [{ xid }] = await sql<[{ xid: string }]>`select pg_current_xact_id()::text as xid`;
    await eventually(async () => {
      const [row] = await sql<[{ moved: boolean; locks: number }]>`
        select coalesce(age(backend_xmin) <= age(${xid}::text::xid), true) as moved,
          (select count(*)::int from pg_locks l where l.pid = a.pid and mode like '%Exclusive%' and locktype <> 'virtualxid') as locks
        from pg_stat_activity a where pid = ${waiter}`;
      expect(row).toEqual({ moved: true, locks: 0 });
    });
    await takeRefreshes(sql);
    await answerAsked(sql, found('A'));
    expect(await call).toBe('done');
  });

  test('releases the place of a killed waiter after some seconds, and leaves its SKUs due', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await sql`delete from catalog_internal.refresh_places where place > 1`;
    const call = now(['A']);
    await eventually(async () => expect(await requested(sql)).toEqual(['A']));
    expect(await now(['B'])).toMatch(/^CM004 \| too many sessions wait/);
    await sql`select pg_terminate_backend(pid) from catalog_internal.refresh_places`;
    expect(await call).not.toBe('done');
    const [{ lease }] = await sql<[{ lease: number }]>`
      select extract(epoch from until - clock_timestamp())::float8 as lease from catalog_internal.refresh_places`;
    expect(lease).toBeLessThanOrEqual(10);
    await sql`update catalog_internal.refresh_places set until = clock_timestamp() - interval '1 ms'`;
    expect(await now(['B'], '0')).toMatch(/^CM003/);
    expect(await requested(sql)).toEqual(['A', 'B']);
    // A clock that was ahead keeps no place for long.
    await sql`update catalog_internal.refresh_places set pid = 1, until = clock_timestamp() + interval '1 day'`;
    expect(await now(['B'], '0')).toMatch(/^CM003/);
  });

  test('renews the place of a session that waits for longer', async () => {
    const { sql } = store;
    await priced('A');
    const call = now(['A']);
    await taken(sql, 'A');
    await sql`update catalog_internal.refresh_places set until = until - interval '5 s' where pid is not null`;
    await eventually(
      async () =>
        expect(
          await sql`select from catalog_internal.refresh_places where until > clock_timestamp() + interval '8 s'`,
        ).toHaveLength(1),
      { what: 'a lease that is renewed', within: 20_000 },
    );
    await answerAsked(sql, found('A'));
    expect(await call).toBe('done');
  });

  test('runs nothing that others have put into the search path of its caller', async () => {
    const { sql } = store;
    await priced('A');
    const role = `seller_${process.pid}_${Date.now()}`;
    await sql.unsafe(`create role ${role} login password 'x' in role catalog_watcher`);
    const url = Object.assign(new URL(store.url), { username: role, password: 'x' });
    const own = connect(url.href, { max: 1 });
    onTestFinished(async () => {
      await own.end({ timeout: 2 });
      await sql.unsafe(`drop schema evil cascade; drop role ${role}`);
    });
    await sql.unsafe(`
      create schema evil; grant usage on schema evil to public; create table evil.ran (what text); grant insert on evil.ran to public;
      create type evil.jsonb as (n int); create domain evil.text as int; create domain evil.bool as int;`);
    for (const [name, args] of [
      ['refresh_begin', 'pg_catalog.text[], interval, pg_catalog.text'],
      ['refresh_wait', 'pg_catalog.jsonb'],
      ['refresh_end', 'pg_catalog.jsonb'],
      ['pg_sleep', 'double precision'],
      ['not_bool', 'boolean'],
    ])
      await sql.unsafe(
        `create function evil.${name}(${args}) returns boolean language sql as $$ insert into evil.ran values ('${name}'); select true $$`,
      );
    for (const left of ['pg_catalog.text', 'pg_catalog.jsonb', 'boolean', 'interval'])
      await sql.unsafe(
        `create function evil.is(${left}, ${left}) returns boolean language sql as $$ insert into evil.ran values ('operator'); select true $$;
         create operator evil.= (function = evil.is, leftarg = ${left}, rightarg = ${left})`,
      );
    await own.unsafe('set search_path = evil, pg_catalog');
    const call = outcome(own`call catalog.refresh_now(array['A'::pg_catalog.text], '30 s')`);
    await taken(sql, 'A');
    await answerAsked(sql, found('A'));
    expect(await call).toBe('done');
    expect(await sql`select what from evil.ran`).toHaveLength(0);
  });
});
