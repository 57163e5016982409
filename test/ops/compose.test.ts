import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { DATASOURCE_UID } from '../../ops/grafana/dashboard.ts';
import { readArguments } from '../../src/cli/command.ts';
import { optionsOf, sandbox } from '../../src/cli/sandbox.ts';
import { loadConfig, VARIABLES } from '../../src/config/config.ts';
import { startSandbox } from '../../src/sandbox/index.ts';

const ROOT = new URL('../../', import.meta.url);
const SETTINGS = VARIABLES.map(({ name }) => name);
const yaml = (file: string): unknown => parse(readFileSync(new URL(file, ROOT), 'utf8'), { merge: true });

interface Service {
  readonly image: string;
  readonly profiles?: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly network_mode?: string;
  readonly command?: string | readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly build?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: readonly string[] | Readonly<Record<string, { readonly condition: string }>>;
}

const compose = yaml('docker-compose.yml') as {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
  secrets: Record<string, { file: string }>;
};
const service = (name: string): Service => compose.services[name] ?? { image: 'none' };
const prometheus = yaml('ops/prometheus/prometheus.yml') as {
  global: { scrape_interval: string };
  rule_files: string[];
  scrape_configs: { job_name: string; dns_sd_configs: { names: string[]; type: string; port: number }[] }[];
};
const sources = yaml('ops/grafana/provisioning/datasources/prometheus.yml') as {
  datasources: { uid: string; url: string; jsonData: { timeInterval: string } }[];
};
const providers = yaml('ops/grafana/provisioning/dashboards/catalog-mirror.yml') as {
  providers: { options: { path: string } }[];
};

/** Returns the file in the repository that is mounted at a container's path. */
function mounted(name: string, inside: string): string {
  for (const volume of service(name).volumes ?? []) {
    const [from = '', to = ''] = volume.split(':');
    if (from.startsWith('./') && inside.startsWith(to)) return from.slice(2) + inside.slice(to.length);
  }
  return 'not mounted';
}

test('every host port is on loopback, and every mount exists', () => {
  for (const [name, { ports = [], volumes = [] }] of Object.entries(compose.services)) {
    for (const port of ports) expect(port, `service ${name}`).toMatch(/^127\.0\.0\.1:/);
    for (const volume of volumes) {
      const [from = ''] = volume.split(':');
      if (from.startsWith('./')) expect(existsSync(new URL(from, ROOT)), `mount ${volume}`).toBe(true);
      else expect(Object.keys(compose.volumes)).toContain(from);
    }
  }
});

test('every secret is a file named in ops/secrets/README.md, and is read where it is mounted', () => {
  const readme = readFileSync(new URL('ops/secrets/README.md', ROOT), 'utf8');
  for (const [name, { file }] of Object.entries(compose.secrets)) {
    expect(file).toBe(`./ops/secrets/${name}`);
    expect(readme).toContain(`| \`${name}\` |`);
  }
  const used = new Set<string>();
  for (const [name, { environment = {}, secrets = [] }] of Object.entries(compose.services)) {
    const read = Object.entries(environment).filter(([variable]) => variable.endsWith('_FILE'));
    const inCommand = JSON.stringify(service(name).command ?? []).match(/\/run\/secrets\/\w+/g) ?? [];
    expect([...read.map(([, path]) => path), ...inCommand].toSorted(), `service ${name}`).toEqual(
      secrets.map((secret) => `/run/secrets/${secret}`).toSorted(),
    );
    for (const secret of secrets) used.add(secret);
  }
  expect([...used].toSorted()).toEqual(Object.keys(compose.secrets).toSorted());
});

test('every variable of our own services is a setting with a valid value', () => {
  const ours = Object.entries(compose.services).filter(([, { build }]) => build !== undefined);
  for (const [name, { environment = {} }] of ours) {
    // As compose fills it in: the part behind `:-`, or an address.
    const env = Object.fromEntries(
      Object.entries(environment).map(([variable, value]) => [
        variable,
        value.replace(/\$\{\w+:-(.*?)\}/, '$1') || 'https://partner.example',
      ]),
    );
    if (Object.keys(env).length === 0) continue;
    const urls = { '/run/secrets/database_url': 'postgres://h/d', '/run/secrets/redis_url': 'redis://:p@h' };
    const { warnings } = loadConfig(env, (path) => new Map(Object.entries(urls)).get(path) ?? 'given');
    expect(warnings, `service ${name}`).toEqual([]);
    const unknown = Object.keys(env).filter(
      (variable) => !SETTINGS.includes(variable.replace(/_FILE$/, '').toUpperCase()),
    );
    expect(unknown, `service ${name}`).toEqual([]);
  }
});

