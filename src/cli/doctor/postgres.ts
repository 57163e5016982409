import { judgeEncryption } from './connection.ts';
import { fail, type Finding, judgeSkew, ok, warn } from './check.ts';

const LEAST_VERSION = 140_000;
/** Connections that a daemon opens at most, with its queues in Redis or in the same Postgres. */
const NEEDED = { redis: 18, postgres: 40 } as const;

/** What the server and the role's rights are, as read by `readFacts`. Counts of connections include this command's own. */
export interface PostgresFacts {
  readonly versionNumber: number;
  readonly version: string;
  readonly role: string;
  readonly database: string;
  readonly inRecovery: boolean;
  readonly readOnly: boolean;
  /** Message of a write that was tried and taken back; null: it went well. */
  readonly writeProblem: string | null;
  readonly mayCreate: boolean;
  readonly mayTemp: boolean;
  readonly mayCreateRoles: boolean;
  readonly hasReader: boolean;
  readonly hasWatcher: boolean;
  /** Whether the mirror's tables are there, and whether this role owns them, or belongs to their owner. */
  readonly migrated: boolean;
  readonly owns: boolean;
  readonly pending: number;
  readonly unknown: number;
  /** Most connections that the server leaves to this role, and those that others than catalog-mirror hold now. */
  readonly connectionsMost: number;
  readonly connectionsOthers: number;
  readonly daemons: number;
  /** Whether the server changed under an idle session: a transaction pooler stands in between. */
  readonly pooled: boolean;
  readonly aheadMs: number;
}

export interface PostgresSettings {
  /** Null: the embedded Postgres. */
  readonly url: string | null;
  readonly queues: 'redis' | 'postgres';
}

/** Judges the database. Pure. */
export function judgePostgres(facts: PostgresFacts, settings: PostgresSettings): Finding[] {
  const tls = settings.url === null ? null : judgeEncryption('postgres tls', 'DATABASE_URL', settings.url);
  return [
    versionLine(facts, settings),
    ...(tls === null ? [] : [tls]),
    ...(facts.pooled ? [pooled] : []),
    writeLine(facts),
    ...rightsLines(facts),
    migrationsLine(facts),
    connectionsLine(facts, settings),
    judgeSkew('postgres clock', "Postgres's clock", facts.aheadMs),
    facts.daemons === 0
      ? ok('daemons', 'none runs on this database')
      : ok('daemons', `${facts.daemons} running on this database`),
  ];
}

const pooled = fail(
  'postgres pooler',
  'sessions do not hold: a transaction pooler stands in between',
  'give the server itself, or a pooler in session mode, in DATABASE_URL: queues and locks need sessions',
);

function versionLine({ version, versionNumber }: PostgresFacts, { url }: PostgresSettings): Finding {
  const text = `version ${version}${url === null ? ', embedded' : ''}`;
  return versionNumber >= LEAST_VERSION
    ? ok('postgres', text)
    : fail('postgres', text, 'PostgreSQL 14 or newer is needed');
}

function writeLine({ inRecovery, readOnly, writeProblem }: PostgresFacts): Finding {
  if (inRecovery)
    return fail('writes', 'refused: the server is a standby', 'give the primary in DATABASE_URL');
  if (readOnly)
    return fail(
      'writes',
      'refused: transactions are read-only by default',
      'ALTER DATABASE … SET default_transaction_read_only = off, or for the role',
    );
  if (writeProblem !== null)
    return fail('writes', `refused: ${writeProblem}`, 'look at the disk and the log of the server');
  return ok('writes', 'taken');
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

function rightsLines(facts: PostgresFacts): Finding[] {
  const { role, database, mayCreate, mayTemp, migrated, owns } = facts;
  const findings: Finding[] = [];
  const grant = (right: string) => `GRANT ${right} ON DATABASE ${quoted(database)} TO ${quoted(role)}`;
  if (!mayCreate && !migrated)
    findings.push(fail('rights', `${role} has no CREATE on the database`, grant('CREATE')));
  else if (!mayCreate && facts.pending > 0)
    findings.push(
      warn('rights', `${role} has no CREATE on the database: a migration may need it`, grant('CREATE')),
    );
  if (!mayTemp)
    findings.push(
      fail('rights', `${role} may make no temporary tables: manifests are staged in one`, grant('TEMPORARY')),
    );
  if (migrated && !owns)
    findings.push(
      fail(
        'rights',
        `the mirror's tables belong to another role than ${role}`,
        'use the role that migrated them, or become a member of it',
      ),
    );
  if (findings.length === 0) findings.push(ok('rights', `${role} may do what the mirror does`));
  return [...findings, roles(facts)];
}

function roles({ hasReader, hasWatcher, mayCreateRoles, migrated }: PostgresFacts): Finding {
  const missing = [hasReader ? '' : 'catalog_reader', hasWatcher ? '' : 'catalog_watcher'].filter(
    (name) => name !== '',
  );
  if (missing.length === 0) return ok('roles', 'catalog_reader and catalog_watcher exist');
  if (mayCreateRoles && !migrated) return ok('roles', `${missing.join(' and ')} will be made`);
  const create = missing.map((name) => `CREATE ROLE ${name}`).join('; ');
  return migrated
    ? warn(
        'roles',
        `${missing.join(' and ')} missing: reading rights are yours to grant`,
        `${create}; then grant by hand`,
      )
    : warn(
        'roles',
        `${missing.join(' and ')} missing, and this role may create none`,
        `${create} before the first start: it is granted its rights then`,
      );
}

function migrationsLine({ pending, unknown, migrated }: PostgresFacts): Finding {
  if (unknown > 0)
    return fail(
      'migrations',
      `${unknown} of a later version`,
      'run that version again, or restore a backup from before the upgrade',
    );
  if (pending === 0) return ok('migrations', 'applied');
  return migrated
    ? warn('migrations', `${pending} pending`, '`run` and `migrate` apply them')
    : ok('migrations', 'not applied yet; `run` and `migrate` apply them');
}

function connectionsLine(
  { connectionsMost, connectionsOthers }: PostgresFacts,
  { queues }: PostgresSettings,
): Finding {
  const free = connectionsMost - connectionsOthers;
  const text = `${free} of ${connectionsMost} free for the mirror; a daemon takes up to ${NEEDED[queues]}`;
  const todo =
    queues === 'postgres'
      ? 'raise max_connections or the limit of the role, or put the queues into Redis'
      : 'raise max_connections or the limit of the role';
  return free >= NEEDED[queues] ? ok('connections', text) : warn('connections', text, todo);
}
