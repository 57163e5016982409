import { afterEach, beforeEach, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { readLearnedNames, storeLearnedPrice } from '../../src/store/catalog/learned-names.ts';
import { noteCatalogCheck, noteSnapshotSeen } from '../../src/store/catalog/sync-state.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { checkMirror, mirrorReplaced, putBackAccount } from '../../src/store/connection/own-mirror.ts';
import { restoreLostRows } from '../../src/store/ledger/lost-rows.ts';
import { startTask } from '../../src/store/ledger/tasks.ts';
import { adoptAccount, noteAccount, noteKey, readAccount } from '../../src/store/setup/account.ts';
import { registerInstance } from '../../src/store/setup/instance.ts';
import { eventually } from '../support/eventually.ts';
import { baseline, line, standing } from './manifest.ts';
import { claimAll, found, mark, pricesOf, REFRESH, useStore } from './support.ts';

/* A daemon that counted as dead was away while its database became the mirror of another account. */

const store = useStore();
const OURS = { baseUrl: 'https://partner.example/v1', apiKey: 'key' };
const ANEW = { ...OURS, apiKey: 'issued anew' };
const OTHER = { baseUrl: 'https://other.example/v1', apiKey: 'other' };
const S2 = { snapshotId: 's2', generatedAt: new Date(), livePricedSkuCount: 7 };
const DELTA = { since: 'm0', toSnapshot: 's2', changed: ['A'], removed: ['B'], nowLive: [] };

/** The pool of the daemon that was away. */
let away: Sql;

beforeEach(async () => {
  away = connect(store.url, { max: 2 });
  await noteAccount(away, OURS);
  await standing(store, line('A'), line('B'));
});
afterEach(async () => await away.end({ timeout: 2 }));

/** Adopts another account, which has a snapshot of the same name, and everything due. */
async function adopted(account = OTHER): Promise<void> {
  const command = connect(store.url, { max: 1 });
  await adoptAccount(command, account);
  await command.end({ timeout: 2 });
  await store.sql`update catalog_internal.sync set snapshot_id = 'm0', manifest_applied_at = now()`;
}

const WRITES: Readonly<Record<string, (sql: Sql) => Promise<unknown>>> = {
  'claims SKUs': async (sql) => await claimAll(sql),
  'applies a delta': async (sql) => await applyDelta(sql, DELTA),
  'merges a manifest': async (sql) => await baseline(store.url, [line('A')], { pool: sql }),
  'notes the newest snapshot': async (sql) => await noteSnapshotSeen(sql, S2),
  'notes a catalog check': async (sql) => await noteCatalogCheck(sql, S2),
  'notes another key': async (sql) => await noteKey(sql, ANEW),
  'only asks': checkMirror,
};

const stored = async () =>
  await store.sql`
    select (select jsonb_agg(to_jsonb(d) order by sku) from catalog_internal.due d) as due, to_jsonb(s) as sync,
      (select jsonb_agg(to_jsonb(k) order by sku) from catalog.skus k) as skus, to_jsonb(a) as account
    from catalog_internal.sync s, catalog_internal.account a`;

test.each(Object.keys(WRITES))('a daemon that %s is refused, ends, and has changed nothing', async (what) => {
  for (const account of [OTHER, { ...OURS, apiKey: 'of another account' }]) {
    await adopted(account);
    const before = await stored();
    await expect(WRITES[what]?.(away)).rejects.toThrow(ConfigError);
    expect(mirrorReplaced(away).reason).toBeInstanceOf(ConfigError);
    expect(await stored()).toEqual(before);
  }
});

test.each(Object.keys(WRITES))('a daemon that %s goes on with a key that was issued anew', async (what) => {
  await mark(store.sql, ['A']);
  const replica = connect(store.url, { max: 1 });
  await noteAccount(replica, OURS);
  expect(await noteKey(replica, ANEW)).toBe('key-replaced');
  await noteAccount(replica, { ...ANEW, baseUrl: `${OURS.baseUrl}/` });
  await replica.end({ timeout: 2 });
  await WRITES[what]?.(away);
  expect(mirrorReplaced(away).aborted).toBe(false);
});

test('a daemon goes on if nothing records any more whose mirror it is', async () => {
  await store.sql`delete from catalog_internal.account`;
  await checkMirror(away);
  await store.sql`insert into catalog_internal.account default values`;
  await checkMirror(away);
  await noteKey(away, ANEW);
  expect((await readAccount(store.sql)).address).toBe(OURS.baseUrl);
  await checkMirror(away);
});

test('an answer to a request from before is not applied', async () => {
  await mark(store.sql, ['A']);
  const claim = await claimAll(away);
  await store.sql`update catalog_internal.account set salt = 'of another account'`;
  const before = await pricesOf(store.sql, 'A');
  const { accepted } = await applyAnswer(away, claim, [found('A', { 9: 111 })], REFRESH);
  expect(accepted).toBe(0);
  expect(await pricesOf(store.sql, 'A')).toEqual(before);
});

test('a daemon takes no task of the other account, and stores no learned name for it', async () => {
  await adopted();
  const learned = { value: 'lowest', answers: 9, isMissing: false, also: null, others: null };
  expect(await storeLearnedPrice(away, learned, 0)).toBe(false);
  expect((await readLearnedNames(store.sql)).price).toBeNull();
  expect(await startTask(away, 'delta', 60_000)).toBeNull();
  expect(await startTask(store.sql, 'delta', 60_000)).toMatchObject({ failures: 0 });
});

test('a daemon that reconnects is not taken for one of the other account', async () => {
  const leave = await registerInstance(store.url, systemClock, null, away);
  await store.sql`update catalog_internal.account set salt = 'of another account'`;
  const cut = await store.sql<{ pid: number }[]>`
    select pid, pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = current_database() and application_name = 'catalog-mirror instance'`;
  await eventually(() => expect(mirrorReplaced(away).aborted).toBe(true));
  expect(await store.sql`select pid from catalog_internal.instances`).toEqual([{ pid: cut[0]?.pid }]);
  await leave();
});

test("if the account's row is lost, the running daemon restores it, and the next start must match it", async () => {
  await store.sql`delete from catalog_internal.account`;
  await restoreLostRows(store.sql);
  await putBackAccount(away);
  const beside = connect(store.url, { max: 1 });
  expect(await noteAccount(beside, OURS)).toBe('known');
  await checkMirror(away);
  const other = connect(store.url, { max: 1 });
  await expect(noteAccount(other, OTHER)).rejects.toThrow(ConfigError);
  for (const sql of [beside, other]) await sql.end({ timeout: 2 });
});
