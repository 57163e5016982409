import { readWork, type StatementAtWork, waitsForStandby } from '../connection/at-work.ts';
import type { Sql } from '../connection/db.ts';
import { asLogin } from '../connection/own-session.ts';

/** As long as the pool of a daemon waits for an answer before it asks after a statement. */
const SLOW_SECONDS = 30;

/**
 * Statements of the mirror that write its tables and have taken long for something of somebody else's: a trigger or a
 * foreign key of theirs, tables that such a one reads, or a synchronous standby. What takes long by itself, such as a
 * large manifest, is not among them.
 */
export async function readSlowStatements(sql: Sql, slowSeconds = SLOW_SECONDS): Promise<StatementAtWork[]> {
  const found = await asLogin(sql, (tx) =>
    readWork(
      tx,
      tx`
        a.datname = current_database() and a.application_name like 'catalog-mirror%' and a.pid <> pg_backend_pid()
        and a.state = 'active' and a.wait_event_type is distinct from 'Client'
        and a.query_start < clock_timestamp() - make_interval(secs => ${slowSeconds})`,
    ),
  );
  return found.flatMap(({ writes, ...statement }) =>
    writes && (waitsForStandby(statement) || statement.tables.length > 0 || statement.attached.length > 0)
      ? [statement]
      : [],
  );
}
