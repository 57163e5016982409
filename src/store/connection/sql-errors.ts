import { escapeIdentifier } from 'pg';
import type postgres from 'postgres';

/* What an error of Postgres, or of a driver on the way to it, means. By codes, and never by messages. */

/** A text that a database error carries (also where a library has wrapped it), or null. */
export function carried(error: unknown, member: 'code' | 'routine'): string | null {
  for (let e = error; e instanceof Error; e = e.cause) {
    const text = (e as { readonly code?: unknown; readonly routine?: unknown })[member];
    if (typeof text === 'string') return text;
  }
  return null;
}

/** SQLSTATE of a database error (also where a library has wrapped it), or null. */
export const sqlState = (error: unknown): string | null => carried(error, 'code');

const LOST = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ANSWER_TIMEOUT',
]);

/** Errors after which the connection is closed: the server says FATAL, or the driver has seen the end of it. */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const fatal = 'severity' in error && (error.severity === 'FATAL' || error.severity === 'PANIC');
  return fatal || LOST.has(sqlState(error) ?? '');
}

/** Why Postgres takes no writes although it answers: nothing is wrong with the statement, and waiting helps. */
export const STORE_FAILURES = [
  'disk-full',
  'out-of-memory',
  'too-many-connections',
  'read-only',
  'notify-queue-full',
  'out-of-transaction-ids',
] as const;
export type StoreFailure = (typeof STORE_FAILURES)[number];

const FAILURES: Readonly<Record<string, StoreFailure>> = {
  '53100': 'disk-full',
  '53200': 'out-of-memory',
  '53300': 'too-many-connections',
  '25006': 'read-only',
};

/** SQLSTATE: a limit of Postgres is exceeded, be it of a row or of the server. */
const LIMIT_EXCEEDED = '54000';
/**
 * Functions of Postgres, the same from 14 to 18, that report limits which do not depend on the rows: any rows would
 * meet them.
 */
const LIMITS_OF_SERVER: Readonly<Record<string, StoreFailure>> = {
  // At COMMIT: a session that listens has left a transaction open, and every notification since then is kept for it.
  PreCommit_Notify: 'notify-queue-full',
  // No vacuum has got through for some two billion transactions.
  GetNewTransactionId: 'out-of-transaction-ids',
  GetNewMultiXactId: 'out-of-transaction-ids',
};

/** The failure of the store that an error reports, or null. */
export function storeFailure(error: unknown): StoreFailure | null {
  const state = sqlState(error) ?? '';
  const failure =
    state === LIMIT_EXCEEDED ? LIMITS_OF_SERVER[carried(error, 'routine') ?? ''] : FAILURES[state];
  return failure ?? null;
}

/** SQLSTATE insufficient_privilege, also where a policy for rows takes none of them. */
export const isPrivilegeLacking = (state: string | null): boolean => state === '42501';

const CONFLICTS = new Set(['40001', '40P01']);

/** Whether the whole transaction may simply be run again: a serialization failure, or it was a deadlock's victim. */
export const isConflict = (error: unknown): boolean => CONFLICTS.has(sqlState(error) ?? '');

/** SQLSTATE lock_not_available. */
export const LOCK_NOT_AVAILABLE = '55P03';

/** The mirror's own: the changes after a position are no longer kept, or the position is of another history. */
export const POSITION_LOST = 'CM001';

/** Object_not_in_prerequisite_state: many things, of which the function of Postgres tells. */
export const WRONG_STATE = '55000';

/**
 * Whether a publication keeps the rows of a table from being changed: nothing identifies a row, or not by what its list
 * of columns or its row filter needs. One function of Postgres, the same from 14 to 18, with several SQLSTATEs.
 */
export const isUnchangeable = (error: unknown): boolean =>
  carried(error, 'routine') === 'CheckCmdReplicaIdentity';

/** Whether Postgres itself has answered a statement so, and the connection lives. */
export const isAnswer = (error: unknown): boolean =>
  error instanceof Error && 'severity' in error && error.severity === 'ERROR';

/**
 * SQLSTATEs that say nothing of rows: connections, transactions, victims of a conflict, a lock, resources that the
 * server lacks, an operator's orders, what the system cannot do, corrupted data.
 */
const NOT_OF_ROWS = /^(?:08|25|40|53|57|58)|^(?:55P03|XX001|XX002)$/;
/**
 * Functions of Postgres, from 14 to 18, that read and write its files. What they fail of has a SQLSTATE by the system's
 * error, and for several, such as a quota, an internal one.
 */
