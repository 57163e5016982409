import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PACKAGE } from '../../version.ts';
import type { Sql } from '../connection/db.ts';

/* Which migrations exist, and which of them a database has. */

export const MIGRATIONS = join(PACKAGE, 'drizzle');

export interface Entry {
  readonly tag: string;
  /** When the migration was written, in epoch milliseconds: the table of applied migrations identifies it by this. */
  readonly when: number;
}

/** Reads all migrations of `folder`, oldest first. */
export async function journal(folder: string): Promise<readonly Entry[]> {
  const text = await readFile(join(folder, 'meta/_journal.json'), 'utf8');
  return (JSON.parse(text) as { entries: Entry[] }).entries;
}

/** Counts the migrations of `folder` that are still to be applied, and the applied ones that it does not contain. */
export async function migrationState(
  sql: Sql,
  folder = MIGRATIONS,
): Promise<{ readonly pending: number; readonly unknown: number }> {
  const entries = await journal(folder);
  const [table] = await sql<
    [{ there: boolean }]
  >`select to_regclass('catalog_internal.migrations') is not null as there`;
  if (!table.there) return { pending: entries.length, unknown: 0 };
  const applied = await sql<{ at: number }[]>`
    select created_at::float8 as at from catalog_internal.migrations`;
  const last = Math.max(0, ...applied.map(({ at }) => at));
  const newest = Math.max(...entries.map(({ when }) => when));
  return {
    pending: entries.filter(({ when }) => when > last).length,
    unknown: applied.filter(({ at }) => at > newest).length,
  };
}

/**
 * Returns the time by which the table of applied migrations identifies the newest one that this version knows. Call
 * it at a start: later the files may be another version's.
 */
export async function newestMigration(folder = MIGRATIONS): Promise<number> {
  return Math.max(...(await journal(folder)).map(({ when }) => when));
}

/** Whether a migration newer than `newest` was applied. */
export async function isMigratedPast(sql: Sql, newest: number): Promise<boolean> {
  const [{ past }] = await sql<[{ past: boolean }]>`
    select coalesce(max(created_at) > ${newest}::float8, false) as past from catalog_internal.migrations`;
  return past;
}
