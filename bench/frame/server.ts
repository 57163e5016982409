import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';

/** A mirror's database on a server of its own, durable as a seller's is, gone when `work` is done. */
export async function withMirrorDatabase<T>(
  work: (mirror: { readonly url: string; readonly sql: Sql; readonly folder: string }) => Promise<T>,
  options: { readonly max?: number; readonly settings?: Record<string, string> } = {},
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-bench-'));
  await chmod(folder, 0o711);
  try {
    const server = await startEmbeddedPostgres({
      dataDir: join(folder, 'postgres'),
      ...(options.settings === undefined ? {} : { settings: options.settings }),
    });
    try {
      await migrateDatabase(server.url);
      const sql = connect(server.url, { max: options.max ?? 1 });
      try {
        return await work({ url: server.url, sql, folder });
      } finally {
        await sql.end({ timeout: 5 });
      }
    } finally {
      await server.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
