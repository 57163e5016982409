import { expect, test } from 'vitest';
import { loadConfig } from '../src/config/config.ts';
import { createScrubber } from '../src/telemetry/log/scrub.ts';

/** Returns a configuration whose secrets are in files, and a function that puts the `n`th value of each in place. */
function rotating() {
  const content: Record<string, string> = {};
  const put = (n: number) => {
    content['/run/key'] = `key-${n}`;
    content['/run/secret'] = `secret-${n}`;
    content['/run/database'] = `postgres://mirror:token-${n}@db.example/mirror`;
  };
  put(0);
  const env = {
    PARTNER_BASE_URL: 'https://api.example',
    PARTNER_API_KEY_FILE: '/run/key',
    PARTNER_SECRET_FILE: '/run/secret',
    DATABASE_URL_FILE: '/run/database',
  };
  const config = loadConfig(env, (path) => content[path] ?? '');
  const sources = [config.partner.apiKey, config.partner.secret, config.database.url];
  const rotate = (n: number) => {
    put(n);
    for (const source of sources) expect(source?.refresh()).toBe(true);
  };
  return { rotate, secrets: config.secrets };
}

test('after many rotations, the first and the last few values are still hidden from log lines', () => {
  const { rotate, secrets } = rotating();
  for (let n = 1; n <= 1000; n += 1) rotate(n);
  expect(secrets()).toEqual(
    expect.arrayContaining(['secret-0', 'secret-997', 'key-997:secret-998', 'token-0', 'token-1000']),
  );
  expect(secrets().length).toBeLessThan(200);
  const scrubber = createScrubber(secrets);
  expect(scrubber.text('as key-1000 by secret-1000, before by secret-999; token-998')).toBe(
    'as [redacted] by [redacted], before by [redacted]; [redacted]',
  );
});

test('a value that returns counts as the latest one', () => {
  const { rotate, secrets } = rotating();
  for (let n = 1; n <= 5; n += 1) rotate(n);
  rotate(1);
  for (let n = 6; n <= 11; n += 1) rotate(n);
  expect(secrets()).toContain('secret-1');
  expect(secrets()).not.toContain('secret-2');
});
