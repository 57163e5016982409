import { memoryOf } from '../../daemon/learned-names.ts';
import { heldAlso, heldForm } from '../../partner/entry-forms.ts';
import { QUEUE_TABLES } from '../../queues/postgres-queues.ts';
import { readLearnedNames } from '../../store/catalog/learned-names.ts';
import { readSyncState } from '../../store/catalog/sync-state.ts';
import { askingTwo, type Sql } from '../../store/connection/db.ts';
import { type Neighbour, readEventTriggers, readNeighbours } from '../../store/connection/neighbours.ts';
import { readConnectionLimit } from '../../store/connection/own-session.ts';
import { type Pooling, readPooling } from '../../store/connection/pooler.ts';
import { readUnchangeable, type Unchangeable } from '../../store/connection/published.ts';
import { type Objection, obstacleOf, type Remedy, remedyOf } from '../../store/connection/remedies.ts';
import { sqlState, type StoreFailure } from '../../store/connection/sql-errors.ts';
import { countDaemons } from '../../store/setup/instance.ts';
import { migrationState } from '../../store/setup/journal.ts';
import { readOccupied, readRights } from '../../store/setup/migrations.ts';
import { type FoundRole, type Occupied, OUR_SCHEMAS, readRoles } from '../../store/setup/occupied.ts';
import {
  type Lacking,
  type OwnRights,
  readOwnRights,
  readQueueLacking,
} from '../../store/setup/privileges.ts';
import {
  type LockHolder,
  readLockHolders,
  readSnapshotHolder,
  type SnapshotHolder,
} from '../../store/status/holders.ts';
import { ifAllowed } from './allowed.ts';
import { type Damage, readDamage, UNDAMAGED } from './damage.ts';
import { NOTHING_KNOWN } from './discovery/plan.ts';
import type { OwnMirror } from './partner.ts';

/**
 * Facts about the server and the role's rights, as read by `readPostgresFacts`. Counts of connections include this
 * command's own.
 */
export interface PostgresFacts {
  readonly versionNumber: number;
  readonly version: string;
  readonly encoding: string;
  /** The role that acts, and the role that logs in. */
  readonly role: string;
  readonly login: string;
  readonly database: string;
  readonly inRecovery: boolean;
  readonly readOnly: boolean;
  /** Where this session has that from, as pg_settings calls it. */
  readonly readOnlyBy: string;
  /** What Postgres said about a trial write that was rolled back, and what that means; null: it succeeded. */
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
  /** Whether these two have all their intended rights; null if that is not known. */
  readonly rightsWhole: boolean | null;
  /** Whether the mirror's tables exist, and whether this role owns them or is a member of their owner. */
  readonly migrated: boolean;
  readonly owns: boolean;
  /** Privileges that this role lacks on the mirror's tables, and objects of the mirror that another role owns. */
  readonly lacking: readonly Lacking[];
  readonly misowned: OwnRights['misowned'];
  /** The role to which they are to be given. */
  readonly acting: string;
  /** The privileges that it lacks on the tables of queues in Postgres. */
  readonly queueLacking: readonly Lacking[];
  /** Whether these tables exist in this version's form; null if this role may not read that. */
  readonly queueTablesCurrent: boolean | null;
  /** Schemas and roles with the mirror's names that are in its way, and the roles of these names as they are. */
  readonly occupied: readonly Occupied[];
  readonly roles: readonly FoundRole[];
  /** Where roles other than the mirror's, its owners and superusers may create, and which: 'PUBLIC', or roles. */
  readonly creators: readonly {
    readonly place: string;
    readonly ours: boolean;
    readonly roles: readonly string[];
  }[];
  readonly pending: number;
  readonly unknown: number;
  /** The tightest limit of connections, and how many of those it counts are not catalog-mirror's. */
  readonly connectionsMost: number;
  readonly connectionsOthers: number;
  /** Most connections that the database and the role that logs in allow; null: as many as the server has. */
  readonly connectionLimit: number | null;
  /** How many locks all sessions together have room for, and how many chunks the price history has. */
  readonly locksMost: number;
  readonly historyChunks: number;
  /** Null if this role may not read it. */
  readonly daemons: number | null;
  /** What happens to sessions on the way to the server. */
  readonly pooling: Pooling;
  readonly aheadMs: number;
  readonly snapshotHolder: SnapshotHolder | null;
  /** Who has locked tables of the mirror, even if nobody waits for them at this moment. */
  readonly lockHolders: readonly LockHolder[];
  /** Others' triggers and foreign keys on the mirror's tables. */
  readonly neighbours: readonly Neighbour[];
  /** Event triggers of the database that run when tables are created. */
  readonly eventTriggers: readonly string[];
  /** Tables of the mirror whose rows cannot be changed because of publications. */
  readonly unchangeable: readonly Unchangeable[];
  readonly damage: Damage;
  /** Whether this role can see the sessions of other roles. */
  readonly seesSessions: boolean;
}

