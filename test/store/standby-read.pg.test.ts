import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { FAST_SETTINGS } from '../postgres/server.ts';
import { runProgram } from '../support/process.ts';
import { roomForFiles } from '../support/room.ts';
import { answerAsked, found, knownSkus } from './support.ts';

test('on a standby, status and verify refuse to judge the daemon, and commands that only read work', async () => {
  const folder = await mkdtemp(join(roomForFiles(), 'catalog-mirror-standby-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o711);
  const options = {
    dataDir: join(folder, 'pg'),
    settings: { ...FAST_SETTINGS, wal_level: 'replica', hot_standby: 'on' },
  };
  {
    await using primary = await startEmbeddedPostgres(options);
    await migrateDatabase(primary.url);
    const sql = connect(primary.url, { max: 2 });
    await knownSkus(sql, ['A']);
    await answerAsked(sql, found('A', { 9: 70 }));
    await sql.end({ timeout: 2 });
  }
  await writeFile(join(options.dataDir, 'standby.signal'), '');
  await using standby = await startEmbeddedPostgres(options);
  const env = { DATABASE_URL: standby.url };
  for (const command of [['status'], ['status', '--json'], ['verify']]) {
    const { code, stdout, stderr } = await runProgram(command, env);
    expect({ command, code, stdout }).toEqual({ command, code: 78, stdout: '' });
    expect(stderr).toContain('this Postgres is a standby');
    expect(stderr).toContain('point DATABASE_URL at the primary');
  }
  const out = join(folder, 'prices.parquet');
  for (const command of [
    ['show', 'A'],
    ['plan'],
    ['follow', '--from', 'start', '--once'],
    ['follow', '--list'],
    ['sql', 'select sku, price from catalog.prices'],
    ['export', '--what', 'prices', '--out', out],
  ]) {
    const { code, stderr } = await runProgram(command, env);
    expect({ command, code, stderr: code === 0 ? '' : stderr }).toEqual({ command, code: 0, stderr: '' });
  }
});
