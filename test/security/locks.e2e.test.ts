import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack } from '../support/stack.ts';
import { advisoryLocksOf, dropRoles, LOCKS_OF_OLD } from './neighbours.ts';

test('a stranger who holds every advisory lock ever used, and thousands more, stops nothing', async () => {
  await using stack = await createStack({
    backend: 'postgres',
    database: 'empty',
    sandbox: { skus: 60, seed: 8 },
  });
  const { sql, sandbox } = stack;
  const stranger = `stranger_${randomBytes(6).toString('hex')}`;
  await sql.unsafe(`create role ${stranger} login password 'of the stranger'`);
  onTestFinished(() => dropRoles(stranger));
  const url = new URL(stack.databaseUrl);
  url.username = stranger;
  url.password = 'of the stranger';
  const holder = connect(url.href, { max: 1 });
  try {
    for (const name of LOCKS_OF_OLD) await holder.unsafe(`select pg_advisory_lock(${name})`);
    await holder`select pg_advisory_lock(key) from generate_series(-2000, 2000) key`;
    await stack.start();
    await stack.start();
    await stack.caughtUp();
    sandbox.world.step(60);
    sandbox.world.buildSnapshot();
    await sql`insert into catalog.watchlist (sku) select sku from catalog.skus limit 3`;
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
    await migrateDatabase(stack.databaseUrl);
    // The mirror takes no lock where others can take it as well.
    expect(await advisoryLocksOf(sql, stranger)).toEqual([]);
  } finally {
    await holder.end({ timeout: 2 });
  }
});

test('an overlong service name is truncated, and its request counted', async () => {
  await using stack = await createStack({ sandbox: { skus: 5 } });
  const { sql } = stack;
  await stack.once();
  await sql`select catalog.take_request(repeat('x', 1000000))`;
  const kept = await sql`select length(lane) as length from catalog_internal.pace_sends where other_user`;
  expect([...kept]).toEqual([{ length: 64 }]);
});

test('a seller who keeps the watchlist locked blocks nothing, and is named by the log and readyz', async () => {
  await using stack = await createStack({ sandbox: { skus: 40, seed: 5 } });
  const { sql, sandbox } = stack;
  const daemon = await stack.start();
  await stack.caughtUp();
  await sql`insert into catalog.watchlist (sku) select sku from catalog.skus limit 3`;
  await stack.caughtUp();
  const role = `seller_${randomBytes(6).toString('hex')}`;
  await sql.unsafe(`create role ${role} login password 'x' in role catalog_watcher`);
  onTestFinished(() => dropRoles(role));
  const url = Object.assign(new URL(stack.databaseUrl), { username: role, password: 'x' });
  const seller = connect(url.href, { max: 1, name: 'pricing-tool' });
  const degraded = async () =>
    ((await (await fetch(`http://127.0.0.1:${daemon.httpPort}/readyz`)).json()) as { degraded: string[] })
      .degraded;
  const named = new RegExp(
    `^process \\d+ of Postgres \\(role ${role}, application pricing-tool\\) holds a lock on catalog.watchlist`,
  );
  try {
    await seller.begin(async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await tx`lock table catalog.watchlist in access exclusive mode`;
      sandbox.world.step(40);
      sandbox.world.buildSnapshot();
      await stack.everythingDue();
      await stack.caughtUp();
      await expectMirrorIsTrue(sql, sandbox.world);
      await eventually(async () => expect(await degraded()).toEqual([expect.stringMatching(named)]));
      await eventually(() => expect(stack.logs.map(({ event }) => event)).toContain('store.locked'));
    });
  } finally {
    await seller.end({ timeout: 2 });
  }
  await eventually(async () => expect(await degraded()).toEqual([]));
  await eventually(async () => {
    const said = stack.logs.filter(({ event }) => event === 'store.locked' || event === 'store.unlocked');
    expect(said).toMatchObject([
      { event: 'store.locked', role, application: 'pricing-tool', table: 'catalog.watchlist' },
      { event: 'store.unlocked' },
    ]);
  });
});

test('a session that keeps a ledger table locked is named by readyz, which can read nothing, and by a start', async () => {
  await using stack = await createStack({ sandbox: { skus: 5 } });
  const daemon = await stack.start();
  await stack.caughtUp();
  const neighbour = connect(stack.databaseUrl, { max: 1, name: 'psql' });
  const named =
    /process \d+ of Postgres \(role .*, application psql\) holds a lock on catalog_internal.sync, in a transaction of/;
  let starting: Promise<unknown> = Promise.resolve();
  try {
    await neighbour.begin(async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await tx`lock table catalog_internal.sync in access exclusive mode`;
      await eventually(
        async () => {
          const answer = await fetch(`http://127.0.0.1:${daemon.httpPort}/readyz`);
          expect(await answer.json()).toMatchObject({
            reason: expect.stringMatching(named) as string,
          });
        },
        { within: 60_000 },
      );
      await daemon.stop();
      const said = stack.logs.length;
      starting = stack.start();
      await eventually(
        () => {
          const locked = stack.logs.slice(said).filter(({ event }) => event === 'store.locked');
          expect(locked.map(({ application, table }) => ({ application, table }))).toContainEqual({
            application: 'psql',
            table: 'catalog_internal.sync',
          });
        },
        { within: 60_000 },
      );
    });
    await starting;
  } finally {
    await neighbour.end({ timeout: 2 });
  }
}, 200_000);
