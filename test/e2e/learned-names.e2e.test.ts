import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { backends, createStack } from '../support/stack.ts';

/* The partner adds undocumented members while no daemon runs: what the previous daemon has learned counts. */

const [backend] = backends();
/** Enough calls that the form of entries is known after the fill. */
const SANDBOX = { skus: 450, liveShare: 0.04, seed: 64 };

test('a new member that resembles the price more is not read, after a restart or beside an older daemon', async () => {
  await using stack = await createStack({
    ...(backend !== undefined && { backend }),
    sandbox: { ...SANDBOX, dialect: { entries: 'object', priceField: 'lowest_ask' } },
  });
  const { sandbox, sql } = stack;
  await stack.once();
  await expectMirrorIsTrue(sql, sandbox.world);

  sandbox.options.dialect.retailField = 'price';
  for (let round = 0; round < 2; round += 1) {
    sandbox.world.step(60);
    await stack.start();
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
  }
  await expectHistoryIsAChain(sql);
});

test('prices that move to another field raise an alarm, and are read after an hour if the old field stays away', async () => {
  await using stack = await createStack({
    sandbox: { ...SANDBOX, dialect: { entries: 'object', priceField: 'lowest_ask' } },
  });
  const { sandbox, sql } = stack;
  await stack.once();
  sandbox.options.dialect.priceField = 'price';
  sandbox.world.step(60);
  const toldOf = (event: string) => stack.logs.filter((line) => line.event === event);
  const app = await stack.start();
  await stack.everythingDue();
  await eventually(() =>
    expect(toldOf('price-form.missing')[0]).toMatchObject({
      level: 'warn',
      field: 'lowest_ask',
      instead: 'price',
    }),
  );
  await app.stop();
  expect(toldOf('price-form.let-go')).toEqual([]);
  await sql`update catalog_internal.learned_names set missing_since = missing_since - interval '1 hour'`;
  await stack.start();
  await stack.caughtUp();
  expect(toldOf('price-form.let-go')[0]).toMatchObject({ field: 'lowest_ask', instead: 'price' });
  await expectMirrorIsTrue(sql, sandbox.world);
});

test('a configured field is read at once, even if another one was learned', async () => {
  await using stack = await createStack({
    sandbox: { ...SANDBOX, dialect: { entries: 'object', priceField: 'lowest_ask', retailField: 'price' } },
  });
  const { sandbox, sql } = stack;
  await stack.once();
  await stack.start({ PARTNER_PRICE_FIELDS: 'lowest_ask' });
  await stack.everythingDue();
  await stack.caughtUp();
  await expectMirrorIsTrue(sql, sandbox.world);
});

test('a manifest that was readable stays readable, whatever members are added', async () => {
  await using stack = await createStack({
    sandbox: { ...SANDBOX, dialect: { snapshotIdField: 'version', urlField: 'location' } },
  });
  const { sandbox, sql } = stack;
  await stack.once();

  sandbox.options.dialect.otherIdField = 'revision';
  sandbox.world.step(60);
  sandbox.world.buildSnapshot();
  // From here on only a manifest can bring changes.
  sandbox.world.breakChain();
  await stack.start();
  await stack.caughtUp();
  // It says nothing about live SKUs.
  await stack.everythingDue();
  await stack.caughtUp();
  await expectMirrorIsTrue(sql, sandbox.world);
  const [sync] = await sql`select snapshot_id as token from catalog_internal.sync`;
  expect(sync).toEqual({ token: sandbox.world.newestSnapshot() });
});
