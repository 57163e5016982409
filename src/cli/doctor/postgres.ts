import { type Neighbour, neighbourText } from '../../store/connection/neighbours.ts';
import { type Pooling, poolingProblem } from '../../store/connection/pooler.ts';
import type { Objection, Remedy } from '../../store/connection/remedies.ts';
import type { StoreFailure } from '../../store/connection/sql-errors.ts';
import { encodingProblem, type FoundRole, judgeRoles, type Occupied } from '../../store/setup/occupied.ts';
import { grantOf, type Lacking, lackingText } from '../../store/setup/privileges.ts';
import { type SnapshotHolder, snapshotHolderText } from '../../store/status/holders.ts';
import { fail, type CheckResult, judgeSkew, ok, skipped, warn } from './check.ts';
import { judgeEncryption } from './connection.ts';

const MIN_VERSION = 140_000;

/**
 * What the server and the role's rights are, as read by `readPostgresFacts`. Counts of connections include this
 * command's own.
 */
export interface PostgresFacts {
  readonly versionNumber: number;
  readonly version: string;
  readonly encoding: string;
  readonly role: string;
  readonly database: string;
  readonly inRecovery: boolean;
  readonly readOnly: boolean;
  /** What Postgres said of a write that was tried and taken back, and what that is; null: it went well. */
  readonly writeProblem: {
    readonly said: string;
    readonly kind: StoreFailure | Objection | null;
    readonly remedy: Remedy | null;
  } | null;
  readonly mayCreate: boolean;
  readonly mayTemp: boolean;
  readonly mayCreateRoles: boolean;
  readonly hasReader: boolean;
  readonly hasWatcher: boolean;
  /** Whether these two have all the rights that they are meant to have; null where that is not known. */
  readonly rightsWhole: boolean | null;
  /** Whether the mirror's tables are there, and whether this role owns them, or belongs to their owner. */
  readonly migrated: boolean;
  readonly owns: boolean;
  /** Privileges that this role lacks on the mirror's tables. */
  readonly lacking: readonly Lacking[];
  /** Whether the tables of queues in Postgres are there, as this version wants them. */
  readonly queueTablesCurrent: boolean;
  /** Schemas and roles with the mirror's names that stand in its way, and the roles of these names as they are. */
  readonly occupied: readonly Occupied[];
  readonly roles: readonly FoundRole[];
  /** Where others than the mirror's role, its owners and superusers may create, and who: 'PUBLIC', or roles. */
  readonly creators: readonly {
    readonly place: string;
    readonly ours: boolean;
    readonly roles: readonly string[];
  }[];
  readonly pending: number;
  readonly unknown: number;
  /** Most connections that the server leaves to this role, and those that others than catalog-mirror hold now. */
  readonly connectionsMost: number;
  readonly connectionsOthers: number;
  readonly daemons: number;
  /** What becomes of sessions on the way to the server. */
  readonly pooling: Pooling;
  readonly aheadMs: number;
  readonly snapshotHolder: SnapshotHolder | null;
  /** Triggers and foreign keys of others on the mirror's tables. */
  readonly neighbours: readonly Neighbour[];
  /** Event triggers of the database that run when tables are made. */
  readonly eventTriggers: readonly string[];
  /** Tables of the mirror that are published and have no replica identity. */
  readonly unchangeable: readonly string[];
  /** Whether the sessions of other roles are shown to this one. */
  readonly seesSessions: boolean;
}

export interface PostgresSettings {
  /** Null: the embedded Postgres. */
  readonly url: string | null;
  readonly queues: 'redis' | 'postgres';
  /** DATABASE_POOL_MAX. */
  readonly poolMax: number;
}

/** The lines of doctor about the database, from facts read before. Pure. */
export function judgePostgres(facts: PostgresFacts, settings: PostgresSettings): CheckResult[] {
  const tls = settings.url === null ? null : judgeEncryption('postgres tls', 'DATABASE_URL', settings.url);
  return [
    versionLine(facts, settings),
    ...(tls === null ? [] : [tls]),
    ...encodingLines(facts),
    ...poolerLines(facts),
    writeLine(facts),
    ...unchangeableLines(facts),
    ...rightsLines(facts, settings),
    creatorsLine(facts),
    migrationsLine(facts),
    connectionsLine(facts, settings),
    snapshotsLine(facts),
    ...neighbourLines(facts),
    judgeSkew('postgres clock', "Postgres's clock", facts.aheadMs),
    facts.daemons === 0
      ? ok('daemons', 'none running on this database')
      : ok('daemons', `${facts.daemons} running on this database`),
  ];
}

