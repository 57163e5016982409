import { escapeIdentifier } from 'pg';
import { neighbourText, type Neighbour } from '../../store/connection/neighbours.ts';
import { poolingProblem } from '../../store/connection/pooler.ts';
import type { Unchangeable } from '../../store/connection/published.ts';
import { encodingProblem } from '../../store/setup/occupied.ts';
import { holderRemedy, holderText, snapshotHolderText } from '../../store/status/holders.ts';
import { fail, type CheckResult, judgeSkew, ok, skipped, warn } from './check.ts';
import { judgeEncryption } from './connection.ts';
import { damageLines } from './damage.ts';
import { isClosed, type PostgresFacts } from './postgres-facts.ts';
import { creatorsLine, rightsLines } from './rights.ts';

const MIN_VERSION = 140_000;

export interface PostgresSettings {
  /** Null: the embedded Postgres. */
  readonly url: string | null;
  readonly queues: 'redis' | 'postgres';
  /** DATABASE_POOL_MAX. */
  readonly poolMax: number;
}

/** Returns doctor's lines about the database, from facts read before. Pure. */
export function judgePostgres(facts: PostgresFacts, settings: PostgresSettings): CheckResult[] {
  const tls = settings.url === null ? null : judgeEncryption('postgres tls', 'DATABASE_URL', settings.url);
  return [
    versionLine(facts, settings),
    ...(tls === null ? [] : [tls]),
    ...encodingLines(facts),
    ...poolerLines(facts),
    writeLine(facts),
    ...unchangeableLines(facts),
    ...damageLines(facts.damage),
    ...rightsLines(facts, settings.queues),
    creatorsLine(facts),
    migrationsLine(facts),
    connectionsLine(facts, settings),
    ...locksLines(facts, settings),
    snapshotsLine(facts),
    ...holderLines(facts),
    ...neighbourLines(facts),
    judgeSkew('postgres clock', "Postgres's clock", facts.aheadMs),
    daemonsLine(facts),
  ];
}

function daemonsLine({ daemons }: PostgresFacts): CheckResult {
  if (daemons === null) return skipped('daemons', 'this role may not read which are running');
  return ok('daemons', `${daemons === 0 ? 'none' : daemons} running on this database`);
}

/** A chunk of the history is a table with three indexes. */
const LOCKS_OF_CHUNK = 4;

/** If all sessions together need more locks than there is room for, Postgres refuses statements (53200). */
function locksLines(
  { locksMost, historyChunks }: PostgresFacts,
  { poolMax }: PostgresSettings,
): CheckResult[] {
  const locks = LOCKS_OF_CHUNK * historyChunks;
  if (locks * poolMax <= locksMost / 2) return [];
  return [
    warn(
      'locks',
      `the price history has ${historyChunks} chunks: a statement that reads all of it takes ${locks} of the ${locksMost} locks ` +
        `that all sessions share, and one daemon has up to ${poolMax} sessions`,
      'raise max_locks_per_transaction and restart Postgres, or set HISTORY_RETENTION, or lower it',
    ),
  ];
}

/** Reports locks: whatever else is in order, the mirror does nothing with such a table until they are released. */
const holderLines = ({ lockHolders }: PostgresFacts): CheckResult[] =>
  lockHolders.map((holder) => warn('locks', holderText(holder), holderRemedy(holder)));

/** While a snapshot is held, old row versions stay, and every statement that passes over them reads them again. */
function snapshotsLine({ snapshotHolder, seesSessions, role }: PostgresFacts): CheckResult {
  if (snapshotHolder === null)
    return ok(
      'snapshots',
      seesSessions
        ? 'nobody holds one for long'
        : `no slot holds one for long; sessions are shown after GRANT pg_read_all_stats TO ${escapeIdentifier(role)}`,
    );
  return warn(
    'snapshots',
    `${snapshotHolderText(snapshotHolder)}: Postgres can vacuum nothing meanwhile, and the mirror costs it more and more`,
    'end that transaction, or drop the slot if nobody uses it; run long reports on a standby without hot_standby_feedback',
  );
}

/** Postgres runs others' triggers and foreign keys within the mirror's statements, which take longer for it. */
function neighbourLines({ neighbours }: PostgresFacts): CheckResult[] {
  const named = (of: (neighbour: Neighbour) => boolean) =>
    neighbours.filter(of).map(neighbourText).join('; ');
  const triggers = named(({ kind }) => kind === 'trigger');
  const unindexed = named(({ indexed }) => indexed === false);
  return [
    ...(triggers === '' ? [] : [ok('triggers', `run within the mirror's statements: ${triggers}`)]),
    ...(unindexed === ''
      ? []
      : [
          warn(
            'foreign keys',
            `all of the table is read for each row that the mirror deletes: ${unindexed}`,
            'CREATE INDEX CONCURRENTLY on its columns, beginning with that of the SKU',
          ),
        ]),
  ];
}

function poolerLines({ pooling }: PostgresFacts): CheckResult[] {
  const problem = poolingProblem(pooling);
  return problem === null ? [] : [fail('postgres pooler', problem.what, problem.hint)];
}

function encodingLines({ encoding }: PostgresFacts): CheckResult[] {
  const problem = encodingProblem(encoding);
  return problem === null ? [] : [fail('postgres encoding', problem.what, problem.hint)];
}

