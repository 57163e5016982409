import { expect, test } from 'vitest';
import { signedHeaders } from '../../src/follow/webhook.ts';

/** The first is the example of Standard Webhooks. The package standardwebhooks 1.1.1 signs both like this. */
test.each<[secret: string, id: string, timestamp: number, body: string, signature: string]>([
  [
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    1614265330,
    '{"test": 2432232314}',
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  ],
  [
    'whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=',
    'msg_shop_3_5',
    1800000000,
    '{"a":"Ü"}',
    'v1,xu9MOlvgMVyxWftIrSZ/Efm6EHC76mJgWLtd4fSGc/M=',
  ],
])('%s signs like other implementations', (secret, id, timestamp, body, signature) => {
  expect(signedHeaders({ id, timestamp, body }, [secret])).toEqual({
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
  });
  const two = signedHeaders({ id, timestamp, body }, [
    `whsec_${Buffer.alloc(24).toString('base64')}`,
    secret,
  ]);
  expect(two['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/);
  expect(two['webhook-signature']).toContain(` ${signature}`);
});
