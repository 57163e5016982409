import { escapeIdentifier } from 'pg';
import { Misconfigured } from '../lib/errors.ts';
import { connect, type Sql } from '../store/connection/db.ts';
import { adviceOn, otherHint } from '../store/connection/remedies.ts';
import {
  isNameUnknown,
  isPrivilegeLacking,
  isTableMissing,
  sqlState,
} from '../store/connection/sql-errors.ts';
import { readLostRows } from '../store/ledger/lost-rows.ts';
import {
  type Closed,
  closedRemedy,
  closedText,
  isOf,
  readClosed,
  refusesObject,
} from '../store/setup/closed.ts';
import { migrationState } from '../store/setup/journal.ts';
import { readOccupied } from '../store/setup/migrations.ts';
import { OccupiedError } from '../store/setup/occupied.ts';
import {
  OWN_RELATIONS,
  OWN_TABLES,
  type OwnRights,
  readOwnRights,
  readQueueLacking,
  rightsRemedy,
  rightsText,
} from '../store/setup/privileges.ts';
import { hiddenText, noForceOf, readHiddenRows } from '../store/setup/row-security.ts';
import { namingHolder } from '../store/status/holders.ts';

/*
 * What an error of Postgres means to the user of a command: what the database is, and what its role may not do. Decided
 * by asking the database, never by the error's message.
 */

/** The database has no mirror, or none yet. Nothing is broken. */
export class NoTables extends Misconfigured {
  override readonly name = 'NoTables';
  readonly kind = 'no-tables';

  constructor(cause: unknown) {
    super(
      'the mirror has no tables yet',
      'start the daemon, or run `catalog-mirror migrate`; or correct DATABASE_URL',
      cause,
    );
  }
}

/** The tables are those of an earlier version, and a daemon of that version may be using them. Nothing is broken. */
export class EarlierVersion extends Misconfigured {
  override readonly name = 'EarlierVersion';
  readonly kind = 'earlier-version';

  constructor(cause: unknown) {
    super(
      'the database is of an earlier version',
      'start the daemon of this version, or run `catalog-mirror migrate`; until then use the commands of that version',
      cause,
    );
  }
}

/** The tables are those of a later version. Nothing is broken. */
export class LaterVersion extends Misconfigured {
  override readonly name = 'LaterVersion';
  readonly kind = 'later-version';

  constructor(cause: unknown) {
    super('the database is of a later version', 'use the commands of that version', cause);
  }
}

/** This role may not read which version the tables have, and they lack what the command reads. */
export class Unclear extends Misconfigured {
  override readonly name = 'Unclear';
  readonly kind = 'other-version';

  constructor(cause: unknown) {
    super(
      'the database is of another version, or somebody has dropped what this reads',
      '`catalog-mirror doctor` with the DATABASE_URL of the daemon says which',
      cause,
    );
  }
}

/** The role of DATABASE_URL may not do what the command does. Nothing is broken. */
export class NotAllowed extends Misconfigured {
  override readonly name = 'NotAllowed';
  readonly kind = 'not-allowed';

  constructor(owner: string | null, cause: unknown) {
    const whose =
      owner === null ? '' : `, whose role is ${owner} or a member of it that inherits its privileges`;
    super(
      'the role of DATABASE_URL may not do this',
      `use the DATABASE_URL of the daemon${whose}; catalog_reader is enough for show, sql (on the schema catalog), ` +
        'export, and follow without --name and --filter',
      cause,
    );
  }
}

/** The role of DATABASE_URL is one of the mirror's readers, and readers lack intended privileges. */
class ReadersLack extends Misconfigured {
  override readonly name = 'ReadersLack';
  readonly kind = 'readers-lack';

  constructor(owner: string, cause: unknown) {
    super(
      'catalog_reader lacks privileges that it is to have, as where a dump was loaded without them',
      `run \`catalog-mirror migrate\` with the DATABASE_URL of the daemon, whose role is ${owner} or a member of it: it grants them`,
      cause,
    );
  }
}

/** An obstacle in the database itself, which its administrator can remove; a daemon meets it, too. */
export class Impaired extends Error {
  override readonly name = 'Impaired';
  readonly kind: 'rights-lacking' | 'parts-gone' | 'rows-hidden';
  readonly hint: string;

  constructor(kind: Impaired['kind'], text: string, hint: string, cause?: unknown) {
    super(text, cause === undefined ? {} : { cause });
    this.kind = kind;
    this.hint = hint;
  }
}

const partsGone = (cause: unknown) =>
  new Impaired(
    'parts-gone',
    'this database has not all that the mirror has made in it',
    otherHint(cause),
    cause,
  );

/** How many tables the message names. */
const NAMED = 3;

/** Somebody has deleted rows without which nothing can be read. */
export class RowsLost extends Error {
  override readonly name = 'RowsLost';
  readonly kind = 'rows-lost';
  readonly hint =
    '`catalog-mirror migrate` makes them anew, or says what to do where the whole mirror is without rows';

