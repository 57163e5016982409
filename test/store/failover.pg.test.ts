import { execFile } from 'node:child_process';
import { appendFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { isPassing } from '../../src/client/errors.ts';
import { type Sql, transaction } from '../../src/store/connection/db.ts';
import { repairSequencesAtStart, writeChanges } from '../../src/store/history/changes.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { emptyFolder, serving } from '../support/servers-in-turn.ts';

async function change(sql: Sql, ...skus: string[]): Promise<string> {
  for (const sku of skus)
    await transaction(sql, (tx) =>
      writeChanges(tx, { moves: [{ sku, size: '9', oldPrice: 1, newPrice: 2 }], fields: [] }, null),
    );
  const [row] = await sql<[{ position: string }]>`select catalog.changes_position() as position`;
  return row.position;
}

const after = async (sql: Sql, position: string) =>
  await sql<{ sku: string }[]>`select sku from catalog.changes(${position})`.then(
    (rows) => rows.map(({ sku }) => sku),
    (error: { code: string }) => error.code,
  );

test('a promoted standby refuses a reader ahead of it, however long it was away; a restart refuses none', async () => {
  const folder = await emptyFolder();
  const [primary, standby] = [join(folder, 'primary'), join(folder, 'standby')];
  const shared = await serving(primary, async (sql, url) => {
    await migrateDatabase(url);
    return await change(sql, 'a', 'b');
  });
  // What a standby contains that has not received the rest.
  await promisify(execFile)('cp', ['-a', primary, standby]);
  const beyond = await serving(primary, async (sql) => {
    await repairSequencesAtStart(sql);
    const newest = await change(sql, 'c', 'd', 'e');
    expect(await after(sql, shared)).toEqual(['c', 'd', 'e']);
    return newest;
  });
  await writeFile(join(standby, 'pg/recovery.signal'), '');
  await appendFile(join(standby, 'pg/postgresql.auto.conf'), "restore_command = 'false'\n");
  await serving(standby, async (sql) => {
    await change(sql, 'x', 'y', 'z', 'u');
    expect(await after(sql, beyond)).toBe('CM001');
    expect(await after(sql, shared)).toEqual(['x', 'y', 'z', 'u']);
  });
});

test('a disk image restored under the same server refuses a reader ahead of it', async () => {
  const folder = await emptyFolder();
  const [disk, image] = [join(folder, 'disk'), join(folder, 'image')];
  const shared = await serving(disk, async (sql, url) => {
    await migrateDatabase(url);
    return await change(sql, 'a', 'b');
  });
  await promisify(execFile)('cp', ['-a', disk, image]);
  const beyond = await serving(disk, (sql) => change(sql, 'c', 'd', 'e'));
  await rm(disk, { recursive: true });
  await rename(image, disk);
  const started = await serving(disk, async (sql) => {
    expect(await after(sql, beyond), 'before anything is written').toBe('CM001');
    const newest = await change(sql, 'x', 'y', 'z', 'u');
    expect(await after(sql, beyond)).toBe('CM001');
    expect(await after(sql, shared)).toEqual(['x', 'y', 'z', 'u']);
    return newest;
  });
  // A restart costs no reader anything, and leaves no chunk of history half empty.
  await serving(disk, async (sql) => {
    expect(await after(sql, started)).toEqual([]);
    await change(sql, 'v');
    expect(await after(sql, shared)).toEqual(['x', 'y', 'z', 'u', 'v']);
    const chunks = await sql`select from pg_inherits where inhparent = 'catalog.price_history'::regclass`;
    expect(chunks).toHaveLength(2);
  });
});

test('a standby that is behind says so, and once promoted refuses a position beyond its own', async () => {
  const folder = await emptyFolder();
  const [primary, standby] = [join(folder, 'primary'), join(folder, 'standby')];
  const shared = await serving(primary, async (sql, url) => {
    await migrateDatabase(url);
    return await change(sql, 'a', 'b');
  });
  await promisify(execFile)('cp', ['-a', primary, standby]);
  // More than a sequence's state on disk is ahead of it.
  const skus = Array.from({ length: 40 }, (_, n) => `c${n}`);
  const beyond = await serving(primary, (sql) => change(sql, ...skus));
  await writeFile(join(standby, 'pg/standby.signal'), '');
  await serving(
    standby,
    async (sql) => {
      const behind = await sql`select from catalog.changes(${beyond})`.catch((error: unknown) => error);
      expect(behind).toMatchObject({ code: '40001' });
      expect(isPassing(behind)).toBe(true);
      expect(await after(sql, shared)).toEqual([]);
      await sql`select pg_promote()`;
      expect(await after(sql, beyond)).toBe('CM001');
    },
    'on',
  );
});
