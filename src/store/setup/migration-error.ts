import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { otherHint, remedyOf } from '../connection/remedies.ts';
import { isNameUnknown, isPrivilegeLacking, sqlState } from '../connection/sql-errors.ts';
import { journal } from './journal.ts';

/** Why the tables cannot be brought to this version. Nothing of it was applied. */
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

/** SQLSTATEs: there is such a schema, relation, function or other object already. */
const NAME_TAKEN = new Set(['42P06', '42P07', '42723', '42710']);

/** What to do about an error of the migrating transaction. */
function hintOf(error: unknown): string {
  if (NAME_TAKEN.has(sqlState(error) ?? ''))
    return "something that is not the mirror's has a name that it needs: rename or drop that, and start again";
  if (isPrivilegeLacking(sqlState(error)))
    return '`catalog-mirror doctor` says which right the role in DATABASE_URL lacks, with the GRANT';
  if (isNameUnknown(error)) return otherHint(error);
  return remedyOf(error)?.hint ?? 'the next start retries it';
}

/** An error of the migrating transaction, saying which migration it came from. */
export async function migrationFailed(
  error: unknown,
  folder: string,
  isMigrated: boolean,
): Promise<MigrationError> {
  const query = error instanceof Error && 'query' in error ? String(error.query) : null;
  const tag = query === null ? null : await tagOf(query, folder);
  // The library's own message is the whole statement; what Postgres said is its cause.
  const cause = query !== null && error instanceof Error && error.cause !== undefined ? error.cause : error;
  return new MigrationError(
    'migration-failed',
    isMigrated
      ? 'completing the privileges of catalog_reader and catalog_watcher failed; all migrations are applied'
      : `migrating the database failed${tag === null ? '' : ` in ${tag}`}; it is as it was before`,
    hintOf(error),
    cause,
  );
}

async function tagOf(query: string, folder: string): Promise<string | null> {
  try {
    for (const { tag } of await journal(folder)) {
      if ((await readFile(join(folder, `${tag}.sql`), 'utf8')).includes(query)) return tag;
    }
  } catch {
    // Without its files there is no telling, and their absence is what the error says anyway.
  }
  return null;
}
