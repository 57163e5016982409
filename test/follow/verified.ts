import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Whether one of the signatures is of this secret: the verifier of docs/follow.md, which knows nothing of how they
 * are made.
 */
export function verified(headers: Readonly<Record<string, unknown>>, body: string, secret: string): boolean {
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const expected = createHmac('sha256', key).update(signed).digest();
  return String(headers['webhook-signature'])
    .split(' ')
    .some((part) => {
      const [version, signature = ''] = part.split(',');
      const given = Buffer.from(signature, 'base64');
      return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
    });
}
