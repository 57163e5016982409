import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { laterVersion } from '../migrations/support.ts';
import { FAST_SETTINGS } from '../postgres/server.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/process.ts';

/* examples/replication.sql and replica.sql, between two databases on one server. */

const script = (name: string) => readFileSync(new URL(`../../examples/${name}`, import.meta.url), 'utf8');

let folder: string;
let server: EmbeddedPostgres;
let mirror: Sql;
let shop: Sql;
const urlOf = (database: string) => {
  const url = new URL(server.url);
  url.pathname = `/${database}`;
  return url.href;
};

beforeAll(async () => {
  folder = await temporaryFolder(() => {});
  server = await startEmbeddedPostgres({
    dataDir: join(folder, 'pg'),
    settings: { ...FAST_SETTINGS, wal_level: 'logical', max_wal_senders: '10', max_replication_slots: '10' },
  });
  const admin = connect(server.url, { max: 1 });
  await admin`create database mirror`;
  await admin`create database shop`;
  await admin.end({ timeout: 1 });
  [mirror, shop] = [connect(urlOf('mirror'), { max: 2 }), connect(urlOf('shop'), { max: 2 })];
  await migrateDatabase(urlOf('mirror'));
});

afterAll(async () => {
  await shop`alter subscription catalog_mirror disable`.catch(() => {});
  await Promise.all([mirror.end({ timeout: 1 }), shop.end({ timeout: 1 })]);
  await server.stop();
});

const rows = (sql: Sql, table: string) => async () =>
  (await sql.unsafe(`select * from catalog.${table}`)) as readonly Record<string, unknown>[];

test('a publication replicates rows, changes, deletions and the history, and survives an upgrade', async () => {
  await mirror`insert into catalog.skus (sku, state, in_manifest) values ('A', 'priced', true)`;
  await mirror`insert into catalog.prices (sku, size, price, changed_at) values ('A', '9', 100, now())`;
  await mirror.unsafe(script('replication.sql')).simple();
  await shop.unsafe(script('replica.sql')).simple();
  // On one server the slot has to exist beforehand, because otherwise the two would wait for each other.
  await mirror`select pg_create_logical_replication_slot('shop', 'pgoutput')`;
  const { hostname, port, username, password } = new URL(server.url);
  await shop.unsafe(`create subscription catalog_mirror
    connection 'host=${hostname} port=${port} dbname=mirror user=${username} password=${password}'
    publication catalog_mirror with (create_slot = false, slot_name = 'shop')`);
  const price = async () => (await rows(shop, 'prices')())[0]?.['price'];
  await eventually(async () => (await price()) === 100, { what: 'the first copy' });
  await mirror`update catalog.prices set price = 90`;
  await mirror`insert into catalog.price_history (sku, size, old_price, new_price, observed_at) values ('A', '9', 100, 90, now())`;
  await eventually(async () => (await rows(shop, 'price_history')()).length === 1, { what: 'the history' });
  await eventually(async () => (await price()) === 90, { what: 'the move' });

  const next = laterVersion(
    await temporaryFolder(),
    `ALTER TABLE catalog.prices ADD COLUMN colour text;\nCREATE TABLE catalog.later (x integer PRIMARY KEY);`,
  );
  await migrateDatabase(urlOf('mirror'), { folder: next });
  await mirror`update catalog.prices set price = 80, colour = 'red'`;
  await eventually(async () => (await price()) === 80, { what: 'a move after the upgrade' });
  await mirror`delete from catalog.prices`;
  await eventually(async () => (await rows(shop, 'prices')()).length === 0, { what: 'the deletion' });
});