  constructor(tables: readonly string[], cause?: unknown) {
    const more = tables.length > NAMED ? ` and ${tables.length - NAMED} more tables` : '';
    super(
      `rows that the mirror cannot do without are gone: ${tables.slice(0, NAMED).join(', ')}${more}`,
      cause === undefined ? {} : { cause },
    );
  }
}

export interface Explaining {
  /** For further queries: the work may have ended its own connections. */
  readonly url: string;
  /** The statements come from the user of the command, so missing names may be misspelt. */
  readonly ofUser?: boolean;
  /** The rights of catalog_reader are sufficient. */
  readonly forReaders?: boolean;
}

/**
 * Returns what to report about an error of work on the mirror: the error itself, or one that says what the database is
 * or what its role lacks, with the error as its cause. `sql`: the pool of that work.
 */
export async function explained(
  sql: Sql,
  error: unknown,
  { url, ofUser = false, forReaders = false }: Explaining,
): Promise<unknown> {
  if (error instanceof Impaired) return error;
  const named = await namingHolder(sql, error);
  if (named !== error) return named;
  const lacking = isPrivilegeLacking(sqlState(error))
    ? ((await lackingOf(url, error, forReaders)) ?? (await closedOf(url, error, ofUser)))
    : null;
  if (lacking !== null) return lacking;
  const lost = error instanceof RowsLost ? [] : await asking(url, readLostRows, []);
  // A TypeError about the missing row adds nothing to that.
  if (lost.length > 0) return new RowsLost(lost, error instanceof TypeError ? undefined : error);
  return (isNameUnknown(error) ? await missingOf(url, error, ofUser) : null) ?? error;
}

/**
 * Returns the error to report if policies hide rows of the mirror from the mirror's own role, which relies on all of
 * them. Postgres reports no error, and a table appears to be empty. Returns null if it sees all.
 */
export async function hiddenFromMirror(sql: Sql): Promise<Impaired | null> {
  const tables = (await readHiddenRows(sql, OWN_TABLES, true)).map(({ table }) => table);
  if (tables.length === 0) return null;
  const { owns, acting, misowned } = await readOwnRights(sql);
  if (!owns) return null;
  // Policies do not apply to a table's owner, so for a table that was given away, getting it back is enough.
  const given = misowned.filter(({ name }) => tables.includes(name));
  const own = tables.filter((table) => given.every(({ name }) => name !== table));
  const back = rightsRemedy({ lacking: [], misowned: given }, escapeIdentifier(acting));
  const remedies = [back, noForceOf(own)].filter((remedy) => remedy !== '');
  return new Impaired('rows-hidden', hiddenText(tables), remedies.join('; '));
}

/** Does the same for a start and for `migrate`, which create what is missing. */
export async function explainedStart(error: unknown, url: string): Promise<unknown> {
  if (isPrivilegeLacking(sqlState(error)))
    return (await lackingAtStart(url, error)) ?? (await closedOf(url, error)) ?? error;
  const isExplained = adviceOn(error).hint !== null;
  return isNameUnknown(error) && !isExplained ? partsGone(error) : error;
}

/** Returns what this role lacks, also on the tables of queues in Postgres. */
async function readAllRights(sql: Sql): Promise<OwnRights> {
  const rights = await readOwnRights(sql);
  return rights.owns ? { ...rights, lacking: [...rights.lacking, ...(await readQueueLacking(sql))] } : rights;
}

/** Returns the error to report if a start, which also creates schemas, lacks privileges. */
async function lackingAtStart(url: string, cause: unknown): Promise<Error | null> {
  const rights = await asking(url, readAllRights, null);
  if (rights === null) return null;
  const text = rightsText(rights);
  if (text !== null)
    return new Impaired('rights-lacking', text, rightsRemedy(rights, escapeIdentifier(rights.acting)), cause);
  const { database, missing } = await asking(url, readDatabaseLacking, { database: '', missing: [] });
  if (missing.length === 0) return await asking(url, hiddenFromMirror, null);
  const what = missing.join(', ');
  return new Impaired(
    'rights-lacking',
    `${rights.role} has no ${what} on the database`,
    `GRANT ${what} ON DATABASE ${escapeIdentifier(database)} TO ${escapeIdentifier(rights.role)}`,
    cause,
  );
}

/** Returns the database's privileges that this role lacks: to create schemas in it, and temporary tables. */
async function readDatabaseLacking(
  sql: Sql,
): Promise<{ readonly database: string; readonly missing: string[] }> {
  const [row] = await sql<[{ database: string; missing: string[] }]>`
    select current_database()::text as database,
      array(select p from unnest(array['CREATE', 'TEMPORARY']) p where not has_database_privilege(current_database(), p)) as missing`;
  return row;
}

