import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { signedHeaders } from '../../src/follow/webhook.ts';
import { codeBlocks } from './markdown.ts';

/* The code in docs/follow.md for receivers without a signature library, in each of its languages. */

const secretOf = (byte: number) => `whsec_${Buffer.alloc(24, byte).toString('base64')}`;
const snippet = (language: string): string => {
  const found = codeBlocks(language).filter(
    ({ page, text }) => page === 'docs/follow.md' && text.includes('verify('),
  );
  expect(found).toHaveLength(1);
  return found[0]?.text ?? '';
};

interface Post {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly secret: string;
}

/** Generates a correctly signed post, and versions of it with one change each. */
const posts = fc
  .record({
    id: fc.stringMatching(/^[a-z0-9_.-]{1,40}$/),
    body: fc.oneof(fc.json(), fc.string({ unit: 'grapheme' })),
    secrets: fc.uniqueArray(fc.integer({ min: 1, max: 255 }), { minLength: 1, maxLength: 3 }),
    known: fc.nat(2),
    wrong: fc.constantFrom(
      null,
      'body',
      'id',
      'time',
      'secret',
      'signature',
      'version',
      'letters',
      'odd time',
      'missing',
    ),
    letter: fc.constantFrom('é', 'ก', '👟', '\ud800'),
    oddTime: fc.constantFrom('', 'x', '²', '1e400', '9'.repeat(5000), '-1', ' '),
    missing: fc.subarray(['webhook-id', 'webhook-timestamp', 'webhook-signature'], { minLength: 1 }),
  })
  .map(
    ({ id, body, secrets, known, wrong, letter, oddTime, missing }): { post: Post; isGenuine: boolean } => {
      const seconds = Math.floor(Date.now() / 1000) - (wrong === 'time' ? 301 : 0);
      const headers = signedHeaders({ id, timestamp: seconds, body }, secrets.map(secretOf));
      const secret = secretOf(wrong === 'secret' ? 0 : (secrets[known % secrets.length] ?? 0));
      const signature = headers['webhook-signature'] ?? '';
      const changed: Record<string, Partial<Post>> = {
        body: { body: `${body} ` },
        id: { headers: { ...headers, 'webhook-id': `${id}x` } },
        signature: { headers: { ...headers, 'webhook-signature': signature.replaceAll(/v1,./g, 'v1,_') } },
        // As many characters, but more bytes.
        letters: {
          headers: {
            ...headers,
            'webhook-signature': signature.replaceAll(/v1,../g, `v1,${letter.padEnd(2, '_')}`),
          },
        },
        'odd time': { headers: { ...headers, 'webhook-timestamp': oddTime } },
        missing: {
          headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !missing.includes(name))),
        },
        version: { headers: { ...headers, 'webhook-signature': signature.replaceAll('v1,', 'v2,') } },
      };
      return { post: { headers, body, secret, ...changed[wrong ?? ''] }, isGenuine: wrong === null };
    },
  );

const drawn = fc.sample(posts, 300);
const expected = drawn.map(({ isGenuine }) => isGenuine);

const PYTHON = `import json, sys
for line in sys.stdin:
    post = json.loads(line)
    print("true" if verify(post["headers"], post["body"].encode(), post["secret"]) else "false")
`;

describe('the code of docs/follow.md accepts only what is correctly signed', () => {
  test('in JavaScript', async () => {
    const code = `data:text/javascript,${encodeURIComponent(snippet('js'))}`;
    const { verify } = (await import(/* @vite-ignore */ code)) as { verify: (...post: unknown[]) => boolean };
    expect(drawn.map(({ post: { headers, body, secret } }) => verify(headers, body, secret))).toEqual(
      expected,
    );
  });

  test.skipIf(spawnSync('python3', ['--version']).status !== 0)('in Python', () => {
    const { stdout, stderr } = spawnSync('python3', ['-c', snippet('python') + PYTHON], {
      input: drawn.map(({ post }) => JSON.stringify(post)).join('\n'),
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line === 'true'),
    ).toEqual(expected);
  });
});
