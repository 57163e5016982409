import { expect, test } from 'vitest';
import type { Clock } from '../../src/lib/clock.ts';
import { connect } from '../../src/store/connection/db.ts';
import { readTasks } from '../../src/store/ledger/tasks.ts';
import { registerInstance, countDaemons } from '../../src/store/setup/instance.ts';
import { actingLogins } from '../support/acting-login.ts';
import { eventually } from '../support/eventually.ts';
import { useStore } from './support.ts';

const store = useStore();

/** Leaves what dead daemons leave: a claim, a running task with failures behind it, and a half-open request. */
async function remains(): Promise<void> {
  await store.sql`select setval('catalog_internal.claim_numbers', 10)`;
  await store.sql`
    insert into catalog_internal.due (sku, lane, reason, due_at, claim, held_until)
    values ('A', 1, 'changed', now(), 7, now() + interval '1 minute')`;
  await store.sql`
    update catalog_internal.tasks set run = 8, running_until = now() + interval '20 seconds', failures = 6,
      next_at = now() + interval '1 hour' where task in ('manifest', 'delta')`;
  await store.sql`
    insert into catalog_internal.pace (ceiling, raised_at, backoff_until, half_open_sent_at) values (20, now(), now(), now())`;
}

async function left() {
  const [row] = await store.sql<[{ claims: number; probes: number }]>`
    select (select count(*)::int from catalog_internal.due where claim is not null) as claims,
      (select count(*)::int from catalog_internal.pace where half_open_sent_at is not null) as probes`;
  const tasks = (await readTasks(store.sql)).filter(({ task }) => task === 'manifest' || task === 'delta');
  const soon = tasks.filter(({ nextAt }) => nextAt.getTime() <= Date.now() + 1000).map(({ task }) => task);
  return { ...row, running: tasks.filter(({ running }) => running).length, soon };
}

test('the only running daemon releases what dead daemons held and requests a baseline if there is none', async () => {
  await remains();
  const leave = await registerInstance(store.url);
  expect(await left()).toEqual({ claims: 0, probes: 0, running: 0, soon: ['manifest'] });
  await leave();
});

test('of two daemons that start at once, one counts as the first and releases what dead ones held', async () => {
  await remains();
  const starts = await store.sql.begin(async (tx) => {
    await tx`lock table catalog_internal.instances in access exclusive mode`;
    const both = Promise.all([registerInstance(store.url), registerInstance(store.url)]);
    const waiting = async () => {
      // Otherwise a transaction keeps seeing the activity of its first read.
      await tx`select pg_stat_clear_snapshot()`;
      return await tx`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
          and application_name = 'catalog-mirror instance'`;
    };
    await eventually(async () => expect(await waiting()).toHaveLength(2));
    return { both };
  });
  const [one, other] = await starts.both;
  expect(await left()).toMatchObject({ claims: 0, probes: 0, running: 0 });
  expect(await countDaemons(store.sql)).toBe(2);
  await one();
  await other();
});

test('a daemon is counted whatever application_name its DATABASE_URL sets', async () => {
  const leave = await registerInstance(`${store.url}?application_name=shop`);
  expect(await countDaemons(store.sql)).toBe(1);
  await leave();
  expect(await countDaemons(store.sql)).toBe(0);
});

test('a daemon whose login acts as another role is seen by its like, and by who sees all sessions', async () => {
  await using acting = await actingLogins(store.sql, store.url);
  const leave = await registerInstance(await acting.login());
  const like = connect(await acting.login(), { max: 1 });
  expect(await countDaemons(like)).toBe(1);
  expect(await countDaemons(store.sql)).toBe(1);
  await like.end();
  await leave();
  expect(await countDaemons(store.sql)).toBe(0);
});

test('if there is a baseline, a manifest that kept failing keeps its wait', async () => {
  await remains();
  await store.sql`update catalog_internal.sync set manifest_applied_at = now()`;
  const leave = await registerInstance(store.url);
  expect((await left()).soon).toEqual([]);
  await leave();
});

/** Returns a clock that only advances by sleeps; each sleep begins with `before`. */
function sleepsOnly(before: () => Promise<void>): Clock {
  let ms = 0;
  return {
    now: () => ms,
    monotonic: () => ms,
    async sleep(slept) {
      await before();
      ms += slept;
    },
  };
}

test('a daemon that is not alone checks again for ten seconds, and touches nothing', async () => {
  const first = await registerInstance(store.url);
  await remains();
  let looks = 0;
  const over = Promise.withResolvers<void>();
  const clock = sleepsOnly(() => {
    looks += 1;
    if (looks === 40) over.resolve();
    return Promise.resolve();
  });
  const second = await registerInstance(store.url, clock);
  await over.promise;
  await second();
  expect(await left()).toEqual({ claims: 1, probes: 1, running: 2, soon: [] });
  await first();
});

test('a daemon whose death is noticed late is cleaned up after, and its successor keeps what it has claimed', async () => {
  const dead = await registerInstance(store.url);
  await remains();
  const noticed = Promise.withResolvers<void>();
  const next = await registerInstance(
    store.url,
    sleepsOnly(() => noticed.promise),
  );
  await store.sql`
    insert into catalog_internal.due (sku, lane, reason, due_at, claim, held_until)
    values ('B', 1, 'changed', now(), nextval('catalog_internal.claim_numbers'), now() + interval '1 minute')`;
  await store.sql`
    update catalog_internal.tasks set run = nextval('catalog_internal.claim_numbers') where task = 'delta'`;
  await dead();
  noticed.resolve();
  await eventually(async () =>
    expect(await left()).toEqual({ claims: 1, probes: 0, running: 1, soon: ['manifest'] }),
  );
  expect(await store.sql`select sku from catalog_internal.due where claim is not null`).toEqual([
    { sku: 'B' },
  ]);
  await next();
});

test('a daemon whose connection is cut reconnects, time after time, and releases nothing because of it', async () => {
  const leave = await registerInstance(store.url);
  await remains();
  const cut = () => store.sql`
    select pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = current_database() and application_name = 'catalog-mirror instance'`;
  for (const _ of ['once', 'again']) {
    await cut();
    await eventually(async () => expect(await countDaemons(store.sql)).toBe(1));
  }
  expect(await left()).toMatchObject({ claims: 1, probes: 1, running: 2 });
  await leave();
  await eventually(async () => expect(await countDaemons(store.sql)).toBe(0));
});

test('a daemon that leaves while its connection is cut does not come back', async () => {
  const sleeps: Promise<void>[] = [];
  const asleep = Promise.withResolvers<void>();
  const wake = Promise.withResolvers<void>();
  const clock = sleepsOnly(() => {
    asleep.resolve();
    sleeps.push(wake.promise);
    return wake.promise;
  });
  const leave = await registerInstance(store.url, clock);
  await store.sql`
    select pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = current_database() and application_name = 'catalog-mirror instance'`;
  await asleep.promise;
  await leave();
  wake.resolve();
  await eventually(async () => {
    const sessions = await store.sql`
      select from pg_stat_activity where datname = current_database() and application_name = 'catalog-mirror instance'`;
    expect(sessions).toHaveLength(0);
  });
  expect(sleeps).toHaveLength(1);
  expect(await countDaemons(store.sql)).toBe(0);
});