const FILES_OF_SERVER = new Set([
  '_mdfd_getseg',
  '_mdfd_openseg',
  '_mdnblocks',
  'mdcreate',
  'mdextend',
  'mdopenfork',
  'mdread',
  'mdreadv',
  'md_readv_report',
  'mdtruncate',
  'mdwrite',
  'mdwritev',
  'mdzeroextend',
  'BufFileDumpBuffer',
  'BufFileLoadBuffer',
  'OpenTemporaryFileInTablespace',
  'PathNameCreateTemporaryFile',
  'SlruReportIOError',
]);

/** Keys that the feed numbers by itself. No SKU has to do with it where a number is there: its sequence is behind. */
const NUMBERED = /^(?:price_history(?:_\d+)?|product_history|change_batches)_pkey$/;

const isNumberTaken = (error: unknown): boolean =>
  sqlState(error) === '23505' &&
  NUMBERED.test((error as Partial<postgres.PostgresError>).constraint_name ?? '');

/**
 * Whether the history has no chunk for its next rows, or cannot make it because somebody's default partition has rows
 * of it. Postgres reports partitions like check constraints, but without a constraint name.
 */
function isRoomMissing(error: unknown): boolean {
  const { schema_name = '', table_name = '', constraint_name } = error as Partial<postgres.PostgresError>;
  const isOurs = schema_name === 'catalog' || schema_name === 'catalog_internal';
  return (
    sqlState(error) === '23514' &&
    constraint_name === undefined &&
    isOurs &&
    table_name.startsWith('price_history')
  );
}

/**
 * Why these rows are not stored, however often it is tried: the SQLSTATE and what rejects them; null if the error is of
 * another kind. Any SQLSTATE is possible, because somebody's triggers fail in every way. Contains no value of the rows.
 */
export function rejection(error: unknown): { readonly state: string; readonly by: string } | null {
  const state = sqlState(error);
  if (!isAnswer(error) || state === null || NOT_OF_ROWS.test(state) || storeFailure(error) !== null)
    return null;
  if (isNumberTaken(error) || isRoomMissing(error)) return null;
  if (FILES_OF_SERVER.has(carried(error, 'routine') ?? '')) return null;
  const { schema_name, table_name, constraint_name } = error as Partial<postgres.PostgresError>;
  const table = table_name === undefined ? null : `${schema_name}.${table_name}`;
  const by = [constraint_name, table].filter((name) => name !== undefined && name !== null).join(' of ');
  return { state, by: by === '' ? unnamed(error, state) : by };
}

function unnamed(error: unknown, state: string): string {
  if (isUnchangeable(error)) return 'a publication, which `catalog-mirror doctor` names';
  return isPrivilegeLacking(state) ? 'a privilege that is lacking' : 'a trigger or a limit';
}

const MADE_MEANWHILE = new Set(['23505', '42710', '42P06', '42P07']);

/** Another session has created the same thing at the same moment: `if not exists` sees only what is committed. */
export function isMadeMeanwhile(error: unknown): boolean {
  return MADE_MEANWHILE.has(sqlState(error) ?? '');
}

/** SQLSTATEs that no waiting will change: the role or its password is wrong. */
const REFUSED = new Set(['28000', '28P01']);

/**
 * Whether no entry of the server's pg_hba.conf is for such a connection, whatever its password: the function of
 * Postgres, the same from 14 to 18, that goes by its entries.
 */
export const isNotLetIn = (error: unknown): boolean =>
  sqlState(error) === '28000' && carried(error, 'routine') === 'ClientAuthentication';

/** Whether Postgres has rejected the role or its password. */
export const isLoginRejected = (error: unknown): boolean =>
  REFUSED.has(sqlState(error) ?? '') && !isNotLetIn(error);

/** What is said of `isNotLetIn`. `isClear`: the connection has no TLS, and could have. */
export const notLetIn = (isClear: boolean): { readonly what: string; readonly hint: string } => ({
  what: "the server's pg_hba.conf lets no such connection in",
  hint: isClear
    ? 'it is not encrypted, which managed servers demand: add sslmode=verify-full or sslmode=require to DATABASE_URL; ' +
      "where that does not help, ask the server's administrator for an entry for this host, role and database"
    : "ask the server's administrator for an entry for this host, role and database",
});