/**
 * Returns the error to report if a privilege is lacking; null if none of the mirror's is, for example if somebody's
 * policy or trigger has refused a row.
 */
async function lackingOf(url: string, cause: unknown, forReaders: boolean): Promise<Error | null> {
  const rights = await asking(url, readAllRights, null);
  if (rights === null) return null;
  if (rights.owner === null) return (await occupiedOf(url, cause)) ?? new NotAllowed(null, cause);
  if (!rights.owns) {
    const isReaders = forReaders && (await asking(url, readersLack, false));
    return isReaders ? new ReadersLack(rights.owner, cause) : new NotAllowed(rights.owner, cause);
  }
  const text = rightsText(rights);
  if (text === null) return await asking(url, hiddenFromMirror, null);
  return new Impaired('rights-lacking', text, rightsRemedy(rights, escapeIdentifier(rights.acting)), cause);
}

/** Returns the error to report if Postgres's own functions or views are closed to this role; null: not known. */
async function closedOf(url: string, cause: unknown, ofUser = false): Promise<Impaired | null> {
  const unknown: { closed: Closed[]; role: string } = { closed: [], role: '' };
  const { closed, role } = await asking(
    url,
    async (sql) => {
      const [row] = await sql<[{ role: string }]>`select current_user::text as role`;
      return { closed: await readClosed(sql), role: row.role };
    },
    unknown,
  );
  if (isOf(cause, closed))
    return new Impaired(
      'rights-lacking',
      closedText(closed),
      closedRemedy(closed, escapeIdentifier(role)),
      cause,
    );
  if (ofUser || !refusesObject(cause)) return null;
  return new Impaired(
    'rights-lacking',
    "this role may not use something that is none of the mirror's own, as where Postgres's functions were closed to everybody",
    "as an administrator GRANT to the mirror's role what the message names, and try again",
    cause,
  );
}

/** Returns whether this role reads as a member of catalog_reader, which lacks some of its intended rights. */
async function readersLack(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ lack: boolean }[]>`
    select not has_schema_privilege(r.oid, n.oid, 'USAGE') or exists (
        select from pg_class c where c.relnamespace = n.oid and n.nspname || '.' || c.relname = any (${[...OWN_RELATIONS]}::text[])
          and not has_table_privilege(r.oid, c.oid, 'SELECT')
      ) or exists (
        select from pg_proc p where p.pronamespace = n.oid and p.proname in ('explain', 'changes')
          and not has_function_privilege(r.oid, p.oid, 'EXECUTE')
      ) as lack
    from pg_roles r, pg_namespace n
    where r.rolname = 'catalog_reader' and n.nspname = 'catalog' and pg_has_role(r.oid, 'USAGE')`;
  return row?.lack === true;
}

/** Returns the error to report if a name is missing; null if the names are the user's. */
async function missingOf(url: string, cause: unknown, ofUser: boolean): Promise<Error | null> {
  if (isTableMissing(cause) && !(await asking(url, hasTables, true))) return new NoTables(cause);
  const rights = await asking(url, readOwnRights, null);
  const isReader = rights !== null && rights.owner !== null && !rights.owns;
  if (isReader) return ofUser ? null : new Unclear(cause);
  const occupied = await occupiedOf(url, cause);
  if (occupied !== null) return occupied;
  const { pending, unknown } = await asking(url, migrationState, { pending: 0, unknown: 0 });
  if (unknown > 0) return new LaterVersion(cause);
  if (pending > 0) return new EarlierVersion(cause);
  return ofUser ? null : partsGone(cause);
}

/** Returns what is in the way of a mirror, or left of one; null if nothing is. */
async function occupiedOf(url: string, cause: unknown): Promise<OccupiedError | null> {
  const { occupied } = await asking(url, readOccupied, { occupied: [] });
  const [first, ...others] = occupied.filter(({ kind }) => kind !== 'role-of-another');
  return first === undefined ? null : new OccupiedError([first, ...others], cause);
}

/** The table that a first start creates before everything else. */
const LEDGER = 'catalog_internal.migrations';

/** Returns whether any other table of the mirror exists. Avoids to_regclass, which fails on a schema that is closed. */
async function hasTables(sql: Sql): Promise<boolean> {
  const [{ there }] = await sql<[{ there: boolean }]>`
    select exists (
      select from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname || '.' || c.relname = any (${OWN_TABLES.filter((table) => table !== LEDGER)}::text[])
    ) as there`;
  return there;
}

/**
 * Reads something on a connection of its own. Returns `otherwise` if that fails, because this is no news beside the
 * error at hand.
 */
async function asking<T, Otherwise>(
  url: string,
  read: (sql: Sql) => Promise<T>,
  otherwise: Otherwise,
): Promise<T | Otherwise> {
  const sql = connect(url, { max: 1 });
  try {
    return await read(sql);
  } catch {
    return otherwise;
  } finally {
    await sql.end({ timeout: 1 });
  }
}
