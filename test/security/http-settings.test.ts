import { expect, test } from 'vitest';
import { ConfigError } from '../../src/config/config.ts';
import { settingsWith, type SettingsEnv } from '../support/settings.ts';

/** The variables that are wrong in this environment. */
function wrong(env: SettingsEnv): readonly string[] {
  try {
    settingsWith(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ variable }) => variable);
    throw error;
  }
}

test('allowed hosts have one spelling each; without the variable there are none', () => {
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
  // In lower case, its first letter is an ASCII k.
  '\u212aworker',
  '[::1]',
  '-a',
  `${'a.'.repeat(127)}a`,
])('HTTP_ALLOWED_HOSTS takes no port, no wildcard and nothing that is no name: %s', (hosts) => {
  expect(wrong({ HTTP_ALLOWED_HOSTS: hosts })).toEqual(['HTTP_ALLOWED_HOSTS']);
});
