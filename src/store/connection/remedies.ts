import {
  carried,
  isAnswer,
  isNameUnknown,
  isUnchangeable,
  LOCK_NOT_AVAILABLE,
  sqlState,
  STORE_FAILURES,
  type StoreFailure,
  storeFailure,
} from './sql-errors.ts';

/*
 * What prevents Postgres from doing what the mirror asks although it answers, and what its operator can do about that.
 * Recognised by SQLSTATEs and functions of Postgres, never by messages.
 */

/** What an operator has set or done that makes statements of the mirror fail. Only a lock may pass by itself. */
export const OBJECTIONS = ['locked', 'replica-identity', 'temp-file-limit', 'refused-by-trigger'] as const;
export type Objection = (typeof OBJECTIONS)[number];

const OBJECTION_OF: Readonly<Record<string, Objection>> = {
  [LOCK_NOT_AVAILABLE]: 'locked',
  // configuration_limit_exceeded: the only such limit that statements of the mirror reach.
  '53400': 'temp-file-limit',
  // raise_exception: the mirror's own functions raise other SQLSTATEs.
  P0001: 'refused-by-trigger',
};

/** Returns the objection that an error reports, or null. */
function objectionOf(error: unknown): Objection | null {
  if (isUnchangeable(error)) return 'replica-identity';
  return OBJECTION_OF[sqlState(error) ?? ''] ?? null;
}

/** What prevents the mirror's work, and what to do about it. */
export interface Remedy {
  readonly what: string;
  readonly hint: string;
}

const CONNECTIONS =
  'raise the limit that is reached, or close other connections: that of the role (ALTER ROLE … CONNECTION LIMIT), ' +
  "of the database (ALTER DATABASE … CONNECTION LIMIT), or the server's max_connections";

export const REMEDIES: Readonly<Record<StoreFailure | Objection, Remedy>> = {
  'disk-full': { what: "the disk of Postgres's server is full", hint: 'make room on its disk' },
  'out-of-memory': { what: 'Postgres has no memory left', hint: 'give its server more memory' },
  'too-many-connections': { what: 'Postgres has no connection left', hint: CONNECTIONS },
  'read-only': {
    what: 'this database, role or server takes no writes (read-only)',
    hint:
      'point DATABASE_URL at the primary (`SELECT pg_is_in_recovery()` is true on a standby); where it leads there, ' +
      '`catalog-mirror doctor` has the statement that resets default_transaction_read_only',
  },
  'notify-queue-full': {
    what: 'the queue of notifications is full',
    hint: 'end the session that has run LISTEN and left a transaction open; pg_stat_activity shows it as idle in transaction',
  },
  'out-of-transaction-ids': {
    what: 'Postgres gives out no transaction ids',
    hint: 'end old transactions, drop unused replication slots, and VACUUM the database that the log of its server names',
  },
  locked: {
    what: 'somebody holds a lock that the mirror needs',
    hint: 'end that transaction; `store.locked` in the log, and `catalog-mirror status` while it lasts, name who holds it',
  },
  'replica-identity': {
    what: "a publication keeps rows of a table of the mirror from being changed, as the table's replica identity does not suffice for it",
    hint:
      '`catalog-mirror doctor` names the table and the publication, and says what to do: the table needs its REPLICA IDENTITY, ' +
      'a list of columns has to have all of it, and a row filter only that',
  },
  'temp-file-limit': {
    what: 'temp_file_limit of Postgres is too low for the mirror',
    hint: "raise it for the mirror's role: ALTER ROLE … SET temp_file_limit, as a superuser; SHOW temp_file_limit says what it is",
  },
  'refused-by-trigger': {
    what: "a trigger that is not the mirror's refuses what it does",
    hint:
      "have its owner let the mirror's role pass: a trigger on a table, or an event trigger, which also runs when history or " +
      'temporary tables are made; `catalog-mirror doctor` names those that are there',
  },
};

/** Which limit is reached, by the function of Postgres that reports it. */
const LIMIT_REACHED: Readonly<Record<string, Remedy>> = {
  InitializeSessionUserId: {
    what: 'the role in DATABASE_URL has no connection left',
    hint: 'raise its limit (ALTER ROLE … CONNECTION LIMIT, -1 is none), or lower DATABASE_POOL_MAX',
  },
  CheckMyDatabase: {
    what: 'the database in DATABASE_URL has no connection left',
    hint: 'raise its limit (ALTER DATABASE … CONNECTION LIMIT, -1 is none), or lower DATABASE_POOL_MAX',
  },
};

const isKind = (text: string): text is StoreFailure | Objection =>
  ([...STORE_FAILURES, ...OBJECTIONS] as string[]).includes(text);

/** Returns the remedy for a kind, as tasks and pauses store it; null if the text is not a kind. */
export const remedyOfKind = (kind: string | null): Remedy | null =>
  kind !== null && isKind(kind) ? REMEDIES[kind] : null;

/** Returns the cause of an error of Postgres as a kind; null if unknown. */
export const obstacleOf = (error: unknown): StoreFailure | Objection | null =>
  storeFailure(error) ?? objectionOf(error);

/** Returns the cause and the remedy of an error of Postgres, wrapped or not; null if unknown. */
export function remedyOf(error: unknown): Remedy | null {
  const kind = obstacleOf(error);
  if (kind === null) return null;
  const limit = kind === 'too-many-connections' ? LIMIT_REACHED[carried(error, 'routine') ?? ''] : undefined;
  return limit ?? REMEDIES[kind];
}

/** Returns what to say of an error, and a hint: the mirror's own, else the kind's remedy, else Postgres's HINT. */
export function adviceOn(error: unknown): { readonly what: string | null; readonly hint: string | null } {
  const hint =
    error instanceof Error && 'hint' in error && typeof error.hint === 'string' ? error.hint : null;
  const isPostgres = error instanceof Error && 'severity' in error;
  if (hint !== null && !isPostgres) return { what: null, hint };
  return remedyOf(error) ?? { what: null, hint };
}

/** Returns a hint for an error without a known remedy, by whether Postgres has answered. */
export function otherHint(error: unknown): string {
  if (!isAnswer(error)) return 'check DATABASE_URL, and that the server is running';
  return isNameUnknown(error)
    ? 'somebody has dropped or renamed what it names: put that back, from a backup where there is no other way'
    : 'Postgres answers and refuses: see its message, and its log';
}
