import {
  isConflict,
  LOCK_NOT_AVAILABLE,
  POSITION_LOST,
  sqlState,
  storeFailure,
} from '../store/connection/sql-errors.ts';

/** What can be wrong besides the usual failures of Postgres and the network. */
export type FollowErrorKind =
  /** The changes after the position are no longer stored, or it is of another history: make the copy again. */
  | 'position-lost'
  /** The database has no mirror, or one of a version without catalog.changes_snapshot(). */
  | 'no-mirror'
  /** The role may not read the feed. */
  | 'not-allowed'
  /** An option or a stored position is invalid. */
  | 'invalid';

/** Why following does not continue. `kind` tells what is wrong, `hint` what to do. */
export class FollowError extends Error {
  override readonly name = 'FollowError';
  readonly kind: FollowErrorKind;
  readonly hint: string;

  constructor(kind: FollowErrorKind, message: string, hint: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.hint = hint;
  }
}

/** A lock_timeout or statement_timeout of this session ended its wait for the position, or its reading. */
export class WaitEnded extends Error {
  override readonly name = 'WaitEnded';
}

/** SQLSTATEs of such timeouts, which a database or a role may set. */
const WAIT_ENDED = new Set([LOCK_NOT_AVAILABLE, '57014']);

export const isWaitEnded = (error: unknown): boolean => WAIT_ENDED.has(sqlState(error) ?? '');

/** Converts an error of reading the feed by its SQLSTATE; returns any other unchanged. */
export function readingError(error: unknown, position: string): unknown {
  switch (sqlState(error)) {
    case POSITION_LOST:
      return new FollowError(
        'position-lost',
        `the changes after position ${position} cannot be read`,
        "empty your copy, and follow from 'start'; followInto does so where it is given onLost, or once you have " +
          'emptied the copy and deleted the row of its position',
        error,
      );
    // The schema, or the function in it, does not exist.
    case '3F000':
    case '42883':
      return new FollowError(
        'no-mirror',
        'this database has no catalog.changes() or catalog.changes_snapshot()',
        'connect to the database that catalog-mirror writes to; its daemon of this version has to have started once',
        error,
      );
    case '42501':
      return new FollowError(
        'not-allowed',
        'this role may not read the feed',
        'GRANT catalog_reader TO it',
        error,
      );
    default:
      return isWaitEnded(error)
        ? new WaitEnded('a timeout of this session has ended reading the feed', { cause: error })
        : error;
  }
}

const PASSING = new Set([
  // The network, and the driver when a connection ends. CONNECTION_ENDED is not among them: it means that the
  // client's owner has ended it.
  'ECONNREFUSED',
  // From a Unix socket, while its server restarts.
  'ENOENT',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ANSWER_TIMEOUT',
  // The server stops or starts.
  '57P01',
  '57P02',
  '57P03',
  // The session was idle for longer than idle_session_timeout.
  '57P05',
]);

/** Returns whether a retry may succeed with nothing changed. A server may be full, or accept no writes. */
export const isPassing = (error: unknown): boolean => {
  if (error instanceof WaitEnded || isConflict(error) || storeFailure(error) !== null) return true;
  const code = sqlState(error) ?? '';
  return PASSING.has(code) || /^08[0-9A-Z]{3}$/.test(code);
};
