import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { otherHint, REMEDIES, remedyOf } from '../connection/remedies.ts';
import { carried, isNameUnknown, isPrivilegeLacking, sqlState } from '../connection/sql-errors.ts';
import { journal } from './journal.ts';

/** Why the tables cannot be brought to this version. No migration was applied. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
  readonly kind: 'migration-failed' | 'database-newer';
  readonly hint: string;

  constructor(kind: MigrationError['kind'], message: string, hint: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.kind = kind;
    this.hint = hint;
  }
}

/** SQLSTATEs: a schema, relation, function or other object of this name already exists. */
const NAME_TAKEN = new Set(['42P06', '42P07', '42723', '42710']);

/**
 * SQLSTATEs: other objects depend on what is dropped; or the feature is not supported, which a migration meets in
 * one case only: another table has a column of the row type that changes, or a view reads the column.
 */
const STANDS_ON_IT = new Set(['2BP01', '0A000']);

/**
 * Returns whether a function in PL/pgSQL raised the error (the routine's name is the same in Postgres 14 to 18). Those
 * of migrations only raise 2BP01.
 */
const isRaised = (error: unknown): boolean =>
  sqlState(error) === '0A000' && carried(error, 'routine') === 'exec_stmt_raise';

/** Returns what to do about an error of the migrating transaction. `cause` is what Postgres itself reported. */
function hintOf(error: unknown, cause: unknown): string {
  if (isRaised(error)) return REMEDIES['refused-by-trigger'].hint;
  if (STANDS_ON_IT.has(sqlState(error) ?? '')) return standsOnIt(cause);
  if (NAME_TAKEN.has(sqlState(error) ?? ''))
    return "something that is not the mirror's has a name that it needs: rename or drop that, and start again";
  if (isPrivilegeLacking(sqlState(error)))
    return '`catalog-mirror doctor` says which right the role in DATABASE_URL lacks, with the GRANT';
  if (isNameUnknown(error)) return otherHint(error);
  return remedyOf(error)?.hint ?? 'the next start retries it';
}

/** Postgres lists the dependent objects in its DETAIL, one a line, without any values of rows. */
function standsOnIt(cause: unknown): string {
  const detail =
    cause instanceof Error && 'detail' in cause && typeof cause.detail === 'string' ? cause.detail : '';
  const named = detail === '' ? '' : ` (${detail.split('\n').join('; ')})`;
  return (
    `something of yours is built on what is made anew${named}: keep its definition (pg_get_viewdef has that of a view) and ` +
    'its privileges, drop it, start again, and create it again'
  );
}

/** Converts an error of the migrating transaction, adding which migration it came from. */
export async function migrationFailed(
  error: unknown,
  folder: string,
  isMigrated: boolean,
): Promise<MigrationError> {
  const query = error instanceof Error && 'query' in error ? String(error.query) : null;
  const tag = query === null ? null : await tagOf(query, folder);
  // The library's message is the whole statement; what Postgres reported is its cause.
  const cause = query !== null && error instanceof Error && error.cause !== undefined ? error.cause : error;
  return new MigrationError(
    'migration-failed',
    isMigrated
      ? 'completing the privileges of catalog_reader and catalog_watcher failed; all migrations are applied'
      : `migrating the database failed${tag === null ? '' : ` in ${tag}`}; it is as it was before`,
    hintOf(error, cause),
    cause,
  );
}

async function tagOf(query: string, folder: string): Promise<string | null> {
  try {
    for (const { tag } of await journal(folder)) {
      if ((await readFile(join(folder, `${tag}.sql`), 'utf8')).includes(query)) return tag;
    }
  } catch {
    // Without the files there is no telling, and the error itself says that they are missing.
  }
  return null;
}