type ServerRow = Omit<
  PostgresFacts,
  | 'queueTablesCurrent'
  | 'pending'
  | 'unknown'
  | 'rightsWhole'
  | 'occupied'
  | 'roles'
  | 'creators'
  | 'daemons'
  | 'pooling'
  | 'aheadMs'
  | 'writeProblem'
  | 'snapshotHolder'
  | 'lockHolders'
  | 'neighbours'
  | 'owns'
  | 'lacking'
  | 'misowned'
  | 'acting'
  | 'queueLacking'
  | 'eventTriggers'
  | 'unchangeable'
  | 'connectionsMost'
  | 'connectionsOthers'
  | 'connectionLimit'
  | 'damage'
> & {
  readonly at: number;
};

/** Stands for schemas that this role may not use, or whose owner it may not see: nothing else is known of them. */
const NOT_LOOKED_INTO = { occupied: [], ledger: 'ours', queueTables: null } as const;

/** Returns whether this role lacks the privileges needed to read anything of the mirror. Pure. */
export const isClosed = (lacking: readonly Lacking[]): boolean =>
  lacking.some(
    ({ kind, name, privileges }) =>
      (kind === 'schema' && privileges.includes('USAGE')) ||
      (name === 'catalog_internal.migrations' && privileges.includes('SELECT')),
  );

/**
 * Reads the facts by which doctor judges the mirror's Postgres. Changes nothing. `now` is this host's clock, in epoch
 * milliseconds.
 */
export async function readPostgresFacts(sql: Sql, now: () => number): Promise<PostgresFacts> {
  const askedAt = now();
  const [{ at }] = await sql<
    [{ at: number }]
  >`select extract(epoch from clock_timestamp())::float8 * 1000 as at`;
  const aheadMs = at - (askedAt + now()) / 2;
  const [row] = await sql<[ServerRow]>`
    select current_setting('server_version_num')::int as "versionNumber", current_setting('server_version') as version,
      current_setting('server_encoding') as encoding,
      current_user::text as role, current_database()::text as database, pg_is_in_recovery() as "inRecovery",
      pg_has_role('pg_read_all_stats', 'USAGE') as "seesSessions",
      current_setting('default_transaction_read_only')::boolean as "readOnly", session_user::text as login,
      (select source from pg_settings where name = 'default_transaction_read_only') as "readOnlyBy",
      has_database_privilege(current_database(), 'CREATE') as "mayCreate",
      has_database_privilege(current_database(), 'TEMPORARY') as "mayTemp",
      r.rolcreaterole or r.rolsuper as "mayCreateRoles",
      to_regrole('catalog_reader') is not null as "hasReader", to_regrole('catalog_watcher') is not null as "hasWatcher",
      t.relowner is not null as migrated,
      current_setting('max_locks_per_transaction')::int
        * (current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int) as "locksMost",
      -- Without to_regclass, to which a schema that this role may not use is an error.
      (select count(*)::int from pg_inherits i join pg_class c on c.oid = i.inhparent
        where c.relname = 'price_history' and c.relnamespace = t.relnamespace) as "historyChunks"
    from pg_roles r
      left join (pg_class t join pg_namespace n on n.oid = t.relnamespace and n.nspname = 'catalog')
        on t.relname = 'skus'
    where r.rolname = current_user`;
  const own = await readOwnRights(sql);
  const owns = own.owns || !row.migrated;
  const lacks = row.migrated ? own.lacking : [];
  const closed = isClosed(lacks);
  const { occupied, ledger, queueTables } = closed ? NOT_LOOKED_INTO : await readOccupied(sql);
  // Another application's table of that name says nothing about the mirror.
  const isOurs = ledger === 'ours' || (ledger === 'none' && occupied.length === 0);
  const migrated = row.migrated && isOurs;
  const owned = owns && isOurs && !closed;
  const { pending, unknown } = owned ? await migrationState(sql) : { pending: 0, unknown: 0 };
  const writes = row.inRecovery || row.readOnly || !row.mayTemp ? null : await writeProblem(sql);
  const mayCall = !lacks.some(({ kind }) => kind === 'function');
  const rights = migrated && owned && mayCall ? await readRights(sql) : null;
  return {
    ...row,
    ...(await readConnections(sql)),
    migrated,
    owns,
    rightsWhole: rights?.known === true ? rights.whole : null,
    pending,
    unknown,
    occupied,
    roles: await readRoles(sql),
    creators: await creators(sql),
    aheadMs,
    writeProblem: writes,
    queueTablesCurrent: owns && (queueTables === true ? await queueTablesCurrent(sql) : queueTables),
    daemons: migrated && owned ? await ifAllowed(countDaemons(sql), null) : closed ? null : 0,
    pooling: await askingTwo(sql, readPooling),
    snapshotHolder: await readSnapshotHolder(sql),
    lockHolders: await ifAllowed(readLockHolders(sql, 'all'), []),
    lacking: migrated ? lacks : [],
    misowned: migrated ? own.misowned : [],
    acting: own.acting,
    queueLacking: migrated && owns ? await readQueueLacking(sql) : [],
    neighbours: migrated ? await readNeighbours(sql) : [],
    eventTriggers: await readEventTriggers(sql),
    unchangeable: migrated ? await readUnchangeable(sql) : [],
    damage: migrated && owns && pending === 0 && unknown === 0 ? await readDamage(sql) : UNDAMAGED,
  };
}