function versionLine({ version, versionNumber }: PostgresFacts, { url }: PostgresSettings): CheckResult {
  const text = `version ${version}${url === null ? ', embedded' : ''}`;
  return versionNumber >= MIN_VERSION
    ? ok('postgres', text)
    : fail('postgres', text, 'upgrade to PostgreSQL 14 or newer');
}

/** Postgres refuses UPDATE and DELETE on such tables, whatever the publication is for. */
function unchangeableLines({ unchangeable }: PostgresFacts): CheckResult[] {
  if (unchangeable.length === 0) return [];
  const named = unchangeable.map(
    ({ table, publications, said }) => `${table} (${publications.join(', ')}: ${said})`,
  );
  return [
    fail(
      'replica identity',
      `publications keep rows of these tables from being changed: ${named.join('; ')}`,
      unchangeable.map(changeableBy).join('; '),
    ),
  ];
}

const changeableBy = ({ table, isUnidentified, publications }: Unchangeable): string =>
  isUnidentified
    ? `ALTER TABLE ${table} REPLICA IDENTITY DEFAULT`
    : `of ${table}, publish (${publications.join(', ')}) all columns of its primary key, and filter rows by no others; ` +
      `to filter by others, ALTER TABLE ${table} REPLICA IDENTITY FULL and publish all columns`;

/** The trial write creates a table, and so runs event triggers, which may fail in any way. */
function writeRemedy(
  { kind, remedy }: NonNullable<PostgresFacts['writeProblem']>,
  eventTriggers: readonly string[],
): string {
  const named = eventTriggers.join(', ');
  if (kind === 'refused-by-trigger' && named !== '')
    return `have the owner of the event trigger let this role pass, or ALTER EVENT TRIGGER … DISABLE: ${named}`;
  if (remedy !== null) return remedy.hint;
  return `check the server's disk and log${named === '' ? '' : `, and the event triggers ${named}`}`;
}

/** Returns the SQL that ends read-only mode in the place where this session has it from. */
function readOnlyRemedy({ readOnlyBy, login, database }: PostgresFacts): string {
  const [role, at] = [escapeIdentifier(login), escapeIdentifier(database)];
  const reset = 'RESET default_transaction_read_only';
  switch (readOnlyBy) {
    case 'database user':
      return `ALTER ROLE ${role} IN DATABASE ${at} ${reset}`;
    case 'user':
      return `ALTER ROLE ${role} ${reset}`;
    case 'database':
      return `ALTER DATABASE ${at} ${reset}`;
    case 'global':
      return `ALTER ROLE ALL ${reset}`;
    case 'client':
      return 'take default_transaction_read_only out of DATABASE_URL';
    default:
      return `ALTER SYSTEM ${reset}, or take it out of the configuration of the server; then SELECT pg_reload_conf()`;
  }
}

function writeLine(facts: PostgresFacts): CheckResult {
  const { inRecovery, readOnly, writeProblem, eventTriggers } = facts;
  if (inRecovery)
    return fail('writes', 'rejected: the server is a standby', 'set DATABASE_URL to the primary');
  if (readOnly)
    return fail('writes', 'rejected: transactions are read-only by default', readOnlyRemedy(facts));
  if (writeProblem !== null) {
    const { said, remedy } = writeProblem;
    return fail(
      'writes',
      `rejected: ${remedy === null ? '' : `${remedy.what}: `}${said}`,
      writeRemedy(writeProblem, eventTriggers),
    );
  }
  return ok('writes', 'succeed');
}

function migrationsLine({ pending, unknown, migrated, occupied, lacking }: PostgresFacts): CheckResult {
  if (isClosed(lacking)) return skipped('migrations', 'this role may not read which were applied');
  if (!migrated && occupied.length > 0) return skipped('migrations', 'names of the mirror are taken');
  if (unknown > 0)
    return fail(
      'migrations',
      `${unknown} applied by a later version`,
      'run that version again, or restore a backup from before the upgrade',
    );
  if (pending === 0) return ok('migrations', 'applied');
  return migrated
    ? warn('migrations', `${pending} pending`, '`run` and `migrate` apply them')
    : ok('migrations', 'not applied yet; `run` and `migrate` apply them');
}

function connectionsLine(
  { connectionsMost, connectionsOthers, connectionLimit }: PostgresFacts,
  { queues, poolMax }: PostgresSettings,
): CheckResult {
  // A start is refused in this case, whoever else is connected.
  const isLimited = connectionLimit !== null && connectionLimit < poolMax;
  const free = connectionsMost - connectionsOthers;
  const text = `${free} of ${connectionsMost} free for the mirror; one daemon uses up to ${poolMax}`;
  const others =
    queues === 'postgres'
      ? ', lower DATABASE_POOL_MAX, or move the queues to Redis'
      : ', or lower DATABASE_POOL_MAX';
  const remedy = `raise max_connections or the limit of role or database (ALTER … CONNECTION LIMIT)${others}`;
  if (isLimited) {
    const limit = `the role or the database allows ${connectionLimit}; one daemon uses up to ${poolMax}`;
    return fail('connections', limit, remedy);
  }
  return free >= poolMax ? ok('connections', text) : warn('connections', text, remedy);
}
