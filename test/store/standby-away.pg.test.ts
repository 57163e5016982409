import { mkdtemp, chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { atWorkText, readSlowStatements } from '../../src/store/connection/at-work.ts';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { FAST_SETTINGS } from '../postgres/server.ts';
import { eventually } from '../support/eventually.ts';
import { roomForFiles } from '../support/room.ts';

test('a COMMIT that waits for a synchronous standby is named and waited for, and ends when released', async () => {
  const folder = await mkdtemp(join(roomForFiles(), 'catalog-mirror-standby-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o711);
  await using server = await startEmbeddedPostgres({
    dataDir: join(folder, 'pg'),
    settings: { ...FAST_SETTINGS, synchronous_commit: 'on', wal_level: 'replica', max_wal_senders: '1' },
  });
  await migrateDatabase(server.url);
  const sql = connect(server.url, { max: 1 });
  const mirror = connect(server.url, { max: 1, answerWithinMs: 600 });
  try {
    await sql`alter system set synchronous_standby_names = 'away'`;
    await sql`select pg_reload_conf()`;
    await eventually(async () => {
      const [row] = await mirror<[{ names: string }]>`
        select current_setting('synchronous_standby_names') as names`;
      expect(row.names).toBe('away');
    });
    let ended = false;
    const insert = mirror`insert into catalog.skus (sku, in_manifest) values ('A', true)`.finally(() => {
      ended = true;
    });
    // Longer than an answer may take, several times.
    const found = await eventually(async () => {
      const [statement] = await readSlowStatements(sql, 2);
      expect(statement).toBeDefined();
      return statement;
    });
    expect(found).toMatchObject({ waitsFor: 'IPC: SyncRep', tables: [], attached: [] });
    expect(found && atWorkText(found)).toContain('synchronous standby');
    expect(ended).toBe(false);
    await sql`set synchronous_commit = local`;
    await sql`alter system reset synchronous_standby_names`;
    await sql`select pg_reload_conf()`;
    await insert;
    expect(await sql`select sku from catalog.skus`).toEqual([{ sku: 'A' }]);
  } finally {
    await mirror.end({ timeout: 0 });
    await sql.end({ timeout: 0 });
  }
});
