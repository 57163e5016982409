import { createHash, createHmac } from 'node:crypto';
import { isIP } from 'node:net';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import type { Clock } from '../lib/clock.ts';
import { failureCode } from '../partner/errors.ts';
import {
  ADDRESS_REFUSED,
  guardedLookup,
  hostOf,
  isReached,
  isLoopbackUrl,
  type Reach,
  refuseResolved,
} from '../partner/origin.ts';
import { proxyFor, type ProxySettings } from '../partner/proxy.ts';
import { tunnelConnector } from '../partner/tunnel.ts';
import { type Batch, type Limits, shownPosition } from './batch.ts';
import {
  clockSays,
  excerptOf,
  judgeStatus,
  receiverAheadMs,
  type Result,
  retryAfterMs,
  type Sink,
  takesAnyTime,
} from './delivery.ts';

export interface WebhookOptions {
  readonly url: URL;
  /** The public name of this stream; part of each message's id. */
  readonly follower: string;
  readonly limits: Limits;
  /** Called before each attempt, so that a rotation takes effect; returns at least one. */
  readonly secrets: () => readonly string[];
  /** Whether the receiver may be on this machine or in a private network. */
  readonly allowPrivate: boolean;
  /** For one attempt, from connecting to the answer. */
  readonly timeoutMs: number;
  readonly userAgent: string;
  readonly proxy?: ProxySettings | undefined;
  readonly clock: Clock;
}

/** Maximum that is read of an answer's body, whose beginning is reported. */
const MAX_BODY_BYTES = 16 * 1024;
const DROPPED_WITHIN_MS = 1000;

/**
 * Returns why a webhook's URL cannot be used, in words for `--webhook`; null if it can. Plain http is allowed only
 * to this machine or a private network. Names are checked again by the addresses that they resolve to. Pure.
 */
export function webhookProblem(url: URL | null, allowPrivate: boolean): string | null {
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    return 'expected an https:// URL';
  if (url.username !== '' || url.password !== '')
    return 'expected a URL without user and password: a receiver knows by the signature who sends';
  if (url.protocol === 'http:' && !allowPrivate)
    return 'expected an https:// URL (http only to private addresses, with WEBHOOK_ALLOW_PRIVATE=true)';
  const host = hostOf(url);
  const refused =
    (isIP(host) !== 0 && !isReached(host, reachOf(url, allowPrivate))) ||
    (isLoopbackUrl(url) && !allowPrivate);
  if (!refused) return null;
  if (!allowPrivate)
    return 'its address is not a public one: private networks and this machine need WEBHOOK_ALLOW_PRIVATE=true';
  return isReached(host, 'public')
    ? 'its address is a public one, and plain http goes to private ones only: use https'
    : 'its address is never called, as those of metadata services and link-local ones';
}

/** Explains why no address that a webhook's name resolves to is connected to. Pure. */
export function refusedSays(url: URL, allowPrivate: boolean): string {
  if (!allowPrivate)
    return 'its name leads to an address that is not a public one (private networks need WEBHOOK_ALLOW_PRIVATE=true)';
  return url.protocol === 'http:'
    ? 'its name leads to an address that is not a private one, and plain http goes to private ones only: use https'
    : 'its name leads to an address that is never called, as those of metadata services and link-local ones';
}

function reachOf({ protocol }: URL, allowPrivate: boolean): Reach {
  if (!allowPrivate) return 'public';
  return protocol === 'http:' ? 'own' : 'public-or-own';
}

/** Posts batches to a URL, signed by Standard Webhooks. Follows no redirects and verifies certificates. */
export function createWebhook(options: WebhookOptions): Sink & {
  send(message: { messageId: string; body: string }, signal: AbortSignal): Promise<Result>;
} {
  const { url, follower, limits, clock } = options;
  const agent = agentFor(options);
  let isAnyTimeTaken = false;
  const send = async (message: { messageId: string; body: string }, signal: AbortSignal) => {
    const within = AbortSignal.any([signal, AbortSignal.timeout(options.timeoutMs)]);
    const sentAt = clock.now();
    try {
      const answer = await agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: 'POST',
        headers: headersOf(message, sentAt, options),
        body: message.body,
        signal: within,
      });
      const now = clock.now();
      const aheadMs = aheadOf(answer, sentAt, now);
      isAnyTimeTaken ||= judgeStatus(answer.statusCode, null) === 'delivered' && takesAnyTime(aheadMs);
      return await resultOf(answer, isAnyTimeTaken ? null : aheadMs, now);
    } catch (error) {
      return {
        outcome: 'failed',
        status: null,
        said: reasonOf(error, signal, options),
        retryAfterMs: null,
      } as const;
    }
  };
  const letterOf = (batch: Batch) => messageOf(follower, batch);
  return {
    limits,
    letterOf,
    send,
    deliver: (batch, signal) => send(letterOf(batch), signal),
    close: () => agent.destroy(),
  };
}

