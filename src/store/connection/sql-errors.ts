import { escapeIdentifier } from 'pg';
import type postgres from 'postgres';

/* What an error of Postgres, or of a driver on the way to it, means. Recognised by codes, never by messages. */

/** Returns a text that a database error carries (also if a library has wrapped it), or null. */
export function carried(error: unknown, member: 'code' | 'routine'): string | null {
  for (let e = error; e instanceof Error; e = e.cause) {
    const text = (e as { readonly code?: unknown; readonly routine?: unknown })[member];
    if (typeof text === 'string') return text;
  }
  return null;
}

/** Returns the SQLSTATE of a database error (also if a library has wrapped it), or null. */
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

/** Whether the connection is closed after this error: the server says FATAL, or the driver has seen its end. */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const fatal = 'severity' in error && (error.severity === 'FATAL' || error.severity === 'PANIC');
  return fatal || LOST.has(sqlState(error) ?? '');
}

/** Why Postgres takes no writes although it answers: the statement is not at fault, and waiting helps. */
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

/** SQLSTATE: a limit of Postgres is exceeded, whether of a row or of the server. */
const LIMIT_EXCEEDED = '54000';
/** Functions of Postgres, the same from 14 to 18, that report limits which do not depend on the rows. */
const LIMITS_OF_SERVER: Readonly<Record<string, StoreFailure>> = {
  // At COMMIT: a listening session has left a transaction open, and every notification since then is kept for it.
  PreCommit_Notify: 'notify-queue-full',
  // No vacuum has completed for some two billion transactions.
  GetNewTransactionId: 'out-of-transaction-ids',
  GetNewMultiXactId: 'out-of-transaction-ids',
};

/** Returns the failure of the store that an error reports, or null. */
export function storeFailure(error: unknown): StoreFailure | null {
  const state = sqlState(error) ?? '';
  const failure =
    state === LIMIT_EXCEEDED ? LIMITS_OF_SERVER[carried(error, 'routine') ?? ''] : FAILURES[state];
  return failure ?? null;
}

/** SQLSTATE insufficient_privilege, which a row-level security policy also reports when it rejects a row. */
export const isPrivilegeLacking = (state: string | null): boolean => state === '42501';

const CONFLICTS = new Set(['40001', '40P01']);

/** Whether the whole transaction may simply be run again: a serialization failure, or the victim of a deadlock. */
export const isConflict = (error: unknown): boolean => CONFLICTS.has(sqlState(error) ?? '');

export const LOCK_NOT_AVAILABLE = '55P03';

/** The mirror's own SQLSTATE: changes after a position are no longer kept, or the position is of another history. */
export const POSITION_LOST = 'CM001';

/** SQLSTATE object_not_in_prerequisite_state: it has many causes, which the function of Postgres distinguishes. */
export const WRONG_STATE = '55000';

/**
 * Whether a publication keeps the rows of a table from being changed: nothing identifies a row, or its column list or
 * row filter needs more columns than identify it. One function of Postgres, the same from 14 to 18, reports this with
 * several SQLSTATEs.
 */
export const isUnchangeable = (error: unknown): boolean =>
  carried(error, 'routine') === 'CheckCmdReplicaIdentity';

/** Whether Postgres itself has answered a statement with this error, and the connection is alive. */
export const isAnswer = (error: unknown): boolean =>
  error instanceof Error && 'severity' in error && error.severity === 'ERROR';

/**
 * SQLSTATEs that say nothing about rows: connections, transactions, victims of a conflict, a lock, resources that the
 * server lacks, an operator's orders, what the system cannot do, corrupted data.
 */
const NOT_OF_ROWS = /^(?:08|25|40|53|57|58)|^(?:55P03|XX001|XX002)$/;
/**
 * Functions of Postgres, from 14 to 18, that read and write its files. Their SQLSTATE follows the system's error, and
 * for some errors, such as a quota, is an internal one.
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

/** Keys that the feed numbers by itself. A number that is taken is no SKU's fault: the sequence is behind. */
const NUMBERED = /^(?:price_history(?:_\d+)?|product_history|change_batches)_pkey$/;

const isNumberTaken = (error: unknown): boolean =>
  sqlState(error) === '23505' &&
  NUMBERED.test((error as Partial<postgres.PostgresError>).constraint_name ?? '');

