import { createHash, createHmac } from 'node:crypto';
import type { Batch } from './batch.ts';
import { shownPosition } from './change.ts';

/**
 * What is posted for a batch: its id, and the body in the form that Standard Webhooks recommends. Both are the same
 * at every attempt, also after a restart. An id has no full stop, because the signature's parts are joined by them.
 * Pure.
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
  // Of the same positions there may be more another time, by another filter: whoever knows the id would leave it out.
  // And all of the first copy has one position.
  const content = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { messageId: `msg_${follower}_${first}_${copy ? 'copy' : last}_${content}`, body };
}

/** One message, at one attempt. */
export interface Message {
  readonly id: string;
  /** Seconds since 1970, of the attempt: receivers refuse what is older than some minutes. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * The headers by which a receiver knows that a message is ours, as Standard Webhooks has them: one signature (v1:
 * HMAC-SHA256 of id, timestamp and body) a secret, so that a receiver that knows any of them accepts it. Pure.
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
