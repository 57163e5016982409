import type { Queryable } from '../store/connection/db.ts';
import { OWN_TABLES } from '../store/setup/privileges.ts';
import { readHiddenRows } from '../store/setup/row-security.ts';
import { Impaired } from './explained.ts';

/**
 * Returns a line that names the tables of which policies may hide rows from this role, or null if it sees all rows.
 *
 * @throws Impaired if it sees no row of a table that is `needed`
 */
export async function hiddenLine(sql: Queryable, needed: readonly string[] = []): Promise<string | null> {
  const hidden = await readHiddenRows(sql, needed.length === 0 ? OWN_TABLES : needed, false);
  const closed = hidden.filter(({ all, table }) => all && needed.includes(table));
  if (closed.length > 0)
    throw new Impaired(
      'rows-hidden',
      `row-level security shows this role no row of ${closed.map(({ table }) => table).join(', ')}`,
      closed
        .map(({ table }) => `CREATE POLICY readers ON ${table} FOR SELECT TO catalog_reader USING (true)`)
        .join('; '),
    );
  return hidden.length === 0
    ? null
    : `row-level security may hide rows from this role: ${hidden.map(({ table }) => table).join(', ')}`;
}
