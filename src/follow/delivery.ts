import { formatAge } from '../lib/duration.ts';
import type { Batch, Limits } from './batch.ts';

/** What came of sending a batch once. `said`: a few words of the receiver, or why there is no answer. */
export interface Result {
  /** Delivered; to be tried again; refused, and a few more tries will not change that; not wanted any more. */
  readonly outcome: 'delivered' | 'failed' | 'refused' | 'unwanted';
  readonly status: number | null;
  readonly said: string | null;
  /** How long the receiver asks to be left alone. */
  readonly retryAfterMs: number | null;
  /** It failed, and would be refused but for the receiver's clock. */
  readonly isByClock?: boolean;
}

/**
 * Statuses from 400 to 499 that concern the moment or the endpoint, not what was sent: a secret that was changed too
 * soon, a route that is being deployed. As refusals they would hit each batch, and the order would be lost for nothing.
 */
const PASSING = new Set([401, 403, 404, 405, 407, 408, 425, 429]);
const TOO_LARGE = 413;

/**
 * What a status says of a batch. A redirect is not followed, and may be gone tomorrow: it fails. Where the receiver's
 * clock is another one (`aheadMs`), it refuses each signature, whatever the batch. Pure.
 */
export function judgeStatus(status: number, aheadMs: number | null): Result['outcome'] {
  if (status >= 200 && status < 300) return 'delivered';
  if (status === 410) return 'unwanted';
  const isRefused = status >= 400 && status < 500 && !PASSING.has(status);
  return isRefused && (aheadMs === null || status === TOO_LARGE) ? 'refused' : 'failed';
}

/** Receivers refuse what is five minutes from their time; a minute of that may have passed on the way. */
const CLOCK_OFF_MS = 240_000;

/**
 * How far the receiver's clock is ahead of this host's, by Date and Age of its answer, which was made between `sentAt`
 * and `now`; below 0: behind. Null: not told, or by no more than signatures allow. Pure.
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

/** Further from its own time than any receiver allows that goes by it. */
const ANY_TIME_MS = 600_000;

/** Whether a receiver that has taken a batch with its clock so far ahead refuses none for that. Pure. */
export const takesAnyTime = (aheadMs: number | null): boolean => Math.abs(aheadMs ?? 0) > ANY_TIME_MS;

/** So long two clocks may differ before somebody or something has put them right. */
const CLOCK_DIFFERS_MS = 86_400_000;

/** What came of an attempt, where the first of a batch that failed for a clock is `sinceMs` ago. Pure. */
export const judgeByClock = (result: Result, sinceMs: number): Result =>
  result.isByClock === true && sinceMs >= CLOCK_DIFFERS_MS ? { ...result, outcome: 'refused' } : result;

/** What people read of such a clock, before the receiver's own words. Pure. */
export function clockSays(aheadMs: number, said: string | null): string {
  const off = formatAge(Math.abs(aheadMs) / 1000);
  const clock = `this host's clock is ${off} ${aheadMs > 0 ? 'behind' : 'ahead of'} the receiver's`;
  return said === null ? clock : `${clock}; ${said}`;
}

/** Whether a receiver may take a part of what it did not take whole. Pure. */
export const isTooLarge = ({ status, outcome }: Result): boolean =>
  outcome === 'refused' && status === TOO_LARGE;

const FIRST_MS = 1000;
/** A receiver that comes back after a day waits no longer than that for what it missed. */
const LONGEST_MS = 60_000;
const LONGEST_ASKED_MS = 3_600_000;

/**
 * Milliseconds until the next attempt: doubling from a second to a minute, of which between half and all is drawn by
 * chance, so that many that failed together do not come together. Never less than the receiver asked for, up to an
 * hour. `random`: from 0 to 1. Pure.
 */
export function backOffMs(failures: number, retryAfterMs: number | null, random: number): number {
  const most = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return Math.max(Math.round(most * (0.5 + random / 2)), Math.min(retryAfterMs ?? 0, LONGEST_ASKED_MS));
}

/**
 * Retry-After in milliseconds: seconds, or a date, which is compared with the answer's own Date, for clocks differ.
 * Null: nothing that can be read. Pure.
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

/**
 * An answer's first words for people: printable, in one line, at most 200 characters; null where there is nothing.
 * Pure.
 */
export function excerptOf(body: string): string | null {
  const text = body
    .replaceAll(/[\p{C}\p{Z}\s]+/gu, ' ')
    .trim()
    .slice(0, 200);
  return text === '' ? null : text;
}

/** Where changes are delivered to. */
export interface Sink {
  /** How large a batch may be. */
  readonly limits: Limits;
  /** Delivers one, and tells what came of it; `signal` ends the attempt. Never throws for what the receiver does. */
  deliver(batch: Batch, signal: AbortSignal): Promise<Result>;
  /** What is sent for a batch, where that can be kept and sent again. */
  letterOf?(batch: Batch): { readonly messageId: string; readonly body: string };
  close(): Promise<void>;
}
