import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { VARIABLES } from '../../src/config/config.ts';
import { SCAN_WITHIN_MS } from '../../src/store/connection/db.ts';
import { codeBlocks, PAGES, read } from './markdown.ts';
import { callsIn, checkCall } from './shell.ts';

interface Deployment {
  kind: string;
  spec: {
    replicas: number;
    selector: { matchLabels: Record<string, string> };
    template: {
      spec: {
        terminationGracePeriodSeconds: number;
        automountServiceAccountToken: boolean;
        securityContext: { runAsUser: number };
        containers: {
          resources: { requests: Record<string, string>; limits: Record<string, string> };
          securityContext: object;
          env: { name: string; value: string }[];
          ports: { containerPort: number }[];
          startupProbe: { httpGet: { path: string }; periodSeconds: number; failureThreshold: number };
          livenessProbe: { httpGet: { path: string } };
          readinessProbe: { httpGet: { path: string } };
          volumeMounts: { name: string; mountPath: string }[];
        }[];
        volumes: { name: string }[];
      };
    };
  };
}

/** Our own variables that the environment may contain. */
const known = VARIABLES.flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name]));
/**
 * Variables of Node.js and of terminals, the pattern for secrets in files, and what only docker-compose.yml reads.
 */
const OTHERS = [
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_SYSTEM_CA',
  'NODE_OPTIONS',
  'NO_COLOR',
  'FORCE_COLOR',
  'NAME_FILE',
  'SANDBOX_OPTIONS',
  'SANDBOX_PORT',
  'SANDBOX_METRICS_PORT',
  'SANDBOX_POSTGRES_PORT',
  'PROMETHEUS_PORT',
  'GRAFANA_PORT',
  // Node.js reads it itself (docs/connections.md).
  'NODE_USE_ENV_PROXY',
  // The exporter of traces reads these itself (docs/traces.md).
  'OTEL_RESOURCE_ATTRIBUTES',
  'OTEL_EXPORTER_OTLP_TIMEOUT',
  'OTEL_EXPORTER_OTLP_COMPRESSION',
  'OTEL_EXPORTER_OTLP_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_CLIENT_KEY',
  'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE',
];