/**
 * Returns the tightest limit of server, role and database, and how many others count against it. Postgres may show only
 * role and database of other roles' sessions, so some may be its own workers.
 */
export async function readConnections(
  sql: Sql,
): Promise<Pick<PostgresFacts, 'connectionsMost' | 'connectionsOthers' | 'connectionLimit'>> {
  const [tightest] = await sql<[Pick<PostgresFacts, 'connectionsMost' | 'connectionsOthers'>]>`
    with others as (
      select usesysid, datid from pg_stat_activity
      where coalesce(backend_type, 'client backend') = 'client backend' and datid is not null and usesysid is not null
        and application_name not like 'catalog-mirror%'
    )
    select most as "connectionsMost", others::int as "connectionsOthers"
    from pg_roles r
      join pg_database d on d.datname = current_database()
      cross join lateral (values
        (current_setting('max_connections')::int - case when r.rolsuper then 0 else
          current_setting('superuser_reserved_connections')::int
          + coalesce(current_setting('reserved_connections', true)::int, 0) end, (select count(*) from others)),
        (case when not r.rolsuper then r.rolconnlimit end, (select count(*) from others where usesysid = r.oid)),
        (case when not r.rolsuper then d.datconnlimit end, (select count(*) from others where datid = d.oid))
      ) as limits(most, others)
    where r.rolname = session_user and most >= 0
    order by most - others limit 1`;
  return { ...tightest, connectionLimit: await readConnectionLimit(sql) };
}

async function queueTablesCurrent(sql: Sql): Promise<boolean | null> {
  const reading = sql<[{ version: number | null }]>`
    select max(version)::int as version from ${sql(QUEUE_TABLES.ledger)}`;
  const rows = await ifAllowed(reading, null);
  return rows === null ? null : (rows[0].version ?? 0) >= QUEUE_TABLES.version;
}

/** Finds who else may create where names are looked up: in the mirror's schemas, in `public`, and schemas as such. */
async function creators(sql: Sql): Promise<PostgresFacts['creators']> {
  return await sql<PostgresFacts['creators'][number][]>`
    with places as (
      select 'schema ' || nspname as place, nspname <> 'public' as ours, nspowner as owner,
        coalesce(nspacl, acldefault('n', nspowner)) as acl
      from pg_namespace where nspname = any (${[...OUR_SCHEMAS, 'public']})
      union all
      select 'the database', false, datdba, coalesce(datacl, acldefault('d', datdba))
      from pg_database where datname = current_database()
    )
    select place, ours, array_agg(distinct case grantee when 0 then 'PUBLIC' else pg_get_userbyid(grantee)::text end) as roles
    from places, aclexplode(acl) left join pg_roles r on r.oid = grantee
    where privilege_type = 'CREATE' and grantee <> owner and rolname is distinct from current_user and rolsuper is not true
    group by place, ours order by place`;
}

/** Tries a write and rolls it back, which reveals errors such as a full disk. */
async function writeProblem(sql: Sql): Promise<PostgresFacts['writeProblem']> {
  const undone = new Error('taken back');
  try {
    await sql.begin(async (tx) => {
      // In two statements, because an event trigger may refuse CREATE TABLE but allow CREATE TABLE AS.
      await tx`create temporary table doctor_writes (text text) on commit drop`;
      await tx`insert into doctor_writes select repeat('x', 100) from generate_series(1, 1000)`;
      throw undone;
    });
    return null;
  } catch (error) {
    if (error === undone) return null;
    const said = `${error instanceof Error ? error.message : 'failed'} (${sqlState(error) ?? 'no code'})`;
    return { said, kind: obstacleOf(error), remedy: remedyOf(error) };
  }
}

const SAMPLE = 60;

/**
 * Reads what the mirror already knows: its token, some SKUs in case no manifest can be read, and how it reads
 * undocumented names. `sql` is null if there is no mirror yet.
 */
export async function readOwnMirror(sql: Sql | null, priceFields: readonly string[]): Promise<OwnMirror> {
  if (sql === null) return { token: null, skus: { snapshot: [], live: [] }, known: NOTHING_KNOWN };
  const { snapshotId } = await readSyncState(sql);
  const rows = await sql<{ sku: string; live: boolean }[]>`
    (select sku, false as live from catalog.skus where state = 'priced' and price_source = 'snapshot' limit ${SAMPLE})
    union all (select sku, true from catalog.skus where state = 'priced' and price_source = 'live' limit 2)`;
  const of = (isLive: boolean) => rows.filter(({ live }) => live === isLive).map(({ sku }) => sku);
  const names = await readLearnedNames(sql);
  const memory = memoryOf(names, 0);
  const known = {
    price: heldForm(memory, priceFields),
    also: heldAlso(memory, priceFields),
    manifest: names.manifest,
  };
  return { token: snapshotId, skus: { snapshot: of(false), live: of(true) }, known };
}
