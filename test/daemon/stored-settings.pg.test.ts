import { expect, onTestFinished, test } from 'vitest';
import { createSettingsWatch, storeOwnSettings } from '../../src/daemon/stored-settings.ts';
import { registerInstance } from '../../src/store/setup/instance.ts';
import type { Log } from '../../src/telemetry/log/logger.ts';
import { useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();

/** Registers a daemon with stored settings, which compares them when told to. */
async function daemon(env: Readonly<Record<string, string>>) {
  const lines: Record<string, unknown>[] = [];
  const take = (line: Record<string, unknown>) => lines.push(line);
  const leave = await registerInstance(store.url);
  onTestFinished(leave);
  const { number } = leave;
  const log = { info: take, warn: take } as unknown as Log;
  const own = { config: settingsWith(env), sql: store.sql, log, number };
  await storeOwnSettings(own);
  return { lines, leave, compare: createSettingsWatch(own) };
}

/** Returns the settings that SQL uses. */
async function effective() {
  const [row] = await store.sql<[{ confidence: number; live: number; scoped: boolean }]>`
    select actionable_confidence as confidence, live_interval as live, (select scoped from catalog_internal.scoping)
    from catalog_internal.settings`;
  return row;
}

const OLD = { ACTIONABLE_CONFIDENCE: '0.99', LIVE_INTERVAL: '10m' };
const NEW = { ACTIONABLE_CONFIDENCE: '0.5', LIVE_INTERVAL: '20m', MIRROR_SCOPE: 'scope' };
const BY_OLD = { confidence: 0.99, live: 600, scoped: false };
const BY_NEW = { confidence: 0.5, live: 1200, scoped: true };
const NAMES = ['LIVE_INTERVAL', 'ACTIONABLE_CONFIDENCE'];

test('SQL uses the settings of the daemon that started last, and both log which ones differ', async () => {
  const old = await daemon(OLD);
  expect(await effective()).toEqual(BY_OLD);
  const other = await daemon(NEW);
  expect(await effective()).toEqual(BY_NEW);
  for (const { compare } of [old, other, old, other, old, other]) await compare();
  expect(await effective()).toEqual(BY_NEW);
  const differ = { event: 'settings.differ', settings: NAMES };
  expect(other.lines).toEqual([
    { ...differ, effective: 'own' },
    { event: 'scope.mode', scope: 'scope' },
  ]);
  expect(old.lines).toEqual([{ ...differ, effective: 'other' }]);

  // A rolling update: the old daemon stops, and the new one's settings stay.
  await old.leave();
  await other.compare();
  await other.compare();
  expect(await effective()).toEqual(BY_NEW);
  expect(other.lines).toHaveLength(2);
});

test('a daemon left alone restores its own settings once it has seen twice that the other is gone', async () => {
  const old = await daemon(OLD);
  const other = await daemon(NEW);
  await old.compare();
  await other.leave();
  await old.compare();
  expect(await effective()).toEqual(BY_NEW);
  await old.compare();
  expect(await effective()).toEqual(BY_OLD);
  expect(old.lines).toContainEqual({ event: 'settings.restored', settings: NAMES });
  expect(old.lines).toContainEqual({ event: 'scope.mode', scope: 'catalog' });
  const said = old.lines.length;
  await old.compare();
  expect(old.lines).toHaveLength(said);
});

test('equal settings are neither logged nor written', async () => {
  const one = await daemon(OLD);
  const two = await daemon(OLD);
  const row = async () => await store.sql`select xmin::text from catalog_internal.settings`;
  const before = await row();
  for (const { compare } of [one, two, one, two]) await compare();
  expect(await row()).toEqual(before);
  expect([...one.lines, ...two.lines]).toEqual([]);
});

test('a difference is logged again if the settings were equal in between', async () => {
  const old = await daemon(OLD);
  const twice = async () => {
    await old.compare();
    await old.compare();
  };
  const again = [];
  for (const env of [NEW, OLD, NEW]) again.push(await daemon(env), await twice());
  expect(old.lines.filter(({ event }) => event === 'settings.differ')).toHaveLength(2);
});

test('a different limit is named without its parts, and a different part of an equal limit by its own name', async () => {
  const one = await daemon({ PARTNER_RATE_LIMIT: '100' });
  expect(one.lines).toEqual([]);
  const two = await daemon({ PARTNER_RATE_LIMIT: '150' });
  const three = await daemon({ PARTNER_RATE_LIMIT: '150', PARTNER_RATE_SHARE: '0.9' });
  expect([two, three].map(({ lines }) => lines[0]?.['settings'])).toEqual([
    ['PARTNER_RATE_LIMIT'],
    ['PARTNER_RATE_SHARE'],
  ]);
});