test('every environment variable named on a page is a setting', () => {
  const named = PAGES.flatMap((page) =>
    [...read(page).matchAll(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`/g)].map(([, name = '']) => name),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((name) => !known.includes(name) && !OTHERS.includes(name))).toEqual([]);
});

// Without warnings about compose's tags.
const yaml = codeBlocks('yaml').map(
  ({ page, text }) => [page, parse(text, { logLevel: 'error' }) as unknown] as const,
);

test('the Deployment fits the image: user, port, probes, variables, mounts', () => {
  const [deployment] = yaml.map(([, text]) => text as Deployment).filter(({ kind }) => kind === 'Deployment');
  const pod = deployment?.spec.template.spec;
  const [container] = pod?.containers ?? [];
  const dockerfile = read('Dockerfile');
  expect(dockerfile).toContain(`USER ${pod?.securityContext.runAsUser}:`);
  expect(dockerfile).toContain(`EXPOSE ${container?.ports[0]?.containerPort}\n`);
  expect(container?.livenessProbe.httpGet.path).toBe('/livez');
  expect(container?.readinessProbe.httpGet.path).toBe('/readyz');
  // Longer than the minute for which the daemon waits for Postgres before it gives up with its own message, plus a
  // statement of a migration.
  const { httpGet, periodSeconds, failureThreshold } = container?.startupProbe ?? {};
  expect(httpGet?.path).toBe('/livez');
  expect((periodSeconds ?? 0) * (failureThreshold ?? 0) * 1000).toBeGreaterThan(60_000 + SCAN_WITHIN_MS);
  // SIGTERM ends the daemon within ten seconds.
  expect(pod?.terminationGracePeriodSeconds).toBeGreaterThan(10);
  expect(container?.env.map(({ name }) => name).filter((name) => !known.includes(name))).toEqual([]);
  expect(container?.volumeMounts.map(({ name }) => name)).toEqual(pod?.volumes.map(({ name }) => name));
  const folders = container?.volumeMounts.map(({ mountPath }) => `${mountPath}/`) ?? [];
  for (const { name, value } of container?.env ?? [])
    if (name.endsWith('_FILE')) expect(folders.some((folder) => value.startsWith(folder))).toBe(true);
});

test('the Deployment grants nothing that the daemon does not need', () => {
  const [deployment] = yaml.map(([, text]) => text as Deployment).filter(({ kind }) => kind === 'Deployment');
  const pod = deployment?.spec.template.spec;
  expect(pod).toMatchObject({
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  });
  expect(pod?.containers.length).toBeGreaterThan(0);
  for (const container of pod?.containers ?? []) {
    expect(container.securityContext).toEqual({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
    expect(Object.keys(container.resources.requests).toSorted()).toEqual(['cpu', 'memory']);
    expect(container.resources.limits['memory']).toMatch(/^\d+Gi$/);
  }
});

interface NetworkPolicy {
  kind: string;
  spec: {
    podSelector: { matchLabels: Record<string, string> };
    policyTypes: string[];
    ingress: { from?: object[]; ports: { port: number }[] }[];
    egress: { ports: { port: number }[] }[];
  };
}

test('the NetworkPolicy selects these pods, and admits only the named clients to the metrics port', () => {
  const [deployment] = yaml.map(([, text]) => text as Deployment).filter(({ kind }) => kind === 'Deployment');
  const [policy] = yaml
    .map(([, text]) => text as NetworkPolicy)
    .filter(({ kind }) => kind === 'NetworkPolicy');
  expect(policy?.spec.podSelector).toEqual(deployment?.spec.selector);
  expect(policy?.spec.policyTypes).toEqual(['Ingress', 'Egress']);
  for (const { from, ports } of policy?.spec.ingress ?? []) {
    // Prometheus, and with HTTP_ALLOWED_HOSTS the Ingress.
    const env = deployment?.spec.template.spec.containers[0]?.env ?? [];
    expect(from?.length).toBe(env.some(({ name }) => name === 'HTTP_ALLOWED_HOSTS') ? 2 : 1);
    expect(ports.map(({ port }) => port)).toEqual([
      deployment?.spec.template.spec.containers[0]?.ports[0]?.containerPort,
    ]);
  }
  const out = policy?.spec.egress.flatMap(({ ports }) => ports.map(({ port }) => port)) ?? [];
  expect([...new Set(out)].toSorted((a, b) => a - b)).toEqual([53, 443, 5432, 6379]);
});

test('the PodDisruptionBudget selects these pods, and lets one of them go', () => {
  const [deployment] = yaml.map(([, text]) => text as Deployment).filter(({ kind }) => kind === 'Deployment');
  const [budget] = yaml
    .map(([, text]) => text as { kind: string; spec: { minAvailable: number; selector: object } })
    .filter(({ kind }) => kind === 'PodDisruptionBudget');
  expect(budget?.spec.selector).toEqual(deployment?.spec.selector);
  expect(deployment?.spec.replicas).toBeGreaterThan(budget?.spec.minAvailable ?? Infinity);
});

const hasAnalyzer = spawnSync('systemd-analyze', ['--version']).status === 0;

test('the unit grants nothing that the daemon does not need', async ({ skip }) => {
  const unit = codeBlocks('ini')[0]?.text ?? '';
  const lines = unit.split('\n');
  for (const line of ['NoNewPrivileges=yes', 'ProtectSystem=strict', 'CapabilityBoundingSet=', 'LimitCORE=0'])
    expect(lines).toContain(line);
  expect(lines.some((line) => /^User=(?!root)/.test(line))).toBe(true);
  skip(!hasAnalyzer, 'no systemd-analyze here');
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-unit-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'catalog-mirror.service');
  await writeFile(file, unit);
  // It rates exposure from 0 to 10; up to 2.0 is "OK".
  const security = ['security', '--offline=true', '--no-pager', '--threshold=20', file];
  const { status, stdout } = spawnSync('systemd-analyze', security, { encoding: 'utf8' });
  expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringContaining('OK') });
  const { stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
  expect(stderr.split('\n').filter((line) => line.includes(file))).toEqual([]);
});

test('the unit runs a valid command, and does not restart after a wrong setting', () => {
  const [unit] = codeBlocks('ini');
  const calls = callsIn(unit?.text ?? '');
  expect(calls).toEqual([['run']]);
  for (const call of calls) expect(() => checkCall(call)).not.toThrow();
  expect(unit?.text).toContain('RestartPreventExitStatus=78');
});

test('every documented supervisor restarts the daemon indefinitely, with a delay', () => {
  const [section = '', service = ''] = codeBlocks('ini')[0]?.text.split('[Service]') ?? [];
  // Without it, systemd gives up after five starts within ten seconds.
  expect(section).toContain('\nStartLimitIntervalSec=0\n');
  expect(service).toContain('\nRestart=on-failure\nRestartSec=5\n');
  const detached = codeBlocks('sh').flatMap(({ text }) =>
    text
      .replaceAll('\\\n', '')
      .split('\n')
      .filter((line) => line.startsWith('docker run -d ')),
  );
  expect(detached.length).toBeGreaterThan(0);
  for (const line of detached) expect(line).toContain(' --restart unless-stopped ');
});