function headersOf(
  { messageId, body }: { messageId: string; body: string },
  sentAt: number,
  options: WebhookOptions,
) {
  const timestamp = Math.floor(sentAt / 1000);
  return {
    'content-type': 'application/json',
    'user-agent': options.userAgent,
    ...signedHeaders({ id: messageId, timestamp, body }, options.secrets()),
  };
}

function agentFor({ url, allowPrivate, timeoutMs, proxy }: WebhookOptions): Agent {
  const reach = reachOf(url, allowPrivate);
  const way = proxyFor(url, proxy);
  const direct = buildConnector({ allowH2: false, timeout: timeoutMs, lookup: guardedLookup(reach) });
  return new Agent({
    allowH2: false,
    connections: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect:
      way === null
        ? direct
        : tunnelConnector({ proxy: way, timeoutMs, check: (host) => refuseResolved(host, reach) }),
  });
}

const aheadOf = ({ headers }: Dispatcher.ResponseData, sentAt: number, now: number): number | null =>
  receiverAheadMs(textOf(headers['date']), textOf(headers['age']), sentAt, now);

/** Reads the result from an answer. The status decides, even if the rest of the answer does not arrive. */
async function resultOf(
  answer: Dispatcher.ResponseData,
  aheadMs: number | null,
  now: number,
): Promise<Result> {
  const { statusCode: status, headers } = answer;
  const outcome = judgeStatus(status, aheadMs);
  const isByClock = outcome !== judgeStatus(status, null);
  const said = outcome === 'delivered' ? await dropBody(answer.body) : await bodyOf(answer.body);
  return {
    outcome,
    status,
    said: saysOf(status, aheadMs, said),
    retryAfterMs: retryAfterMs(textOf(headers['retry-after']), textOf(headers['date']), now),
    ...(isByClock && { isByClock }),
  };
}

function saysOf(status: number, aheadMs: number | null, said: string | null): string | null {
  if (status >= 300 && status < 400) return REDIRECTED;
  return aheadMs !== null && status >= 400 && status < 500 ? clockSays(aheadMs, said) : said;
}

const REDIRECTED = 'redirects are not followed: use the URL that it leads to';

/** Discards the body of a success, and does not wait for a slow one. */
async function dropBody(body: Dispatcher.ResponseData['body']): Promise<null> {
  await body.dump({ limit: MAX_BODY_BYTES, signal: AbortSignal.timeout(DROPPED_WITHIN_MS) }).catch(() => {});
  return null;
}

const textOf = (header: string | string[] | undefined) => (typeof header === 'string' ? header : undefined);

async function bodyOf(body: Dispatcher.ResponseData['body']): Promise<string | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= MAX_BODY_BYTES) break;
    }
  } catch {
    // It was cut off, or took too long.
  }
  return excerptOf(Buffer.concat(chunks).toString('utf8'));
}

function reasonOf(error: unknown, signal: AbortSignal, { url, allowPrivate }: WebhookOptions): string {
  if (signal.aborted) return 'given up, because this process was told to stop';
  const code = failureCode(error);
  if (code === ADDRESS_REFUSED) return refusedSays(url, allowPrivate);
  if (error instanceof Error && error.name === 'TimeoutError') return 'no answer in time (WEBHOOK_TIMEOUT)';
  if (error instanceof Error && 'hint' in error) return error.message;
  return code ?? (error instanceof Error ? error.name : 'no answer');
}

/**
 * Returns what is posted for a batch: its id, and the body in the form that Standard Webhooks recommends. Both are
 * the same at every attempt, also after a restart. The id contains no full stop, which joins the parts of the
 * signature. Pure.
 */
export function messageOf(
  follower: string,
  batch: Batch,
): { readonly messageId: string; readonly body: string } {
  const { first, last, lines, at, copy } = batch;
  const data = [
    `"follower":${JSON.stringify(follower)}`,
    `"first":${JSON.stringify(shownPosition(first))}`,
    `"last":${JSON.stringify(shownPosition(last))}`,
    `"copy":${copy}`,
    ...(batch.copyBegins === true ? ['"copy_begins":true'] : []),
    `"changes":[${lines.join(',')}]`,
  ];
  const body = `{"type":"catalog.changes","timestamp":"${at.toISOString()}","data":{${data.join(',')}}}`;
  // Under another filter the same positions may contain more, and a receiver would ignore a known id. All changes of
  // the first copy have the same position.
  const content = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { messageId: `msg_${follower}_${first}_${copy ? 'copy' : last}_${content}`, body };
}

/** One message, at one attempt. */
export interface Message {
  readonly id: string;
  /** Seconds since 1970, at the attempt: receivers refuse what is older than a few minutes. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * Returns the headers by which a receiver verifies that a message is ours, as defined by Standard Webhooks: one
 * signature (v1: HMAC-SHA256 of id, timestamp and body) per secret, so that a receiver that knows any of them
 * accepts it. Pure.
 */
export function signedHeaders(
  { id, timestamp, body }: Message,
  secrets: readonly string[],
): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}
