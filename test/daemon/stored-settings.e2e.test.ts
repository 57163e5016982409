import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createStack } from '../support/stack.ts';

const CATALOG = { skus: 20, marketIntervalMs: 0, snapshotIntervalMs: 0 };

test('a start whose port is taken changes no setting that SQL uses', async () => {
  await using stack = await createStack({ sandbox: CATALOG });
  const { sql } = stack;
  const stored = async () =>
    await sql`
    select to_jsonb(s) as settings, (select scoped from catalog_internal.scoping) from catalog_internal.settings s`;
  const daemon = await stack.start({ ACTIONABLE_CONFIDENCE: '0.99' });
  await stack.caughtUp();
  const before = await stored();
  expect(before).toMatchObject([{ settings: { actionable_confidence: 0.99 }, scoped: false }]);
  const other = { ACTIONABLE_CONFIDENCE: '0.5', LIVE_INTERVAL: '9h', MIRROR_SCOPE: 'scope' };
  await expect(stack.start({ ...other, HTTP_PORT: String(daemon.httpPort) })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
  expect(await stored()).toEqual(before);
});

test('settings of a second daemon, such as a `run --once`, apply only while it runs', async () => {
  await using stack = await createStack({ sandbox: CATALOG });
  const confidence = async () => {
    const [row] = await stack.sql`select actionable_confidence as bound from catalog_internal.settings`;
    return row?.['bound'];
  };
  await stack.start({ ACTIONABLE_CONFIDENCE: '0.99' });
  expect(await confidence()).toBe(0.99);
  const other = await stack.start({ ACTIONABLE_CONFIDENCE: '0.5' });
  expect(await confidence()).toBe(0.5);
  await other.stop();
  const told = (what: string) =>
    stack.logs.filter(({ event }) => event === what).map(({ settings }) => settings);
  const names = ['ACTIONABLE_CONFIDENCE'];
  await eventually(() => told('settings.restored').length > 0, { what: 'the daemon that lives' });
  expect(await confidence()).toBe(0.99);
  expect(told('settings.restored')).toEqual([names]);
  expect(told('settings.differ')[0]).toEqual(names);
});
