import { expect, test } from 'vitest';
import { createScrubber } from '../../src/telemetry/log/scrub.ts';

const scrubbed = (secret: string, text: string) => createScrubber(() => [secret]).text(text);

test.each([
  ['s', 'postgres answers, and size s is sold'],
  ['5', 'after 15 seconds and 5 tries'],
  ['pos', 'postgres: pos is wrong'],
])('a secret as short as %s is hidden where it stands alone, and not within words', (secret, text) => {
  expect(scrubbed(secret, text)).toBe(text.replace(new RegExp(`\\b${secret}\\b`), '[redacted]'));
});

test('numbers and names of a line are kept likewise', () => {
  const scrubber = createScrubber(() => ['5']);
  expect(JSON.parse(scrubber.line('{"waited5":15,"of":5}'))).toEqual({ waited5: 15, of: '[redacted]' });
});

test('it is hidden as it stands in URLs, in JSON and in base64, too', () => {
  expect(scrubbed('ü', 'a=%C3%BC;')).toBe('a=[redacted];');
  expect(scrubbed('a"b', String.raw`{"k":"a\"b"}`)).toBe('{"k":"[redacted]"}');
  expect(scrubbed('ab', `${Buffer.from('ab').toString('base64')} is it`)).toBe('[redacted] is it');
  expect(scrubbed('ab', 'YWJj is another')).toBe('YWJj is another');
});

test('one of four characters is hidden within words', () => {
  expect(scrubbed('gres', 'postgres')).toBe('post[redacted]');
});
