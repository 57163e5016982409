import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Returns whether one of the signatures was made with this secret. This is the verifier of docs/follow.md, which
 * is independent of the code that signs.
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
