import { createHmac } from 'node:crypto';

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
