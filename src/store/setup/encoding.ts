import { Misconfigured } from '../../lib/errors.ts';
import type { Sql } from '../connection/db.ts';

/** The only one in which Postgres stores all that a partner may write, and knows where a character ends. */
const ENCODING = 'UTF8';

/** The database's encoding. */
async function readEncoding(sql: Sql): Promise<string> {
  const [{ encoding }] = await sql<
    [{ encoding: string }]
  >`select current_setting('server_encoding') as encoding`;
  return encoding;
}

/** What is wrong with it, and what to do; null: nothing. Pure. */
export function encodingProblem(encoding: string): { readonly what: string; readonly hint: string } | null {
  if (encoding === ENCODING) return null;
  return {
    what: `the database has the encoding ${encoding}, in which not every name and size can be stored`,
    hint: `use another one: CREATE DATABASE … ENCODING '${ENCODING}' TEMPLATE template0`,
  };
}

/** Nothing was made. */
class EncodingError extends Misconfigured {
  override readonly name = 'EncodingError';
  readonly kind = 'encoding';
}

/** Throws EncodingError where the database's encoding cannot store everything. */
export async function refuseEncoding(sql: Sql): Promise<void> {
  const problem = encodingProblem(await readEncoding(sql));
  if (problem !== null) throw new EncodingError(problem.what, problem.hint);
}