/** What is updated while a snapshot is held stays, and every statement that passes over it reads it again. */
function snapshotsLine({ snapshotHolder, seesSessions, role }: PostgresFacts): CheckResult {
  if (snapshotHolder === null)
    return ok(
      'snapshots',
      seesSessions
        ? 'nobody holds one for long'
        : `no slot holds one for long; sessions are shown after GRANT pg_read_all_stats TO ${quoted(role)}`,
    );
  return warn(
    'snapshots',
    `${snapshotHolderText(snapshotHolder)}: Postgres can vacuum nothing meanwhile, and the mirror costs it more and more`,
    'end that transaction, or drop the slot if nobody uses it; run long reports on a standby without hot_standby_feedback',
  );
}

/** Postgres runs them within the mirror's statements, which take as long as they do. */
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

/** Postgres refuses UPDATE and DELETE of them (55000), whatever the publication is for. */
function unchangeableLines({ unchangeable }: PostgresFacts): CheckResult[] {
  if (unchangeable.length === 0) return [];
  const remedy = unchangeable.map((table) => `ALTER TABLE ${table} REPLICA IDENTITY DEFAULT`).join('; ');
  return [
    fail(
      'replica identity',
      `rows cannot be changed, as these tables are in a publication and have none: ${unchangeable.join(', ')}`,
      remedy,
    ),
  ];
}

/** The write that is tried makes a table, and so runs event triggers, which may fail in every way. */
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

