import { describe, expect, it } from 'vitest';
import { everyCall, send } from './calls.ts';
import { foreignOrder } from './levers.ts';
import { authorized, HandClock, open } from './support.ts';

const PATH = '/partner/catalog/manifest';
const MINUTES = 60_000;
const encoded = (text: string): string => Buffer.from(text).toString('base64');

const UNAUTHORIZED = [401, '{"message":"Unauthorized"}'] as const;
const FORBIDDEN = [403, '{"message":"Forbidden"}'] as const;
const ERROR = [500, '{"message":"Internal Server Error"}'] as const;

type Refusal = readonly [status: number, body: string];

/** The value of `Authorization` (null = no header) and the expected answer. */
const HEADERS: readonly (readonly [name: string, header: string | null, answer: Refusal])[] = [
  ['5.5.absent, 7.1.401 no header', null, UNAUTHORIZED],
  [
    '5.5.malformed, 7.2.500-authorizer another scheme',
    `Bearer ${encoded('sandbox-key:sandbox-secret')}`,
    ERROR,
  ],
  [
    '5.5.malformed a scheme that begins like Basic',
    `Basically ${encoded('sandbox-key:sandbox-secret')}`,
    ERROR,
  ],
  ['5.5.malformed the scheme alone', 'Basic', ERROR],
  ['5.5.malformed base64 without a scheme', encoded('sandbox-key:sandbox-secret'), ERROR],
  ['5.5.malformed signs outside base64', 'Basic %%%%', ERROR],
  ['5.5.malformed base64 cut short', 'Basic c2FuZ', ERROR],
  ['5.5.malformed the credential in plain text', 'Basic sandbox-key:sandbox-secret', ERROR],
  ['5.5.unknown-key another key with the right secret', `Basic ${encoded('nobody:sandbox-secret')}`, ERROR],
  ['5.5.unknown-key the key in capitals', `Basic ${encoded('SANDBOX-KEY:sandbox-secret')}`, ERROR],
  [
    '5.5.wrong-secret, 7.1.403, 7.2.403-authorizer another',
    `Basic ${encoded('sandbox-key:other')}`,
    FORBIDDEN,
  ],
  ['5.5.wrong-secret none', `Basic ${encoded('sandbox-key:')}`, FORBIDDEN],
  ['5.5.wrong-secret the secret and more', `Basic ${encoded('sandbox-key:sandbox-secret:more')}`, FORBIDDEN],
  [
    '5.1, 5.5.wrong-secret a newline encoded too',
    `Basic ${encoded('sandbox-key:sandbox-secret\n')}`,
    FORBIDDEN,
  ],
];

/** The first header for each of these rows. */
const ONE_OF_EACH = ['5.5.absent', '5.5.malformed', '5.5.unknown-key', '5.5.wrong-secret'].flatMap((row) =>
  HEADERS.filter(([name]) => name.startsWith(row)).slice(0, 1),
);

describe.concurrent('authentication', () => {
  it('5.1 Basic with base64 of key and secret authenticates, even if the secret contains colons', async ({
    expect,
  }) => {
    await using partner = await open({ apiKey: 'supplier-7', secret: 'a:b:c' });
    const authorization = `Basic ${encoded('supplier-7:a:b:c')}`;
    expect((await partner.raw('GET', PATH, { authorization })).status).toBe(200);
  });

  it('5.3 the same secret opens every endpoint', async ({ expect }) => {
    await using partner = await open();
    const seen: unknown[] = [];
    for (const call of await everyCall(partner))
      seen.push([call.endpoint, (await send(partner, call)).status < 300]);
    expect(seen).toHaveLength(17);
    expect(seen.filter((row) => !(row as [string, boolean])[1])).toEqual([]);
  });

  it('5.4, 8.rotation both secrets authenticate for five minutes after a rotation, then only the new one', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ now: clock.now });
    const old = { authorization: partner.basic() };
    partner.sandbox.rotateSecret('next', 5 * MINUTES);
    const next = { authorization: partner.basic(undefined, 'next') };
    const both = async (): Promise<number[]> => [
      (await partner.raw('GET', PATH, old)).status,
      (await partner.raw('GET', PATH, next)).status,
    ];
    expect(await both()).toEqual([200, 200]);
    clock.advance(5 * MINUTES - 1);
    expect(await both()).toEqual([200, 200]);
    clock.advance(1);
    expect(await both()).toEqual([403, 200]);
  });

  it('5.4 a revoked secret may stop at once', async ({ expect }) => {
    await using partner = await open();
    const authorization = partner.basic();
    partner.sandbox.rotateSecret('next');
    expect((await partner.raw('GET', PATH, { authorization })).status).toBe(403);
  });

  it.each(HEADERS)('%s', async (_name, header, refusal) => {
    await using partner = await open();
    const answer = await partner.raw('GET', PATH, authorized(header));
    expect([answer.status, answer.text]).toEqual(refusal);
  });

  it('5.5.absent, 5.5.malformed, 5.5.unknown-key, 5.5.wrong-secret are answered alike on every endpoint', async ({
    expect,
  }) => {
    await using partner = await open({ rateLimit: 1000 });
    for (const { method, path, body, endpoint } of await everyCall(partner)) {
      for (const [, header, refusal] of ONE_OF_EACH) {
        const answer = await partner.raw(method, path, authorized(header), body && JSON.stringify(body));
        expect([endpoint, answer.status, answer.text]).toEqual([endpoint, ...refusal]);
      }
    }
  });

  it('5.5.not-configured an incomplete account is rejected with its own body on every endpoint', async ({
    expect,
  }) => {
    await using partner = await open();
    const calls = await everyCall(partner);
    partner.sandbox.configureAccount(false);
    for (const call of calls) {
      const answer = await send(partner, call);
      expect([call.endpoint, answer.status, answer.text]).toEqual([
        call.endpoint,
        403,
        '{"statusCode":403,"message":"Supplier account not configured"}',
      ]);
    }
    const authorization = partner.basic(undefined, 'other');
    expect((await partner.raw('GET', PATH, { authorization })).text).toBe('{"message":"Forbidden"}');
  });

  it('5.5.throttled, 5.7 a throttled answer and that to a wrong secret are byte for byte the same', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ now: clock.now, rateLimit: 1 });
    const wrong = await partner.raw('GET', PATH, { authorization: partner.basic(undefined, 'other') });
    const throttled = await partner.get(PATH);
    expect(throttled.status).toBe(403);
    expect(throttled.text).toBe('{"message":"Forbidden"}');
    expect(throttled).toEqual(wrong);
  });

  it('5.8 an order of another supplier is rejected wherever it is named', async ({ expect }) => {
    await using partner = await open();
    const order_id = foreignOrder(partner);
    const answers = [
      await partner.get(`/partner/${order_id}`),
      await partner.get(`/partner/payout/${order_id}`),
      await partner.get(`/partner/label/${order_id}`),
      await partner.put('/partner/confirm/order', { order_id }),
      await partner.put('/partner/update/tracking', { orders: [{ order_id, tracking_number: 'TH1' }] }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400]);
  });
});
