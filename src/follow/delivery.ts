import { formatAge } from '../lib/duration.ts';
import type { Batch, Limits } from './batch.ts';

/** Result of sending a batch once. `said` is a few words of the receiver, or why there is no answer. */
export interface Result {
  /** Delivered; failed and worth a retry; refused, which a few more tries will not change; no longer wanted. */
  readonly outcome: 'delivered' | 'failed' | 'refused' | 'unwanted';
  readonly status: number | null;
  readonly said: string | null;
  /** How long the receiver asks to be left alone. */
  readonly retryAfterMs: number | null;
  /** It failed, but would count as refused if the receiver's clock were right. */
  readonly isByClock?: boolean;
}

/**
 * Statuses from 400 to 499 that concern the moment or the endpoint, not what was sent: a secret that was changed
 * too soon, a route that is being deployed. As refusals they would hit every batch, and the order would be lost for
 * nothing.
 */
const PASSING = new Set([401, 403, 404, 405, 407, 408, 425, 429]);
const TOO_LARGE = 413;

/**
 * Decides what a status says about a batch. A redirect is not followed and may be gone tomorrow, so it counts as
 * failed. A receiver whose clock differs (`aheadMs`) refuses every signature, whatever the batch. Pure.
 */
export function judgeStatus(status: number, aheadMs: number | null): Result['outcome'] {
  if (status >= 200 && status < 300) return 'delivered';
  if (status === 410) return 'unwanted';
  const isRefused = status >= 400 && status < 500 && !PASSING.has(status);
  return isRefused && (aheadMs === null || status === TOO_LARGE) ? 'refused' : 'failed';
}

/** Receivers refuse a message five minutes off their time, of which a minute may have passed on the way. */
const CLOCK_OFF_MS = 240_000;

/**
 * Returns how far the receiver's clock is ahead of this host's, below 0 if it is behind, by Date and Age of its
 * answer, which was made between `sentAt` and `now`. Null if unknown, or not more than signatures allow. Pure.
 */
export function receiverAheadMs(
  date: string | undefined,
  age: string | undefined,
  sentAt: number,
  now: number,
): number | null {
  const sinceMs = /^\d{1,9}$/.test(age?.trim() ?? '') ? Number(age) * 1000 : 0;
  const told = Date.parse(date ?? '') + sinceMs;
  if (told < sentAt - CLOCK_OFF_MS) return told - sentAt;
  return told > now + CLOCK_OFF_MS ? told - now : null;
}

/** Further off than any receiver allows that checks the time. */
const ANY_TIME_MS = 600_000;

/** Returns whether a receiver that accepts a batch although its clock is this far ahead accepts any time. Pure. */
export const takesAnyTime = (aheadMs: number | null): boolean => Math.abs(aheadMs ?? 0) > ANY_TIME_MS;

/** After this long, somebody or something should have corrected a clock that differs. */
const CLOCK_DIFFERS_MS = 86_400_000;

/** Reclassifies the result of an attempt, if a batch first failed because of a clock `sinceMs` ago. Pure. */
export const judgeByClock = (result: Result, sinceMs: number): Result =>
  result.isByClock === true && sinceMs >= CLOCK_DIFFERS_MS ? { ...result, outcome: 'refused' } : result;

/** Describes such a clock to people, followed by the receiver's own words. Pure. */
export function clockSays(aheadMs: number, said: string | null): string {
  const off = formatAge(Math.abs(aheadMs) / 1000);
  const clock = `this host's clock is ${off} ${aheadMs > 0 ? 'behind' : 'ahead of'} the receiver's`;
  return said === null ? clock : `${clock}; ${said}`;
}

/** Returns whether a receiver may accept a part of what it refused as a whole. Pure. */
export const isTooLarge = ({ status, outcome }: Result): boolean =>
  outcome === 'refused' && status === TOO_LARGE;

const FIRST_MS = 1000;
/** A receiver that recovers after a day waits at most this long for what it missed. */
const LONGEST_MS = 60_000;
const LONGEST_ASKED_MS = 3_600_000;

/**
 * Returns the milliseconds until the next attempt. They double from a second to a minute; a random part between
 * half and all of that is used, so that followers that failed together do not return together. Never less than the
 * receiver asked for, up to an hour. `random` is from 0 to 1. Pure.
 */
export function backOffMs(failures: number, retryAfterMs: number | null, random: number): number {
  const most = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return Math.max(Math.round(most * (0.5 + random / 2)), Math.min(retryAfterMs ?? 0, LONGEST_ASKED_MS));
}

/**
 * Parses Retry-After into milliseconds: seconds, or a date, which is compared with the answer's own Date because
 * clocks differ. Null if unreadable. Pure.
 */
export function retryAfterMs(
  header: string | undefined,
  date: string | undefined,
  now: number,
): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000;
  if (!/^[A-Za-z]{3,9}, .+ GMT$/.test(header.trim())) return null;
  const [until, from] = [Date.parse(header), Date.parse(date ?? '')];
  if (Number.isNaN(until)) return null;
  return Math.max(0, until - (Number.isNaN(from) ? now : from));
}

/** Returns the beginning of an answer for people: printable, one line, at most 200 characters; null if empty. Pure. */
export function excerptOf(body: string): string | null {
  const text = body
    .replaceAll(/[\p{C}\p{Z}\s]+/gu, ' ')
    .trim()
    .slice(0, 200);
  return text === '' ? null : text;
}

/** A destination of changes. */
export interface Sink {
  /** How large a batch may be. */
  readonly limits: Limits;
  /** Delivers one batch and returns the result; `signal` ends the attempt. Never throws because of the receiver. */
  deliver(batch: Batch, signal: AbortSignal): Promise<Result>;
  /** What is sent for a batch, if that can be stored and sent again. */
  letterOf?(batch: Batch): { readonly messageId: string; readonly body: string };
  close(): Promise<void>;
}
