import { escapeIdentifier } from 'pg';
import { Misconfigured } from '../../lib/errors.ts';
import { SESSION } from './session.ts';
import { carried, isConnectionLost, sqlState } from './sql-errors.ts';

/*
 * Checks whether sessions of Postgres last: a pooler in transaction or statement mode gives a client another server
 * process with every transaction, and one that drops the startup settings removes the mirror's. Recognised by how two
 * connections behave, not by names or versions.
 */

/** Sends one statement, without parameters, always on the same connection, or on a new one after a loss. */
export type Ask = (statement: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

export interface Pooling {
  /** How long a session keeps its server process. */
  readonly kept: 'session' | 'transaction' | 'statement';
  /** Settings of the mirror's sessions that did not arrive, with their intended values. */
  readonly dropped: readonly { readonly name: string; readonly value: string }[];
  /** The role that logs in; its settings apply when a session starts. */
  readonly role: string;
  readonly database: string;
}

const WHO =
  "select pg_catalog.concat_ws(' ', pg_catalog.pg_backend_pid(), pg_catalog.pg_postmaster_start_time()) as process";
const ASKED_AGAIN = 4;
const TRANSACTION_TRIES = 3;
/**
 * PgBouncer's only SQLSTATE for unsupported requests, such as a transaction in statement mode. Postgres never uses it
 * for our statements.
 */
export const REJECTED_BY_POOLER = '08P01';

/** Two connections that are open at the same time should have two processes, and each keep its own. */
async function readKept(idle: Ask, busy: Ask): Promise<Pooling['kept']> {
  const own = await processOf(idle);
  const isMoved = async () => {
    for (let n = 0; n < ASKED_AGAIN; n += 1) if ((await processOf(idle)) !== own) return true;
    return false;
  };
  // A pooler picks the process that was used last, or each in turn. The first shows only beside another connection,
  // the second with one connection alone.
  if (await isMoved()) return 'transaction';
  const transaction = async (): Promise<Pooling['kept']> => {
    await busy('begin');
    // If both share one server process, the other connection would now wait for the end of this transaction.
    const isShared = (await processOf(busy)) === own || (await isMoved());
    await busy('rollback');
    return isShared ? 'transaction' : 'session';
  };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction();
    } catch (error) {
      if (sqlState(error) === REJECTED_BY_POOLER) return 'statement';
      if (!isConnectionLost(error)) throw error;
      // A pooler in statement mode closes the connection at each transaction, but answers single statements.
      if (attempt < TRANSACTION_TRIES) continue;
      await processOf(busy);
      return 'statement';
    }
  }
}

const processOf = async (ask: Ask): Promise<string> => String((await ask(WHO))[0]?.['process']);

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Compares each setting's value with the intended one, both as the server spells them. Changes nothing that lasts. */
async function readDropped(ask: Ask): Promise<Pooling['dropped']> {
  const pins = Object.entries(SESSION).map(([name, value]) => `(${literal(name)}, ${literal(value)})`);
  await ask('begin');
  try {
    const rows = await ask(`
      select name, value, pg_catalog.current_setting(name, true) is distinct from pg_catalog.set_config(name, value, true) as dropped
      from (values ${pins.join()}) as pins(name, value)`);
    return rows
      .filter(({ dropped }) => dropped === true)
      .map(({ name, value }) => ({ name: String(name), value: String(value) }));
  } finally {
    await ask('rollback');
  }
}

/** Tests what becomes of sessions with two connections that are both open and used by nobody else. */
export async function readPooling(idle: Ask, busy: Ask): Promise<Pooling> {
  const kept = await readKept(idle, busy);
  const [row] = await idle(
    'select session_user::text as role, pg_catalog.current_database()::text as database',
  );
  return {
    kept,
    dropped: kept === 'session' ? await readDropped(busy) : [],
    role: String(row?.['role']),
    database: String(row?.['database']),
  };
}

const DIRECT = 'set DATABASE_URL to the server itself, or to a pooler in session mode';

/** Returns the problem and its remedy, or null if there is none. Pure. */
export function poolingProblem({ kept, dropped, role, database }: Pooling): {
  readonly kind: PoolerError['kind'];
  readonly what: string;
  readonly hint: string;
} | null {
  if (kept !== 'session')
    return {
      kind: 'pooler',
      what: `DATABASE_URL leads through a pooler in ${kept} mode: sessions of Postgres are not kept`,
      hint: `${DIRECT}; the mirror prepares statements, and knows its daemons, locks and settings by their sessions`,
    };
  if (dropped.length === 0) return null;
  const set = `ALTER ROLE ${escapeIdentifier(role)} IN DATABASE ${escapeIdentifier(database)} SET`;
  const statements = dropped.map(({ name, value }) => `${set} ${name} = ${literal(value)}`);
  return {
    kind: 'pooler-settings',
    what: `something between the mirror and Postgres drops what its sessions start with: ${dropped.map(({ name }) => name).join(', ')}`,
    hint: `set DATABASE_URL to the server itself; or set them for the role and have the pooler reconnect: ${statements.join('; ')}`,
  };
}

/** The mirror does not work over this connection to Postgres. Nothing was changed. */
export class PoolerError extends Misconfigured {
  override readonly name = 'PoolerError';
  readonly kind: 'pooler' | 'pooler-settings' | 'pooler-startup';

  constructor(kind: PoolerError['kind'], what: string, hint: string, cause?: unknown) {
    super(what, hint, cause);
    this.kind = kind;
  }
}

/** Postgres itself rejects a session because a setting in its startup options does not exist. */
export class UnknownSettingError extends Misconfigured {
  override readonly name = 'UnknownSettingError';
  readonly kind = 'unknown-setting';

  constructor(cause: unknown) {
    super(
      'Postgres does not know a setting that a session starts with',
      'take parameters out of DATABASE_URL that are no settings of Postgres; the mirror needs PostgreSQL 14 or newer',
      cause,
    );
  }
}

/** Postgres itself rejects a session because a setting in its startup options has a wrong value, or may not be set. */
export class RefusedSettingError extends Misconfigured {
  override readonly name = 'RefusedSettingError';
  readonly kind = 'refused-setting';

  constructor(cause: unknown) {
    super(
      'Postgres refuses a setting that a session starts with',
      'correct the parameters in DATABASE_URL, or take out what this role may not set',
      cause,
    );
  }
}

/** SQLSTATE: there is no such setting. Poolers use others for what they do not let pass. */
const UNKNOWN_SETTING = '42704';

/** Explains why a connection is refused that succeeds without its startup settings. */
export function startupRefused(cause: unknown): PoolerError | UnknownSettingError | RefusedSettingError {
  if (sqlState(cause) === UNKNOWN_SETTING) return new UnknownSettingError(cause);
  // Only Postgres names the function that refuses.
  if (carried(cause, 'routine') !== null) return new RefusedSettingError(cause);
  return new PoolerError(
    'pooler-startup',
    'DATABASE_URL leads to a pooler that rejects what a session starts with',
    `${DIRECT} that lets the startup parameter pass (PgBouncer: ignore_startup_parameters = options; Amazon RDS Proxy lets none pass)`,
    cause,
  );
}

/** Throws PoolerError if sessions are not kept, or lack the mirror's settings. */
export async function refusePooling(idle: Ask, busy: Ask): Promise<void> {
  const problem = poolingProblem(await readPooling(idle, busy));
  if (problem !== null) throw new PoolerError(problem.kind, problem.what, problem.hint);
}
