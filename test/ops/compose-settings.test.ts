import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse, parseDocument, visit } from 'yaml';
import { loadConfig } from '../../src/config/config.ts';
import { parseEnvFile } from '../../src/config/environment.ts';
import { codeBlocks, read } from '../docs/markdown.ts';

interface Service {
  readonly image: string;
  readonly profiles?: readonly string[];
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly build?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly env_file?: readonly { readonly path: string; readonly required: boolean }[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
}
type Services = Readonly<Record<string, Service>>;

const base = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Services;
  secrets: Record<string, unknown>;
};
const started = (services: Services) =>
  Object.entries(services).filter(([, { profiles }]) => profiles === undefined);

type Tree = { readonly [member: string]: unknown };
const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Merges mappings and concatenates lists, as compose does with two files, except for its tags. */
function merged(one: unknown, other: unknown): unknown {
  if (isTree(one) && isTree(other)) {
    const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
    return Object.fromEntries(names.map((name) => [name, merged(one[name], other[name])]));
  }
  if (Array.isArray(one) && Array.isArray(other)) return [...(one as unknown[]), ...(other as unknown[])];
  return other ?? one;
}

/** Returns the services with an override file; `!reset` removes a member and `!override` replaces it. */
function overridden(text: string): Services {
  const document = parseDocument(text, { logLevel: 'error' });
  const tagged: { path: string[]; value: unknown }[] = [];
  visit(document, {
    Pair(_, { key, value }, ancestors) {
      const tag = (value as { tag?: string } | null)?.tag;
      if (tag !== '!reset' && tag !== '!override') return;
      const keys = [...ancestors, { key }].flatMap((node) => ('key' in node ? [String(node.key)] : []));
      const given = (value as { toJS(of: typeof document): unknown }).toJS(document);
      tagged.push({ path: keys, value: tag === '!reset' ? undefined : given });
    },
  });
  const all = structuredClone(merged(base, document.toJS())) as { services: Services };
  for (const { path, value } of tagged) {
    let at = all as unknown as Record<string, unknown>;
    for (const name of path.slice(0, -1)) at = at[name] as Record<string, unknown>;
    at[path.at(-1) ?? ''] = value;
  }
  return all.services;
}

const OWN_SERVERS = codeBlocks('yaml').find(({ text }) => text.includes('!reset'))?.text ?? '';
const FILES: Readonly<Record<string, string>> = {
  '/run/secrets/database_url': 'postgres://shop@db.shop.example/mirror',
  '/run/secrets/redis_url': 'redis://:p@cache.shop.example',
};

/**
 * Returns the configuration of the worker with these lines in `.env`. In compose, `environment` takes precedence.
 */
function configOf({ environment = {}, secrets = [] }: Service, dotEnv = '') {
  const values = Object.fromEntries(parseEnvFile(dotEnv).values);
  const own = Object.entries(environment).map(([name, value]) => [
    name,
    value.replace(/\$\{(\w+):-(.*?)\}/, (_, of: string, usual: string) => values[of] || usual),
  ]);
  const env = { ...values, ...(Object.fromEntries(own) as Record<string, string>) };
  return loadConfig(env, (path) => {
    expect(secrets.map((secret) => `/run/secrets/${secret}`)).toContain(path);
    return FILES[path] ?? 'given';
  });
}

test('with the override of docs/running.md the worker starts alone, using the servers that its files name', () => {
  const services = overridden(OWN_SERVERS);
  expect(started(services).map(([name]) => name)).toEqual(['worker']);
  const { worker } = services;
  expect(worker?.depends_on).toBeUndefined();
  const config = configOf(worker as Service, 'PARTNER_BASE_URL=https://partner.example');
  expect(config.database.url?.read()).toContain('db.shop.example');
  expect(config.queues.redisUrl?.read()).toContain('cache.shop.example');
});

test("with the page's other overrides, one of the servers stays, or the queues move to Postgres", () => {
  const page = read('docs/running.md');
  const [, kept = ''] = /`(depends_on: !override \{.*?\})`/.exec(page) ?? [];
  const one = overridden(OWN_SERVERS.replace('depends_on: !reset {}', kept).replace(/^ {2}redis: .*\n/m, ''));
  expect(started(one).map(([name]) => name)).toEqual(['worker', 'redis']);
  expect(Object.keys(one['worker']?.depends_on ?? {})).toEqual(['redis']);

  const lines = ['environment: { REDIS_URL_FILE', 'secrets: !override'].map(
    (start) => new RegExp(`\`(${start}.*?[}\\]])\``).exec(page)?.[1] ?? 'missing: true',
  );
  const { worker } = overridden(
    OWN_SERVERS.replace('  worker:\n', `  worker:\n${lines.map((line) => `    ${line}\n`).join('')}`),
  );
  expect(worker?.secrets).not.toContain('redis_url');
  const config = configOf(worker as Service, 'PARTNER_BASE_URL=https://partner.example');
  expect(config.queues.redisUrl).toBeNull();
  expect(config.database.url?.read()).toContain('db.shop.example');
});

