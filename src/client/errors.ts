import {
  isConflict,
  LOCK_NOT_AVAILABLE,
  POSITION_LOST,
  sqlState,
  storeFailure,
} from '../store/connection/sql-errors.ts';

/** What can be wrong beyond what Postgres and the network may do at any time. */
export type FollowErrorKind =
  /** The changes after the position are no longer kept, or it is of another history: a copy has to be made anew. */
  | 'position-lost'
  /** The database has no mirror, or one of a version without catalog.changes_snapshot(). */
  | 'no-mirror'
  /** The role may not read the feed. */
  | 'not-allowed'
  /** An option, or a stored position, is not what it can be. */
  | 'invalid';

/** Why following does not go on. `kind` says what it is, `hint` what to do. */
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

/** A wait that this session's lock_timeout or statement_timeout has ended: for the position, or while it read. */
export class WaitEnded extends Error {
  override readonly name = 'WaitEnded';
}

/** SQLSTATEs of that; a database or a role may have either timeout. */
const WAIT_ENDED = new Set([LOCK_NOT_AVAILABLE, '57014']);

export const isWaitEnded = (error: unknown): boolean => WAIT_ENDED.has(sqlState(error) ?? '');

/** An error of reading the feed, by its SQLSTATE; any other as it is. */
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
    // There is no such schema, or no such function in it.
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
  // The network, and the driver when a connection ends. CONNECTION_ENDED is not among them: its owner has ended the
  // client.
  'ECONNREFUSED',
  // A Unix socket, while its server restarts.
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
  // Nothing was asked for as long as idle_session_timeout is.
  '57P05',
]);

/** Whether it may work when it is tried again, with nothing changed. A server may have no room, or take no writes. */
export const isPassing = (error: unknown): boolean => {
  if (error instanceof WaitEnded || isConflict(error) || storeFailure(error) !== null) return true;
  const code = sqlState(error) ?? '';
  return PASSING.has(code) || /^08[0-9A-Z]{3}$/.test(code);
};