/** What is said where a connection by TLS is closed before that begins, as by a server that has none. */
export const NO_TLS: { readonly what: string; readonly hint: string } = {
  what: 'Postgres, or what answers in its place, begins no TLS',
  hint: 'turn TLS on there, or take sslmode out of DATABASE_URL where nobody can read what passes on the way',
};

/** The server's certificate is not one to be trusted, or not for this host: no waiting changes that, either. */
const UNTRUSTED = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
  'CERT_SIGNATURE_FAILURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

export const isUntrusted = (error: unknown): boolean => UNTRUSTED.has(sqlState(error) ?? '');

/** SQLSTATE: Postgres answers, and has no database of this name. */
const NO_DATABASE = '3D000';
export const isDatabaseMissing = (error: unknown): boolean => sqlState(error) === NO_DATABASE;

const NOT_THERE = new Set(['42P01', '3F000']);
/** SQLSTATEs: a table, or the schema of something, is not there. */
export const isTableMissing = (error: unknown): boolean => NOT_THERE.has(sqlState(error) ?? '');

const UNKNOWN_NAMES = new Set([...NOT_THERE, '42703', '42883']);
/** The same, or a column or a function is not there: tables may be those of another version. */
export const isNameUnknown = (error: unknown): boolean => UNKNOWN_NAMES.has(sqlState(error) ?? '');

/** Which way a connection goes. */
export interface Way {
  readonly role: string;
  readonly database: string;
  /** It has no TLS, and could have. */
  readonly isClear: boolean;
}

/** The function of Postgres, the same from 14 to 18, that says whether a role may connect to a database. */
const CHECKS_CONNECT = 'CheckMyDatabase';

/**
 * Why an existing database refuses this login, or null: CONNECT was revoked, or the database takes no connections.
 * Judged only if the session ended, because statements fail with the same SQLSTATEs.
 */
export function closedDatabase(
  error: unknown,
  { role, database }: Way,
): { readonly what: string; readonly hint: string } | null {
  if (!isConnectionLost(error)) return null;
  switch (sqlState(error)) {
    case '42501':
      // Other functions of Postgres refuse what a session starts with, and not the database; poolers name none.
      if ((carried(error, 'routine') ?? CHECKS_CONNECT) !== CHECKS_CONNECT) return null;
      return {
        what: 'Postgres does not let this role connect to the database',
        hint: `GRANT CONNECT ON DATABASE ${escapeIdentifier(database)} TO ${escapeIdentifier(role)}`,
      };
    case WRONG_STATE:
      return {
        what: 'the database takes no connections',
        hint: `once whoever has closed it is done: ALTER DATABASE ${escapeIdentifier(database)} ALLOW_CONNECTIONS true`,
      };
    default:
      return null;
  }
}

/** Why no waiting helps where this error ends a connection, and what does; null where waiting may. */
export function permanentConnectError(
  error: unknown,
  way: Way,
): { readonly what: string; readonly hint: string } | null {
  if (isNotLetIn(error)) return notLetIn(way.isClear);
  if (isLoginRejected(error)) {
    const isKnown = sqlState(error) === '28P01';
    const may = isKnown
      ? ''
      : `, and that the role may log in: ALTER ROLE ${escapeIdentifier(way.role)} LOGIN`;
    return { what: 'Postgres rejects the login', hint: `check user and password in DATABASE_URL${may}` };
  }
  if (isDatabaseMissing(error))
    return {
      what: 'Postgres answers, and does not have this database',
      hint: 'correct its name in DATABASE_URL, or create it with CREATE DATABASE',
    };
  if (isUntrusted(error))
    return {
      what: 'the certificate of Postgres is not trusted',
      hint: 'check sslmode and sslrootcert in DATABASE_URL',
    };
  return closedDatabase(error, way);
}

/** Postgres was there and has said no, and will say no again. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused';
  readonly kind = 'database-refused';
  readonly hint: string;

  constructor({ what, hint }: { readonly what: string; readonly hint: string }, cause: unknown) {
    super(what, { cause });
    this.hint = hint;
  }
}

/** Postgres has not answered, or let nobody in, for as long as there was patience. */
export class DatabaseAway extends Error {
  override readonly name = 'DatabaseAway';
  readonly kind = 'database-away';
  readonly hint: string;

  /** `known`: what it says is in the way, and what to do. */
  constructor(cause: unknown, known: { readonly what: string; readonly hint: string } | null = null) {
    super(known?.what ?? 'Postgres does not answer', { cause });
    this.hint = known?.hint ?? 'check that it runs and that DATABASE_URL reaches it';
  }
}
