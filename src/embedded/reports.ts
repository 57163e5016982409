import type { EventName, FieldOf } from '../declared/log-events.ts';
import { errorCode } from '../lib/errors.ts';

/**
 * Failures of the embedded Postgres:
 * - `unsupported-platform`: no binaries for this platform are installed, or they do not run on it
 * - `broken-install`: the binaries are incomplete and could not be repaired, or their copy belongs to somebody else
 * - `no-service-user`: started by root, and there is no user that Postgres could run as
 * - `data-dir`: the data directory cannot be used (rights, ownership, unrelated content)
 * - `in-use`: another live process owns the data directory
 * - `incompatible-version`: the cluster was made by another major version of Postgres
 * - `password-missing`: the cluster exists, but the file with its password does not
 * - `init-failed`, `start-failed`: initdb or the server gave up; the message contains their output
 * - `not-stopped`: a server survives every signal
 */
type EmbeddedErrorKind =
  | 'unsupported-platform'
  | 'broken-install'
  | 'no-service-user'
  | 'data-dir'
  | 'in-use'
  | 'incompatible-version'
  | 'password-missing'
  | 'init-failed'
  | 'start-failed'
  | 'not-stopped';

/** A failure of the embedded Postgres; `hint` tells the operator what to do about it. */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';
  readonly kind: EmbeddedErrorKind;
  readonly hint: string;

  constructor(kind: EmbeddedErrorKind, message: string, hint: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.hint = hint;
  }
}

/** Returns the result of `promise`, or undefined if it fails with one of the given system codes. */
export async function unless<T>(codes: readonly string[], promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (codes.includes(errorCode(error) ?? '')) return undefined;
    throw error;
  }
}

/** Receives what happens to the embedded Postgres: an event of the log, with its members. */
export type EmbeddedLog = <E extends Extract<EventName, `embedded.${string}`>>(
  event: E,
  detail: { readonly [F in FieldOf<E>]: unknown },
) => void;
