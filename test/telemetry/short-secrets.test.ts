import { expect, test } from 'vitest';
import { createScrubber } from '../../src/telemetry/log/scrub.ts';

const scrubbed = (secret: string, text: string) => createScrubber(() => [secret]).text(text);

test.each([
  ['s', 'postgres answers, and size s is sold'],
  ['5', 'after 15 seconds and 5 tries'],
  ['pos', 'postgres: pos is wrong'],
])('a secret as short as %s is hidden as a whole word, but not within words', (secret, text) => {
  expect(scrubbed(secret, text)).toBe(text.replace(new RegExp(`\\b${secret}\\b`), '[redacted]'));
});

test('a short secret does not alter the numbers and names of a line', () => {
  const scrubber = createScrubber(() => ['5']);
  expect(JSON.parse(scrubber.line('{"waited5":15,"of":5}'))).toEqual({ waited5: 15, of: '[redacted]' });
});

test('a short secret is also hidden in URLs, in JSON and in base64', () => {
  expect(scrubbed('ü', 'a=%C3%BC;')).toBe('a=[redacted];');
  expect(scrubbed('a"b', String.raw`{"k":"a\"b"}`)).toBe('{"k":"[redacted]"}');
  expect(scrubbed('ab', `${Buffer.from('ab').toString('base64')} is it`)).toBe('[redacted] is it');
  expect(scrubbed('ab', 'YWJj is another')).toBe('YWJj is another');
});

test('a secret of four characters is hidden within words, too', () => {
  expect(scrubbed('gres', 'postgres')).toBe('post[redacted]');
});
