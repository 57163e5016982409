import { expect, test } from 'vitest';
import { demoEnvironment } from '../../src/cli/demo-environment.ts';
import { type Config, loadConfig } from '../../src/config/config.ts';
import type { Environment } from '../../src/config/environment.ts';
import { PRODUCTION } from '../support/production.ts';

const PARTNER = { url: 'http://127.0.0.1:1', apiKey: 'demo-key', secret: 'demo-secret' };

/** Returns the configuration of a demo in this shell; it can read no files. */
function configured(env: Environment): Config {
  return loadConfig(demoEnvironment(env, PARTNER), () => {
    throw new Error('no such file');
  });
}

const shown = (config: Config) => {
  const { apiKey, secret, ...partner } = config.partner;
  return { ...config, partner: { ...partner, apiKey: apiKey.read(), secret: secret.read() }, secrets: null };
};

test('a shell full of production settings changes nothing', () => {
  expect(shown(configured(PRODUCTION))).toEqual(shown(configured({})));
  expect(configured(PRODUCTION)).toMatchObject({
    partner: { baseUrl: PARTNER.url },
    queues: { redisUrl: null },
    rate: { share: 0.95 },
  });
});

test('an empty variable leaves the demo its own default', () => {
  const env = { DELTA_INTERVAL: '', LIVE_INTERVAL: ' ', LOG_LEVEL: '' };
  expect(shown(configured(env))).toEqual(shown(configured({})));
});

test('settings of the demo itself are taken from the shell', () => {
  const config = configured({ DELTA_INTERVAL: '1m', HTTP_PORT: '8080', DATABASE_URL: 'postgres://h/d' });
  expect(config).toMatchObject({ intervals: { deltaMs: 60_000 }, http: { port: 8080 } });
  expect(config.database.url?.read()).toBe('postgres://h/d');
});