test('a service that is waited for is in the same profile and can become healthy', () => {
  for (const [name, { depends_on = {}, profiles = [] }] of Object.entries(compose.services)) {
    const waits = Array.isArray(depends_on)
      ? depends_on.map((other: string) => [other, { condition: 'service_started' }] as const)
      : Object.entries(depends_on as Readonly<Record<string, { readonly condition: string }>>);
    for (const [other, { condition }] of waits) {
      // A service without profiles always starts; one with profiles starts only with them.
      const comes =
        (service(other).profiles ?? []).length === 0 || service(other).profiles?.join() === profiles.join();
      expect(comes, `${name} waits for ${other}`).toBe(true);
      if (condition === 'service_healthy')
        expect(service(other).healthcheck?.test, `service ${other}`).toBeDefined();
    }
  }
});

/** Runs the shell of the image's HEALTHCHECK in a container whose process 1 has these arguments. */
async function healthOf(args: readonly string[], port: number, first = ['node', '--', 'dist/main.js']) {
  const dockerfile = readFileSync(new URL('Dockerfile', ROOT), 'utf8');
  const [, script = ''] = /^HEALTHCHECK .*\\\n {4}CMD ((?:.*\\\n)*.*)$/m.exec(dockerfile) ?? [];
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-health-'));
  const cmdline = join(folder, 'cmdline');
  await writeFile(cmdline, `${[...first, ...args].join('\0')}\0`);
  const here = script
    .replaceAll('/proc/1/cmdline', cmdline)
    .replace('127.0.0.1:8080', `127.0.0.1:${port}`)
    .replace('exec node dist/main.js healthcheck', 'echo daemon; exit 1');
  const child = spawn('sh', ['-c', here], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [said, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  await rm(folder, { recursive: true });
  return { said: `${said}${errors}`, code: code as unknown };
}

test('the image’s health check asks the sandbox or the daemon, and nothing beside other commands', async () => {
  await using open = await startSandbox({ skus: 1 });
  await using closed = await startSandbox({ skus: 1, controlToken: 'a-token-of-thirty-two-characters' });
  for (const { address } of [open, closed])
    expect(await healthOf(['sandbox', '--host', '0.0.0.0'], address.port)).toEqual({ said: '', code: 0 });
  expect([...open.requests, ...closed.requests]).toEqual([]);
  await open.close();
  expect(await healthOf(['sandbox'], open.address.port)).toEqual({ said: '', code: 1 });
  for (const args of [
    ['run'],
    ['run', '--once', '--timeout', 'sandbox'],
    ['--env-file', 'sandbox', 'run'],
    ['--env-file=sandbox', '--env-file', 'b.env'],
    ['--env-file=a.env'],
    ['--once'],
    [],
  ])
    expect(await healthOf(args, closed.address.port), `of ${args.join(' ')}`).toEqual({
      said: 'daemon\n',
      code: 1,
    });
  for (const args of [
    ['follow', '--name', 'shop', '--webhook', 'https://shop.example'],
    ['follow', '--name', 'sandbox'],
    ['--env-file', 'run', 'follow', '--name', 'run'],
    ['status', '--watch'],
    ['show', 'run'],
  ])
    expect(await healthOf(args, closed.address.port), `of ${args.join(' ')}`).toEqual({ said: '', code: 0 });
});

test('the health check also works behind an init, with the command on PATH, or with another program', async () => {
  const node = ['node', '--max-semi-space-size=4', '--'];
  for (const first of [
    ['/sbin/docker-init', '--', ...node, 'dist/main.js'],
    [...node, '/app/dist/bin.js'],
    ['/sbin/docker-init', '--', 'catalog-mirror'],
    ['/usr/bin/tini', '--', '/usr/local/bin/catalog-mirror'],
    ['/bin/sh', '/usr/local/bin/catalog-mirror'],
  ]) {
    for (const args of [['run'], ['--env-file', 'a.env', 'run', '--once'], []])
      expect(await healthOf(args, 1, first)).toEqual({ said: 'daemon\n', code: 1 });
    expect(await healthOf(['sandbox'], 1, first)).toEqual({ said: '', code: 1 });
    expect(await healthOf(['follow', '--name', 'run'], 1, first)).toEqual({ said: '', code: 0 });
  }
  expect(await healthOf(['3600'], 1, ['sleep'])).toEqual({ said: '', code: 0 });
});

test('the sandbox of compose is reachable from the host and accepts command line options', () => {
  const { command, ports, healthcheck } = service('sandbox') as unknown as Record<string, string | string[]>;
  expect(ports).toContain('127.0.0.1:${SANDBOX_PORT:-8080}:8080');
  const words = String(command)
    .replace('${SANDBOX_OPTIONS:-}', '--log --control-token=0123456789abcdef')
    .split(' ');
  expect(words.shift()).toBe('sandbox');
  const { values } = readArguments(sandbox, words);
  expect(optionsOf(values)).toMatchObject({ host: '0.0.0.0', port: 8080, controlToken: '0123456789abcdef' });
  expect(JSON.stringify(healthcheck)).toContain(
    "get('http://127.0.0.1:8080/sandbox/state', { agent: false }",
  );
});

test('our image has the daemon’s health check by default, and a service that is no daemon its own', () => {
  expect(readFileSync(new URL('Dockerfile', ROOT), 'utf8')).toMatch(
    /^HEALTHCHECK (?:.*\\\n)*.* healthcheck;; \\$/m,
  );
  const ours = Object.entries(compose.services).filter(([, { build }]) => build !== undefined);
  expect(ours.length).toBeGreaterThan(1);
  for (const [name, { environment, healthcheck }] of ours)
    expect(healthcheck === undefined, `service ${name}`).toBe(
      environment?.['PARTNER_BASE_URL'] !== undefined,
    );
});

test('Prometheus and Grafana come with the profile `monitoring`', () => {
  for (const name of ['prometheus', 'grafana']) expect(service(name).profiles).toEqual(['monitoring']);
});

test('Prometheus reads its configuration and both rule files from the mount', () => {
  expect(existsSync(new URL(mounted('prometheus', '/etc/prometheus/prometheus.yml'), ROOT))).toBe(true);
  expect(prometheus.rule_files.toSorted()).toEqual(['alerts.yml', 'recording.yml']);
  for (const file of prometheus.rule_files)
    expect(existsSync(new URL(mounted('prometheus', `/etc/prometheus/${file}`), ROOT)), `file ${file}`).toBe(
      true,
    );
});

test('Prometheus finds each daemon by DNS, with a job per mirror, so one that is not started is no target', () => {
  for (const job of prometheus.scrape_configs) {
    expect(Object.keys(job)).toEqual(['job_name', 'dns_sd_configs']);
    expect(job.job_name).toMatch(/^catalog-mirror/);
  }
  const found = prometheus.scrape_configs.map(({ dns_sd_configs: [found] }) => found);
  expect(found.map((one) => [one?.names.length, one?.type])).toEqual(found.map(() => [1, 'A']));
  const targets = found.map((one) => `${one?.names[0]}:${one?.port}`);
  // The address of a daemon: its own, or that of the service whose network it shares.
  const daemons = Object.entries(compose.services)
    .filter(([, { environment }]) => environment?.['PARTNER_BASE_URL'] !== undefined)
    .map(([name, { network_mode }]) => network_mode?.replace('service:', '') ?? name);
  expect(targets.toSorted()).toEqual(daemons.map((name) => `${name}:9464`).toSorted());
  for (const name of daemons)
    expect(
      service(name).ports?.some((port) => port.endsWith(':9464')),
      `service ${name}`,
    ).toBe(true);
  expect(readFileSync(new URL('Dockerfile', ROOT), 'utf8')).toContain('EXPOSE 9464');
});

test('a daemon accepts the host name by which other containers call it', () => {
  for (const { environment, network_mode } of Object.values(compose.services)) {
    if (environment?.['PARTNER_BASE_URL'] === undefined) continue;
    const name = network_mode?.replace('service:', '') ?? 'worker';
    expect(environment['HTTP_ALLOWED_HOSTS']?.split(',')).toContain(name);
  }
});

test('Grafana is provisioned with this Prometheus and the dashboard', () => {
  const [source] = sources.datasources;
  expect(source).toMatchObject({ uid: DATASOURCE_UID, url: 'http://prometheus:9090' });
  expect(source?.jsonData.timeInterval).toBe(prometheus.global.scrape_interval);
  const folder = providers.providers[0]?.options.path ?? '';
  expect(mounted('grafana', folder)).toBe('ops/grafana/dashboards');
  expect(existsSync(new URL(`${mounted('grafana', folder)}/catalog-mirror.json`, ROOT))).toBe(true);
  const home = service('grafana').environment?.['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH'] ?? '';
  expect(existsSync(new URL(mounted('grafana', home), ROOT))).toBe(true);
  for (const file of ['datasources/prometheus.yml', 'dashboards/catalog-mirror.yml'])
    expect(existsSync(new URL(mounted('grafana', `/etc/grafana/provisioning/${file}`), ROOT))).toBe(true);
});

test('the instructions for a second mirror name the variable of every host port', () => {
  const ports = Object.values(compose.services).flatMap((one) => one.ports ?? []);
  const names = ports.flatMap((port) => /\$\{(\w+):-/.exec(port)?.[1] ?? []);
  expect(names).toHaveLength(ports.length);
  const [, told = ''] = readFileSync(new URL('docs/running.md', ROOT), 'utf8').split(
    '**A second mirror on one host**',
  );
  const [section = ''] = told.split('Every container runs');
  expect(names.filter((name) => !section.includes(name))).toEqual([]);
  expect(section).toContain('docker compose -p ');
});
