import { readFileSync } from 'node:fs';
import { setDefaultCACertificates } from 'node:tls';
import { describe, expect, test } from 'vitest';
import type { WebhookOptions } from '../../src/follow/webhook.ts';
import { both, proxied, serveTls } from '../partner/proxied.ts';
import { bodyText, type Listener, serve } from '../partner/server.ts';
import { certificate } from '../security/tls-proxy.ts';
import type { Mood } from '../support/http-proxy.ts';
import { verified } from './verified.ts';
import { BATCH, NEVER, SECRET, webhook } from './webhooks.ts';

/* A receiver behind TLS, and one behind a proxy: who may see a post, and whose failure is whose. */

const LOGIN = 'ann:proxy-canary';

function sinkTo(url: URL, more: Partial<WebhookOptions> = {}) {
  const sink = webhook(url, more);
  return { deliver: async () => sink.deliver(BATCH!, NEVER) };
}

/** Returns a receiver that accepts posts with the right signature, and remembers ids and headers. */
function taking() {
  const posts: { id: string; headers: Record<string, unknown> }[] = [];
  const listener: Listener = async (request, response) => {
    const isSigned = verified(request.headers, await bodyText(request), SECRET);
    posts.push({ id: String(request.headers['webhook-id']), headers: request.headers });
    response.writeHead(isSigned ? 204 : 401).end();
  };
  return { posts, listener };
}

const DELIVERED = { outcome: 'delivered', status: 204 };

describe('a receiver with TLS', () => {
  test('gets posts if its certificate is for its name and from a trusted authority', async () => {
    const { posts, listener } = taking();
    const port = await serveTls(listener);
    expect(await sinkTo(new URL(`https://localhost:${port}/hook`)).deliver()).toMatchObject(DELIVERED);
    expect(posts).toHaveLength(1);
  });

  test('gets nothing if the certificate is for another name or not trusted; the attempt counts as failed', async () => {
    const { posts, listener } = taking();
    const elsewhere = await serveTls(listener, 'elsewhere');
    expect(await sinkTo(new URL(`https://localhost:${elsewhere}`)).deliver()).toEqual({
      outcome: 'failed',
      status: null,
      said: 'ERR_TLS_CERT_ALTNAME_INVALID',
      retryAfterMs: null,
    });
    const port = await serveTls(listener);
    setDefaultCACertificates([readFileSync(certificate('other-ca.pem'), 'utf8')]);
    expect(await sinkTo(new URL(`https://localhost:${port}`)).deliver()).toMatchObject({
      outcome: 'failed',
      said: 'SELF_SIGNED_CERT_IN_CHAIN',
    });
    expect(posts).toEqual([]);
  });

  test('gets nothing if it answers in clear text', async () => {
    const { posts, listener } = taking();
    const clear = await serve(listener);
    const result = await sinkTo(new URL(`https://localhost:${clear.port}`)).deliver();
    expect(result).toMatchObject({ outcome: 'failed', status: null });
    expect(posts).toEqual([]);
  });
});

describe('through a proxy', () => {
  test('https uses one tunnel for many posts, and neither side sees the other’s secrets', async () => {
    const { posts, listener } = taking();
    const proxy = await proxied(LOGIN);
    proxy.names.set('localhost:443', await serveTls(listener));
    const sink = sinkTo(new URL('https://localhost/hook?secret-path'), { proxy: both(proxy.url) });
    for (let post = 0; post < 4; post += 1) expect(await sink.deliver()).toMatchObject(DELIVERED);
    const login = `Basic ${Buffer.from(LOGIN).toString('base64')}`;
    expect(proxy.asked).toEqual([{ authority: 'localhost:443', login }]);
    expect(proxy.heads + proxy.carried).not.toMatch(/webhook-|secret-path|catalog\.changes/);
    expect(JSON.stringify(posts)).not.toMatch(/proxy/i);
    expect(posts).toHaveLength(4);
    expect(proxy.forwarded).toEqual([]);
  });

  test('names in NO_PROXY are posted to directly', async () => {
    const { posts, listener } = taking();
    const proxy = await proxied();
    const url = new URL(`https://localhost:${await serveTls(listener)}`);
    expect(await sinkTo(url, { proxy: both(proxy.url, ['localhost']) }).deliver()).toMatchObject(DELIVERED);
    expect({ posts: posts.length, asked: proxy.asked }).toEqual({ posts: 1, asked: [] });
  });

  test('a name that only the proxy can resolve is posted to; a name of this machine is not even requested', async () => {
    const { posts, listener } = taking();
    const proxy = await proxied();
    const port = await serveTls(listener, 'elsewhere');
    proxy.names.set('elsewhere.example:443', port).set('localhost:443', port);
    const options = { allowPrivate: false, proxy: both(proxy.url) };
    expect(await sinkTo(new URL('https://elsewhere.example'), options).deliver()).toMatchObject(DELIVERED);
    expect(await sinkTo(new URL('https://localhost'), options).deliver()).toMatchObject({
      outcome: 'failed',
      said: expect.stringContaining('WEBHOOK_ALLOW_PRIVATE') as string,
    });
    expect(proxy.asked.map(({ authority }) => authority)).toEqual(['elsewhere.example:443']);
    expect(posts).toHaveLength(1);
  });

  const MOODS: readonly Mood[] = [
    400,
    401,
    403,
    407,
    410,
    413,
    502,
    'silent',
    'cut',
    'garbage',
    { cutAfter: 5 },
    { stallAfter: 5 },
  ];

  test.each(MOODS.map((mood) => ({ mood, name: JSON.stringify(mood) })))(
    'a proxy fault is never taken for the receiver’s answer: $name, and then it passes',
    async ({ mood }) => {
      const { posts, listener } = taking();
      const proxy = await proxied();
      const isTls = typeof mood === 'object';
      // Only a timeout ends these. The attempt that passes needs enough time on a busy machine, too.
      const hangs = mood === 'silent' || (typeof mood === 'object' && 'stallAfter' in mood);
      const port = isTls ? await serveTls(listener) : Number((await serve(listener)).port);
      proxy.names.set('localhost:443', port);
      const url = isTls ? new URL('https://localhost') : new URL(`http://127.0.0.1:${port}`);
      const sink = sinkTo(url, { proxy: both(proxy.url), ...(hangs && { timeoutMs: 3000 }) });
      proxy.mood = () => mood;
      // 'refused' would make the batch a dead letter, and 410 would end the stream.
      expect(await sink.deliver()).toMatchObject({ outcome: 'failed', status: null });
      proxy.mood = () => 'pass';
      expect(await sink.deliver()).toMatchObject(DELIVERED);
      expect(posts).toHaveLength(1);
    },
  );
});