function writeLine({ inRecovery, readOnly, writeProblem, eventTriggers }: PostgresFacts): CheckResult {
  if (inRecovery)
    return fail('writes', 'rejected: the server is a standby', 'set DATABASE_URL to the primary');
  if (readOnly)
    return fail(
      'writes',
      'rejected: transactions are read-only by default',
      'ALTER DATABASE … SET default_transaction_read_only = off, or for the role',
    );
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

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

function rightsLines(facts: PostgresFacts, { queues }: PostgresSettings): CheckResult[] {
  const { role, database, mayCreate, mayTemp, migrated, owns, lacking } = facts;
  const findings: CheckResult[] = [];
  const grant = (right: string) => `GRANT ${right} ON DATABASE ${quoted(database)} TO ${quoted(role)}`;
  if (!mayCreate && !migrated)
    findings.push(fail('rights', `${role} has no CREATE on the database`, grant('CREATE')));
  else if (!mayCreate && queues === 'postgres' && !facts.queueTablesCurrent)
    findings.push(
      fail(
        'rights',
        `${role} has no CREATE on the database, and the tables of the queues are still to be created or updated`,
        `${grant('CREATE')}, for one start or \`migrate\``,
      ),
    );
  else if (!mayCreate && facts.pending > 0)
    findings.push(
      warn('rights', `${role} has no CREATE on the database; a migration may need it`, grant('CREATE')),
    );
  if (!mayTemp)
    findings.push(
      fail(
        'rights',
        `${role} may not create temporary tables, and manifests are staged in one`,
        grant('TEMPORARY'),
      ),
    );
  if (migrated && !owns)
    findings.push(
      fail(
        'rights',
        `the mirror's tables are not owned by ${role}`,
        'connect as the role that migrated them, or as a member of it',
      ),
    );
  const lacks = owns ? lackingText(lacking) : null;
  if (lacks !== null)
    findings.push(
      fail('rights', lacks, `${grantOf(lacking, quoted(role))}; or ALTER TABLE … OWNER TO ${quoted(role)}`),
    );
  if (findings.length === 0) findings.push(ok('rights', `${role} has the privileges the mirror needs`));
  return [...occupiedLines(facts), ...findings, ...rolesLines(facts)];
}

/** Functions and tables of others are never called or read by name; in a schema of the mirror they would be its own. */
function creatorsLine({ creators, migrated }: PostgresFacts): CheckResult {
  const named = creators.map(({ place, roles }) => `${roles.join(', ')} in ${place}`).join('; ');
  if (creators.length === 0) return ok('creators', "nobody else may create in this database's schemas");
  const inOurs = creators.some(({ ours }) => ours);
  const mayTakeNames = !migrated && creators.some(({ place }) => place === 'the database');
  return inOurs || mayTakeNames
    ? warn(
        'creators',
        `others may create: ${named}`,
        inOurs
          ? "REVOKE CREATE ON SCHEMA … FROM …: what is created in the mirror's schemas runs with its rights"
          : 'REVOKE CREATE ON DATABASE … FROM …, or migrate first: who makes a schema with a name of the mirror stops its start',
      )
    : ok('creators', `others may create: ${named}; nothing there is used by the mirror`);
}

/** Where the mirror's names are taken, `run` and `migrate` end before they make anything. */
function occupiedLines({ occupied }: PostgresFacts): CheckResult[] {
  return occupied.map(({ kind, text, remedy }) =>
    fail(kind === 'role-of-another' ? 'roles' : 'schemas', text, remedy),
  );
}

function rolesLines(facts: PostgresFacts): CheckResult[] {
  // Before the first migration these are among what stands in its way.
  if (facts.occupied.some(({ kind }) => kind === 'role-of-another')) return [];
  const tooMuch = judgeRoles(facts.roles).map(({ text, remedy }) => warn('roles', text, remedy));
  const logins = facts.roles.filter(({ canLogin }) => canLogin).map(({ role }) => role);
  const login = warn(
    'roles',
    `${logins.join(' and ')} can log in: whatever logs in so may do what the mirror's readers may`,
    `ALTER ROLE … NOLOGIN, and GRANT it to the roles that are to read`,
  );
  const line = roles(facts);
  const members = facts.roles.flatMap(({ role, members: names }) =>
    names.map((name) => `${name} in ${role}`),
  );
  const shown =
    facts.migrated || members.length === 0 || line.level !== 'OK'
      ? line
      : ok('roles', `${line.text}; who is in them will read this catalog, too: ${members.join(', ')}`);
  return [shown, ...tooMuch, ...(logins.length === 0 ? [] : [login])];
}

function roles({ hasReader, hasWatcher, mayCreateRoles, migrated, rightsWhole }: PostgresFacts): CheckResult {
  const missing = [hasReader ? '' : 'catalog_reader', hasWatcher ? '' : 'catalog_watcher'].filter(
    (name) => name !== '',
  );
  if (missing.length === 0 && rightsWhole === false)
    return warn(
      'roles',
      'catalog_reader or catalog_watcher lacks privileges',
      'run `catalog-mirror migrate`',
    );
  if (missing.length === 0) return ok('roles', 'catalog_reader and catalog_watcher exist');
  if (mayCreateRoles && !migrated) return ok('roles', `${missing.join(' and ')} will be created`);
  const create = missing.map((name) => `CREATE ROLE ${name}`).join('; ');
  return migrated
    ? warn(
        'roles',
        `${missing.join(' and ')} missing: sellers have no privileges`,
        mayCreateRoles
          ? 'run `catalog-mirror migrate`, which makes roles and grants'
          : `${create}; then run \`catalog-mirror migrate\`, which grants the privileges`,
      )
    : warn(
        'roles',
        `${missing.join(' and ')} missing, and this role may not create roles`,
        `${create} before the first start, which grants the privileges`,
      );
}

function migrationsLine({ pending, unknown, migrated, occupied }: PostgresFacts): CheckResult {
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
  { connectionsMost, connectionsOthers }: PostgresFacts,
  { queues, poolMax }: PostgresSettings,
): CheckResult {
  const free = connectionsMost - connectionsOthers;
  const text = `${free} of ${connectionsMost} free for the mirror; one daemon uses up to ${poolMax}`;
  const remedy =
    queues === 'postgres'
      ? "raise max_connections or the role's limit (ALTER ROLE … CONNECTION LIMIT), lower DATABASE_POOL_MAX, or move the queues to Redis"
      : "raise max_connections or the role's limit (ALTER ROLE … CONNECTION LIMIT), or lower DATABASE_POOL_MAX";
  return free >= poolMax ? ok('connections', text) : warn('connections', text, remedy);
}