test('what .env sets reaches the worker, and no other container', () => {
  for (const [name, { env_file }] of Object.entries(base.services))
    expect(env_file, `service ${name}`).toEqual(
      name === 'worker' ? [{ path: '.env', required: false }] : undefined,
    );
  const worker = base.services['worker'] as Service;
  const example = read('.env.example').replace(/^PARTNER_BASE_URL=$/m, '$&https://partner.example');
  expect(configOf(worker, example)).toMatchObject({ rate: { share: 0.6 }, warnings: [] });
  const chosen = `${example}\nPARTNER_RATE_SHARE=0.95\nLOG_LEVEL=debug\nHTTP_ALLOWED_HOSTS=mirror.shop.example\n`;
  expect(configOf(worker, chosen)).toMatchObject({
    rate: { share: 0.95 },
    log: { level: 'debug' },
    http: { allowedHosts: ['worker', 'mirror.shop.example'] },
  });
});

test('the trial ignores a proxy that Docker injects into containers', () => {
  const injected = 'HTTP_PROXY=http://proxy:3128\nhttp_proxy=http://proxy:3128\n';
  const { partner } = configOf(base.services['sandbox-worker'] as Service, injected);
  expect(partner.proxy.http).toBeNull();
});

test('a secret both in .env and in its file is rejected by name, so neither silently wins', () => {
  const dotEnv = 'PARTNER_BASE_URL=https://partner.example\nPARTNER_SECRET=canary\n';
  const load = () => configOf(base.services['worker'] as Service, dotEnv);
  expect(load).toThrow(/PARTNER_SECRET: expected either PARTNER_SECRET or PARTNER_SECRET_FILE, not both/);
  expect(load).not.toThrow(/canary/);
});

test('our images are named after the project, so a second mirror runs its own checkout', () => {
  for (const [name, { image, build }] of Object.entries(base.services))
    if (build !== undefined)
      expect(image, `service ${name}`).toBe('${COMPOSE_PROJECT_NAME:-catalog-mirror}:local');
  expect(parse(read('docker-compose.yml'))).toMatchObject({ name: 'catalog-mirror' });
});

test('after the commands of ops/secrets/README.md every container can read its mounts, whatever the umask', () => {
  const folder = mkdtempSync(join(tmpdir(), 'catalog-mirror-mounts-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const root = new URL('../../', import.meta.url).pathname;
  for (const part of ['postgres', 'prometheus', 'grafana', 'secrets'])
    cpSync(join(root, 'ops', part), join(folder, 'ops', part), { recursive: true });
  execFileSync('chmod', ['-R', 'go-rwx', join(folder, 'ops')]);
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin/openssl'), '#!/bin/sh\necho 00ff\n');
  chmodSync(join(folder, 'bin/openssl'), 0o755);
  const [script = ''] = codeBlocks('sh').flatMap(({ page, text }) =>
    page === 'ops/secrets/README.md' && text.includes('chmod') ? [text] : [],
  );
  execFileSync('bash', ['-ec', `umask 077; ${script}`], {
    cwd: folder,
    env: { ...process.env, PATH: [join(folder, 'bin'), process.env['PATH']].join(delimiter) },
  });
  const mounts = Object.values(base.services).flatMap(({ volumes = [], secrets = [] }) => [
    ...volumes.flatMap((volume) => (volume.startsWith('./') ? [volume.split(':')[0] ?? ''] : [])),
    ...secrets.map((secret) => `./ops/secrets/${secret}`),
  ]);
  expect(mounts.length).toBeGreaterThan(8);
  for (const mount of mounts) {
    const unreadable = execFileSync('find', [mount, '!', '-perm', '-004'], { cwd: folder, encoding: 'utf8' });
    const closed = execFileSync('find', [mount, '-type', 'd', '!', '-perm', '-001'], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect([unreadable, closed], `mount ${mount}`).toEqual(['', '']);
  }
  expect(statSync(join(folder, 'ops/secrets')).mode & 0o077).toBe(0);
  // The trial needs no secrets, so its reader never sees that page.
  const line = script.split('\n').find((one) => one.startsWith('chmod -R')) ?? '';
  expect(readFileSync(join(root, 'docker-compose.yml'), 'utf8')).toContain(line.replaceAll('../', 'ops/'));
});
