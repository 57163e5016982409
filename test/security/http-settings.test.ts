import { expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config/config.ts';
import { settingsWith, type SettingsEnv } from '../support/settings.ts';

/** Returns the variables that are wrong in this environment. */
function wrong(env: SettingsEnv): readonly string[] {
  try {
    settingsWith(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ variable }) => variable);
    throw error;
  }
}

test('allowed hosts are normalised and deduplicated; without the variable there are none', () => {
  expect(settingsWith().http.allowedHosts).toBeNull();
  const hosts = (text: string) => settingsWith({ HTTP_ALLOWED_HOSTS: text }).http.allowedHosts;
  expect(hosts('Worker, worker.,Shop.example')).toEqual(['worker', 'shop.example']);
  expect(hosts('my_worker,xn--mnchen-3ya.example,10.0.0.1')).toHaveLength(3);
});

test.each([
  '*',
  '*.shop.example',
  'worker:9464',
  'http://worker',
  'worker/',
  'a,,b',
  'a b',
  'münchen.example',
  // Its first letter, in lower case, is an ASCII k.
  '\u212aworker',
  '[::1]',
  '-a',
  `${'a.'.repeat(127)}a`,
])('HTTP_ALLOWED_HOSTS accepts no port, no wildcard and nothing that is not a host name: %s', (hosts) => {
  expect(wrong({ HTTP_ALLOWED_HOSTS: hosts })).toEqual(['HTTP_ALLOWED_HOSTS']);
});

test.each([
  '',
  'short',
  'fifteen-letters',
  'with a space in the middle',
  'ümlaut-ümlaut-ümlaut',
  'x'.repeat(257),
  'sixteen-letters-\r',
])('HTTP_PASSWORD_FILE accepts no password that is empty, short or not printable: %j', (content) => {
  const env = {
    PARTNER_BASE_URL: 'https://partner.example',
    PARTNER_API_KEY: 'key',
    PARTNER_SECRET: 'secret',
    HTTP_PASSWORD_FILE: '/password',
  };
  const load = () => loadConfig(env, () => content);
  expect(load).toThrow(
    expect.objectContaining({ problems: [expect.objectContaining({ variable: 'HTTP_PASSWORD_FILE' })] }),
  );
  if (content !== '')
    expect(load).toThrow(expect.not.objectContaining({ message: expect.stringContaining(content) }));
  expect(loadConfig(env, () => 'sixteen-letters-\n').access.password?.read()).toBe('sixteen-letters-');
});

test('the password is redacted from every line, and healthcheck does not read it', () => {
  const config = settingsWith({ HTTP_PASSWORD: 'sixteen-letters-' });
  expect(config.secrets()).toContain('sixteen-letters-');
  const unreadable = () => {
    throw new Error('unreadable');
  };
  expect(loadConfig({ HTTP_PASSWORD_FILE: '/gone' }, unreadable, { need: 'http' })).not.toHaveProperty(
    'access',
  );
  expect(loadConfig({ HTTP_PASSWORD_FILE: '/gone' }, unreadable, { need: 'database' })).not.toHaveProperty(
    'access',
  );
});