/**
 * Whether the history has no chunk for its next rows, or cannot create it because somebody's default partition holds
 * rows of it. Postgres reports partitions like check constraints, but without a constraint name.
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
 * Returns why these rows cannot be stored, however often it is tried: the SQLSTATE and what rejects them; null for any
 * other error. Any SQLSTATE is possible, because others' triggers fail in every way. Contains no value of the rows.
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

/**
 * Whether another session has created the same thing at the same moment: `if not exists` sees only what is committed.
 */
export function isMadeMeanwhile(error: unknown): boolean {
  return MADE_MEANWHILE.has(sqlState(error) ?? '');
}

/** SQLSTATEs that waiting does not change: the role or its password is wrong. */
const REFUSED = new Set(['28000', '28P01']);

/**
 * Whether the server's pg_hba.conf has no entry for such a connection, whatever its password. Recognised by the
 * function of Postgres, the same from 14 to 18, that checks the entries.
 */
export const isNotLetIn = (error: unknown): boolean =>
  sqlState(error) === '28000' && carried(error, 'routine') === 'ClientAuthentication';

/** Whether Postgres has rejected the role or its password. */
export const isLoginRejected = (error: unknown): boolean =>
  REFUSED.has(sqlState(error) ?? '') && !isNotLetIn(error);

/** The message for `isNotLetIn`. `isClear`: the connection does not use TLS, but could. */
export const notLetIn = (isClear: boolean): { readonly what: string; readonly hint: string } => ({
  what: "the server's pg_hba.conf lets no such connection in",
  hint: isClear
    ? 'it is not encrypted, which managed servers demand: add sslmode=verify-full or sslmode=require to DATABASE_URL; ' +
      "where that does not help, ask the server's administrator for an entry for this host, role and database"
    : "ask the server's administrator for an entry for this host, role and database",
});

/** The message for a TLS connection that is closed before the handshake, as by a server without TLS. */
export const NO_TLS: { readonly what: string; readonly hint: string } = {
  what: 'Postgres, or what answers in its place, begins no TLS',
  hint: 'turn TLS on there, or take sslmode out of DATABASE_URL where nobody can read what passes on the way',
};

/** The server's certificate is not trusted, or not for this host; waiting does not change that either. */
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

/** SQLSTATE: Postgres answers, but has no database of this name. */
const NO_DATABASE = '3D000';
export const isDatabaseMissing = (error: unknown): boolean => sqlState(error) === NO_DATABASE;

const NOT_THERE = new Set(['42P01', '3F000']);
/** SQLSTATEs: a table, or the schema of an object, does not exist. */
export const isTableMissing = (error: unknown): boolean => NOT_THERE.has(sqlState(error) ?? '');

const UNKNOWN_NAMES = new Set([...NOT_THERE, '42703', '42883']);
/** The same, or a column or function is missing: the tables may be those of another version. */
export const isNameUnknown = (error: unknown): boolean => UNKNOWN_NAMES.has(sqlState(error) ?? '');

/** How a connection reaches Postgres. */
export interface Way {
  readonly role: string;
  readonly database: string;
  /** Whether it does not use TLS, but could. */
  readonly isClear: boolean;
}

/** The function of Postgres, the same from 14 to 18, that checks whether a role may connect to a database. */
const CHECKS_CONNECT = 'CheckMyDatabase';

/**
 * Returns why an existing database refuses this login, or null: CONNECT was revoked, or the database takes no
 * connections. Judged only if the session ended, because statements fail with the same SQLSTATEs.
 */
export function closedDatabase(
  error: unknown,
  { role, database }: Way,
): { readonly what: string; readonly hint: string } | null {
  if (!isConnectionLost(error)) return null;
  switch (sqlState(error)) {
    case '42501':
      // Other functions of Postgres reject startup settings, not the database; poolers name no function.
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

/** Returns why waiting does not help after this connection error, and what does; null if waiting may help. */
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

/** Postgres has answered with a refusal that waiting does not change. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused';
  readonly kind = 'database-refused';
  readonly hint: string;

  constructor({ what, hint }: { readonly what: string; readonly hint: string }, cause: unknown) {
    super(what, { cause });
    this.hint = hint;
  }
}

/** Postgres has not answered, or accepted no session, within the time limit. */
export class DatabaseAway extends Error {
  override readonly name = 'DatabaseAway';
  readonly kind = 'database-away';
  readonly hint: string;

  /** `known`: the known cause, and what to do. */
  constructor(cause: unknown, known: { readonly what: string; readonly hint: string } | null = null) {
    super(known?.what ?? 'Postgres does not answer', { cause });
    this.hint = known?.hint ?? 'check that it runs and that DATABASE_URL reaches it';
  }
}
