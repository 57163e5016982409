import { expect, test } from 'vitest';
import { judgeAccount } from '../../src/cli/doctor/configuration.ts';
import { loadConfig } from '../../src/config/config.ts';
import type { KnownAccount } from '../../src/store/setup/account.ts';

const HASH = '33f6cc7ad0b5adc9960e7e20a7384a7571e936a8e89b55ad3b7bc3089826ee1b';
const DAY = 86_400_000;
const NOW = Date.parse('2026-11-21T12:00:00.000Z');

const KNOWN: KnownAccount = {
  address: 'https://partner.example',
  salt: 'salt',
  keyHash: HASH,
  keySince: new Date(NOW - 2 * DAY),
  keyReplaced: false,
};

const config = (baseUrl: string, apiKey: string) =>
  loadConfig({ PARTNER_BASE_URL: baseUrl, PARTNER_API_KEY: apiKey, PARTNER_SECRET: 'secret' }, () => '');

test.each<[string, Partial<KnownAccount>, string, string, string]>([
  ['nothing is mirrored yet', { address: null, salt: null }, 'https://partner.example', 'ours', 'OK'],
  ['it is the same', {}, 'https://partner.example/', 'ours', 'OK'],
  ['it is another partner', {}, 'https://staging.example', 'ours', 'FAIL'],
  ['the key is another one', {}, 'https://partner.example', 'theirs', 'WARN'],
  ['the key was replaced days ago', { keyReplaced: true }, 'https://partner.example', 'ours', 'WARN'],
  [
    'the key was replaced long ago',
    { keyReplaced: true, keySince: new Date(NOW - 8 * DAY) },
    'https://partner.example',
    'ours',
    'OK',
  ],
])('judges the account if %s', (_, known, baseUrl, apiKey, level) => {
  const found = judgeAccount(config(baseUrl, apiKey), { ...KNOWN, ...known }, NOW);
  expect(found.level).toBe(level);
  expect(JSON.stringify(found)).not.toContain(apiKey === 'theirs' ? 'theirs' : HASH);
});
