import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { VARIABLES } from '../../src/config/config.ts';
import { codeBlocks, read } from '../docs/markdown.ts';

const OPS = new URL('../../ops/', import.meta.url);
const text = (file: string) => readFileSync(new URL(file, OPS), 'utf8');

/*
 * What the files may contain, by the operator's custom resources (monitoring.coreos.com/v1). The API server
 * silently drops a misspelt member, so every object is strict.
 */
const NAME = z.string().regex(/^[a-z]([-a-z0-9]*[a-z0-9])?$/);
const DURATION = z.string().regex(/^(\d+(ms|s|m|h|d|w|y))+$/);
const METADATA = z.strictObject({ name: NAME, labels: z.record(z.string(), NAME) });
const TEXTS = z.record(z.string().regex(/^[a-z_]+$/), z.string());
const RULE = z.union([
  z.strictObject({ record: z.string().regex(/^[a-zA-Z_:][\w:]*$/), expr: z.string() }),
  z.strictObject({
    alert: z.string().regex(/^\w+$/),
    expr: z.string(),
    for: DURATION.optional(),
    labels: TEXTS,
    annotations: TEXTS,
  }),
]);
const PROMETHEUS_RULE = z.strictObject({
  apiVersion: z.literal('monitoring.coreos.com/v1'),
  kind: z.literal('PrometheusRule'),
  metadata: METADATA,
  spec: z.strictObject({
    groups: z.array(
      z.strictObject({ name: z.string(), interval: DURATION.optional(), rules: z.array(RULE) }),
    ),
  }),
});
const SERVICE = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Service'),
  metadata: METADATA,
  spec: z.strictObject({
    clusterIP: z.literal('None'),
    publishNotReadyAddresses: z.boolean(),
    selector: z.record(z.string(), z.string()),
    ports: z.array(z.strictObject({ name: NAME, port: z.int(), targetPort: z.string() })),
  }),
});
const SERVICE_MONITOR = z.strictObject({
  apiVersion: z.literal('monitoring.coreos.com/v1'),
  kind: z.literal('ServiceMonitor'),
  metadata: METADATA,
  spec: z.strictObject({
    selector: z.strictObject({ matchLabels: z.record(z.string(), z.string()) }),
    endpoints: z.array(
      z.strictObject({
        port: NAME,
        path: z.string(),
        interval: DURATION,
        authorization: z
          .strictObject({
            type: z.string(),
            credentials: z.strictObject({ name: NAME, key: z.string() }),
          })
          .optional(),
        relabelings: z.array(
          z.strictObject({
            sourceLabels: z.array(z.string()),
            separator: z.string(),
            targetLabel: z.string(),
          }),
        ),
      }),
    ),
  }),
});

interface Deployment {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Record<string, string> };
      readonly spec: {
        readonly containers: readonly {
          readonly env: readonly { readonly name: string; readonly value: string }[];
          readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
        }[];
        readonly volumes: readonly { readonly secret: { readonly secretName: string } }[];
      };
    };
  };
}

const [service, monitor] = parseAllDocuments(text('kubernetes/service-monitor.yaml')).map((document) =>
  document.toJS(),
) as unknown[];
const deployment = codeBlocks('yaml')
  .map((block) => parse(block.text, { logLevel: 'error' }) as Deployment)
  .find(({ kind }) => kind === 'Deployment');

test('the PrometheusRule contains exactly the shipped rules', () => {
  const resource = PROMETHEUS_RULE.parse(parse(text('kubernetes/prometheus-rule.yaml')));
  const shipped = ['recording.yml', 'alerts.yml'].flatMap(
    (file) => (parse(text(`prometheus/${file}`)) as { groups: unknown[] }).groups,
  );
  expect(shipped.length).toBe(2);
  expect(resource.spec).toEqual({ groups: shipped });
});

test('the Service selects the pods of the documented Deployment, at their port', () => {
  const { spec } = SERVICE.parse(service);
  const pod = deployment?.spec.template;
  expect(pod?.metadata.labels).toMatchObject(spec.selector);
  const [port] = pod?.spec.containers[0]?.ports ?? [];
  expect(spec.ports.map(({ port: number, targetPort }) => [targetPort, number])).toEqual([
    [port?.name, port?.containerPort],
  ]);
});

test('the ServiceMonitor selects that Service, with the password of that Deployment', () => {
  const { metadata, spec: serves } = SERVICE.parse(service);
  const { spec } = SERVICE_MONITOR.parse(monitor);
  expect(metadata.labels).toMatchObject(spec.selector.matchLabels);
  const [endpoint] = spec.endpoints;
  expect(spec.endpoints.length).toBe(1);
  expect(serves.ports.map(({ name }) => name)).toContain(endpoint?.port);
  expect(endpoint?.path).toBe('/metrics');
  const pod = deployment?.spec.template.spec;
  expect(endpoint?.authorization?.credentials.name).toBe(pod?.volumes[0]?.secret.secretName);
  const file = pod?.containers[0]?.env.find(({ name }) => name === 'HTTP_PASSWORD_FILE');
  expect(VARIABLES.find(({ name }) => name === 'HTTP_PASSWORD')?.secret).toBe(true);
  expect(file?.value.split('/').at(-1)).toBe(endpoint?.authorization?.credentials.key);
});

test('without the authorization line the monitor is still valid, and both places say when to remove it', () => {
  const without = text('kubernetes/service-monitor.yaml').replace(/^ +authorization: .*\n/m, '');
  const [, open] = parseAllDocuments(without).map((document) => document.toJS() as unknown);
  const endpoint = SERVICE_MONITOR.parse(open).spec.endpoints[0];
  expect(endpoint).toEqual({ ...SERVICE_MONITOR.parse(monitor).spec.endpoints[0], authorization: undefined });
  expect(without).toMatch(/Without that key take the line out/);
  const [, bullet = ''] = read('docs/running.md').split(
    "Without the secret's key `http_password`, leave out",
  );
  expect(bullet.split('\n- ')[0]).toContain('the line `authorization` of [service-monitor.yaml]');
});

test('the job is the namespace and the Service, so mirrors in two namespaces are two jobs', () => {
  const { spec } = SERVICE_MONITOR.parse(monitor);
  expect(spec.endpoints[0]?.relabelings).toEqual([
    {
      sourceLabels: ['__meta_kubernetes_namespace', '__meta_kubernetes_service_name'],
      separator: '/',
      targetLabel: 'job',
    },
  ]);
  // The name by which CatalogMirrorAbsent recognises it although it has never answered.
  const [, pattern = ''] = /up\{job=~"([^"]+)"\}/.exec(text('prometheus/alerts.yml')) ?? [];
  const job = `shop/${SERVICE.parse(service).metadata.name}`;
  expect(job).toMatch(new RegExp(`^(?:${pattern})$`));
  expect('shop/other').not.toMatch(new RegExp(`^(?:${pattern})$`));
});

test('the schema rejects a misspelt member', () => {
  const wrong = structuredClone(monitor) as { spec: { endpoints: Record<string, unknown>[] } };
  Object.assign(wrong.spec.endpoints[0] ?? {}, { intervall: '15s' });
  expect(SERVICE_MONITOR.safeParse(wrong).success).toBe(false);
});
