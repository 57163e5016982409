import { describe, expect, test } from 'vitest';
import { ConfigError, loadConfig, VARIABLES } from '../src/config/config.ts';
import type { Setting } from '../src/config/rules.ts';
import { SETTINGS } from '../src/config/settings.ts';

const CREDENTIAL = {
  PARTNER_BASE_URL: 'https://api.partner.example/v1/',
  PARTNER_API_KEY: 'key-1',
  PARTNER_SECRET: 'hunter2-secret',
};

/** Reads files held in a plain object that tests change; a missing one is ENOENT. */
function files(content: Record<string, string> = {}) {
  return (path: string) => {
    const text = content[path];
    if (text === undefined) throw Object.assign(new Error(`cannot open ${path}`), { code: 'ENOENT' });
    return text;
  };
}

const load = (env: Record<string, string | undefined> = {}, content: Record<string, string> = {}) =>
  loadConfig({ ...CREDENTIAL, ...env }, files(content));

function problemsOf(work: () => unknown) {
  try {
    work();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('no problem was found');
}

const variablesOf = (env: Record<string, string | undefined>, content?: Record<string, string>) =>
  problemsOf(() => load(env, content)).problems.map((problem) => problem.variable);

function problemCount(env: Record<string, string>) {
  try {
    load(env);
    return 0;
  } catch (error) {
    return error instanceof ConfigError ? error.problems.length : Number.NaN;
  }
}

const HTTP = { host: '127.0.0.1', allowedHosts: null, statusPage: true, runbookUrlBase: null };

test('with only the credential set, everything else has its documented default', () => {
  const { secrets, partner, database, queues, traces: _, ...rest } = load();
  expect(partner).toMatchObject({
    baseUrl: 'https://api.partner.example/v1',
    allowInsecure: false,
    timeoutMs: 30_000,
    downloadTimeoutMs: 1_800_000,
    fields: {
      bulkBodyKey: 'skus',
      price: ['price', 'lowest_price', 'lowest', 'lowest_ask', 'amount'],
      sku: 'sku',
      manifestUrl: null,
      snapshotId: null,
    },
  });
  expect(partner.apiKey.read()).toBe('key-1');
  expect(partner.secret.read()).toBe('hunter2-secret');
  expect(database).toEqual({ url: null, dataDir: '.catalog-mirror', poolMax: 12 });
  expect(queues).toEqual({ redisUrl: null, prefix: 'catalog-mirror' });
  expect(rest).toEqual({
    rate: { limit: 200, windowMs: 60_000, share: 0.6, floor: 0.2, backoffMs: 60_000 },
    bulk: { maxSkus: 100, liveBudget: 5 },
    intervals: {
      deltaMs: 300_000,
      manifestMs: 604_800_000,
      catalogCheckMs: 3_600_000,
      liveMs: 1_800_000,
      livePolicy: 'index',
      deferredMs: 300_000,
      errorMs: 60_000,
      metadataMs: 604_800_000,
      sweepMs: 86_400_000,
      sweepMinAgeMs: 1_800_000,
    },
    catalog: {
      staleAfterMs: 86_400_000,
      watchedSkus: 100_000,
      manifestMinShare: 0.5,
      actionableConfidence: 0.95,
      scope: 'catalog',
    },
    history: { retentionMs: 0, dailyRetentionMs: 0 },
    webhook: { secret: null, previousSecret: null, allowPrivate: false, timeoutMs: 20_000 },
    http: { ...HTTP, port: 9464 },
    access: { password: null },
    log: { level: 'info', format: 'auto', mirrorName: null },
    warnings: [],
  });
  expect(secrets()).toContain('hunter2-secret');
});

test('the defaults shown in the table are the effective ones', () => {
  const shown = Object.fromEntries(
    Object.entries<Setting>(SETTINGS).flatMap(([name, setting]) =>
      setting.default === undefined ? [] : [[name, setting.default]],
    ),
  );
  expect(JSON.stringify(load(shown))).toBe(JSON.stringify(load()));
  const secrets = [
    'PARTNER_API_KEY PARTNER_SECRET HTTPS_PROXY HTTP_PROXY DATABASE_URL REDIS_URL WEBHOOK_SECRET WEBHOOK_SECRET_PREVIOUS HTTP_PASSWORD',
    'OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_TRACES_HEADERS',
  ];
  expect(VARIABLES.flatMap((v) => (v.secret ? [v.name] : [])).join(' ')).toBe(secrets.join(' '));
  expect(VARIABLES.filter((v) => v.default === null).map((v) => v.name)).toEqual(Object.keys(CREDENTIAL));
});

test('every setting has its own path, and that of a duration names its unit', () => {
  const paths = Object.values(SETTINGS).map(({ path }) => path);
  expect(new Set(paths).size).toBe(paths.length);
  const durations = Object.values(SETTINGS).filter(({ rule }) => rule.description?.startsWith('a duration'));
  expect(durations.length).toBeGreaterThan(10);
  expect(durations.map(({ path }) => path).filter((path) => !path.endsWith('Ms'))).toEqual([]);
});

test('an empty variable counts as unset', () => {
  const blank = Object.fromEntries(VARIABLES.map((v) => [v.name, '']));
  expect(load({ ...blank, ...CREDENTIAL }).http.port).toBe(9464);
  expect(variablesOf({ PARTNER_SECRET: '' })).toEqual(['PARTNER_SECRET']);
});

test('all problems are reported at once, each with its variable and what is expected', () => {
  const error = problemsOf(() =>
    loadConfig(
      {
        DELTA_INTERVAL: '5',
        HTTP_PORT: '99999',
        PARTNER_RATE_SHARE: '1.5',
        DATABASE_URL: 'mysql://u:pw-x@h/d',
      },
      files(),
    ),
  );
  expect(error.kind).toBe('config');
  expect(error.problems.map((p) => p.variable).toSorted()).toEqual([
    'DATABASE_URL',
    'DELTA_INTERVAL',
    'HTTP_PORT',
    'PARTNER_API_KEY',
    'PARTNER_BASE_URL',
    'PARTNER_RATE_SHARE',
    'PARTNER_SECRET',
  ]);
  expect(error.message).toContain('HTTP_PORT: expected a whole number from 0 to 65535, got "99999"');
  expect(error.message).not.toContain('pw-x');
});

test.each([
  ['BULK_MAX_SKUS', ['1', '100'], ['0', '101', '1.5', 'ten', '-1']],
  ['PARTNER_RATE_SHARE', ['1', '0.01', '.5'], ['0', '1.01', '-0.5', '60%', '1e-1']],
  ['MANIFEST_MAX_SHRINK', ['1', '0.5'], ['0', '2']],
  ['DELTA_INTERVAL', ['1ms', '24d'], ['0', '0s', '25d', '5']],
  ['SWEEP_INTERVAL', ['0', '0s', '48h'], ['-1h', 'never']],
  ['METADATA_INTERVAL', ['30d'], ['0']],
  ['HISTORY_RETENTION', ['0', '7d', '3650d'], ['6d', '1ms', '3651d', '-7d', '7']],
  ['HTTP_PORT', ['0', '65535'], ['65536', '-1', '80.5']],
  ['HTTP_HOST', ['0.0.0.0', '::', '::1', 'localhost'], ['a b', 'http://x']],
  ['LOG_LEVEL', ['trace', 'silent'], ['verbose', 'INFO']],
  ['PARTNER_ALLOW_INSECURE', ['true', 'false'], ['yes', '1']],
  ['PARTNER_PRICE_FIELDS', ['a', 'a, b'], ['a,,b', ',']],
  ['QUEUE_PREFIX', ['mirror-2', '{mirror}'], ['a b', 'x'.repeat(65)]],
  [
    'DATABASE_URL',
    ['postgres://h/d', 'postgresql://u:p@h:5432/d?sslmode=require', 'postgres:///d?host=/run'],
    ['http://h', 'h/d', 'postgres://'],
  ],
  ['REDIS_URL', ['redis://h', 'rediss://u:p@h:6380/1'], ['http://h', 'h:6379']],
  ['PARTNER_API_KEY', ['k', 'clé'], ['a:b', 'a\n', 'a\u0000b']],
  ['PARTNER_SECRET', ['s:s', 'with space'], ['s\n', 's\r\n', '\uFEFFs']],
  [
    'PARTNER_BASE_URL',
    ['https://h', 'http://localhost:1', 'http://127.0.0.9', 'http://[::1]:3'],
    [
      'http://h',
      'ftp://h',
      'h',
      'https://u:p@h',
      'https://h?x=1',
      'https://h#f',
      'http://localhost.evil.example',
      'http://127.0.0.1.evil.example',
    ],
  ],
])('%s accepts %j and rejects %j', (name, good, bad) => {
  expect(good.filter((value) => problemCount({ [name]: value }) > 0)).toEqual([]);
  expect(bad.filter((value) => problemCount({ [name]: value }) !== 1)).toEqual([]);
  expect(variablesOf({ [name]: bad[0] })).toEqual([name]);
});

test('http to a host other than loopback needs PARTNER_ALLOW_INSECURE and is warned about', () => {
  const config = load({ PARTNER_BASE_URL: 'http://sandbox:8080', PARTNER_ALLOW_INSECURE: 'true' });
  expect(config.partner.baseUrl).toBe('http://sandbox:8080');
  expect(config.warnings).toEqual([expect.stringContaining('clear text')]);
  const wrong = { PARTNER_BASE_URL: 'http://sandbox', PARTNER_ALLOW_INSECURE: 'true', HTTP_PORT: 'x' };
  expect(problemsOf(() => load(wrong)).warnings).toEqual(config.warnings);
  expect(
    load({ PARTNER_BASE_URL: 'http://localhost:8080', PARTNER_ALLOW_INSECURE: 'true' }).warnings,
  ).toEqual([]);
});

test('a live budget above BULK_MAX_SKUS is a problem, but the default is lowered', () => {
  expect(variablesOf({ BULK_MAX_SKUS: '10', BULK_LIVE_BUDGET: '11' })).toEqual(['BULK_LIVE_BUDGET']);
  expect(load({ BULK_MAX_SKUS: '10', BULK_LIVE_BUDGET: '10' }).bulk).toEqual({ maxSkus: 10, liveBudget: 10 });
  expect(load({ BULK_MAX_SKUS: '3' }).bulk).toEqual({ maxSkus: 3, liveBudget: 3 });
});

test('a share that rounds to no request is a problem', () => {
  expect(variablesOf({ PARTNER_RATE_LIMIT: '10', PARTNER_RATE_SHARE: '0.05' })).toEqual([
    'PARTNER_RATE_SHARE',
  ]);
});

test('problems show values, except those that are secret or may contain a credential', () => {
  const leaks = ['leak-1\n', 'leak:2', 'mysql://leak-3@h', 'http://leak-4', 'https://leak-5:x@h'];
  const { message, problems } = problemsOf(() =>
    load({
      PARTNER_SECRET: leaks[0],
      PARTNER_API_KEY: leaks[1],
      DATABASE_URL: leaks[2],
      REDIS_URL: leaks[3],
      PARTNER_BASE_URL: leaks[4],
    }),
  );
  expect(problems).toHaveLength(5);
  expect(message).not.toContain('leak');
});

describe('secrets in files', () => {
  const env = { PARTNER_SECRET: undefined, PARTNER_SECRET_FILE: '/run/s' };

  test.each([
    ['abc\n', 'abc'],
    ['abc\r\n', 'abc'],
    ['abc', 'abc'],
    [' abc ', ' abc '],
  ])('%j is the secret %j', (content, value) => {
    expect(load(env, { '/run/s': content }).partner.secret.read()).toBe(value);
  });

  test.each([
    ['', null],
    ['\n', null],
    ['abc\n\n', 'ends in a newline'],
    ['a\nb', 'has more than one line'],
    ['abc\r', 'ends in a carriage return (CR)'],
  ])('%j is rejected by name, without being shown', (content, blemish) => {
    const error = problemsOf(() => load(env, { '/run/s': content }));
    expect(error.problems).toEqual([
      {
        variable: 'PARTNER_SECRET_FILE',
        expected: expect.stringContaining('a file that holds'),
        got: '/run/s',
        ...(blemish !== null && { but: `the value ${blemish}` }),
      },
    ]);
  });

  test('an unreadable file is reported with its reason but not its path, which may be the secret itself', () => {
    expect(problemsOf(() => load({ ...env, PARTNER_SECRET_FILE: 'hunter2' })).problems).toEqual([
      { variable: 'PARTNER_SECRET_FILE', expected: 'the path of a readable file (ENOENT)' },
    ]);
  });

  test('NAME and NAME_FILE together are a problem', () => {
    expect(variablesOf({ PARTNER_SECRET_FILE: '/run/s' }, { '/run/s': 'x' })).toEqual(['PARTNER_SECRET']);
  });

  test('a rotation takes effect only by refresh', () => {
    const content: Record<string, string> = { '/run/s': 'old\n' };
    const { partner, secrets } = load(env, content);
    expect(partner.secret.refresh()).toBe(false);
    content['/run/s'] = 'new\n';
    expect(partner.secret.read()).toBe('old');
    expect(partner.secret.refresh()).toBe(true);
    expect(partner.secret.read()).toBe('new');
    expect(partner.secret.refresh()).toBe(false);
    expect(secrets()).toEqual(expect.arrayContaining(['old', 'new', 'key-1:old', 'key-1:new']));
  });

  test('a file that is missing, empty or half-written keeps the current value', () => {
    const content: Record<string, string> = { '/run/s': 'old\n' };
    const { secret } = load(env, content).partner;
    for (const broken of ['', 'half\nwritten']) {
      content['/run/s'] = broken;
      expect(secret.refresh()).toBe(false);
    }
    delete content['/run/s'];
    expect(secret.refresh()).toBe(false);
    expect(secret.read()).toBe('old');
  });

  test('a value from the environment never changes', () => {
    expect(load().partner.secret.refresh()).toBe(false);
  });

  test('DATABASE_URL and REDIS_URL may come from files, too', () => {
    const config = load(
      { DATABASE_URL_FILE: '/run/db', REDIS_URL_FILE: '/run/redis' },
      { '/run/db': 'postgres://u:p%40ss@h/d\n', '/run/redis': 'rediss://h\n' },
    );
    expect(config.database.url?.read()).toBe('postgres://u:p%40ss@h/d');
    expect(config.queues.redisUrl?.read()).toBe('rediss://h');
    expect(config.secrets()).toEqual(expect.arrayContaining(['p@ss', 'p%40ss', 'postgres://u:p%40ss@h/d']));
  });
});

describe('a setting that a command does not need', () => {
  test('is neither required nor read by `database`', () => {
    const config = loadConfig({ PARTNER_SECRET_FILE: '/gone', DATABASE_URL: 'postgres://h/d' }, files(), {
      need: 'database',
    });
    expect(config.database.url?.read()).toBe('postgres://h/d');
    expect(config).not.toHaveProperty('partner');
    expect(() => loadConfig({ DATABASE_URL: 'x' }, files(), { need: 'database' })).toThrow(ConfigError);
  });

  test('is neither required nor read by `http`', () => {
    const config = loadConfig({ DATABASE_URL_FILE: '/gone', HTTP_PORT: '1' }, files(), { need: 'http' });
    expect(config.http).toEqual({ ...HTTP, port: 1 });
    expect(config).not.toHaveProperty('database');
  });
});

describe('warnings', () => {
  test.each([
    ['PARTNER_SECRT', 'did you mean PARTNER_SECRET?'],
    ['PARTNER_SECRET_FLE', 'did you mean PARTNER_SECRET_FILE?'],
    ['REDIS_URI', 'did you mean REDIS_URL?'],
    ['DELTA_INTERVALL', 'did you mean DELTA_INTERVAL?'],
    ['PARTNER_COLOUR', 'PARTNER_COLOUR is not a variable'],
    ['BULK_SIZE', 'BULK_SIZE is not a variable'],
    ['PARTNER_BASE_URL_FILE', 'cannot be given as a file'],
  ])('%s: %s', (name, hint) => {
    const { warnings } = load({ [name]: 'some-value' });
    expect(warnings).toEqual([expect.stringContaining(hint)]);
    expect(warnings.join('\n')).not.toContain('some-value');
  });

  test.each('REDIS_PORT DATABASE_NAME PATH LOG_COLOUR CATALOG_MIRROR_PORT NODE_ENV'.split(' '))(
    'are not given for %s, which is not ours',
    (name) => {
      expect(load({ [name]: 'x' }).warnings).toEqual([]);
    },
  );
});
