import { existsSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FILES } from '../../ops/docs/repository.ts';
import { DATASOURCE_UID } from '../../ops/grafana/dashboard.ts';
import type { Metric } from '../../src/telemetry/metrics/declaration.ts';
import { createMetrics, METRICS, PREFIX } from '../../src/telemetry/metrics/metrics.ts';
import {
  ALERT_RULES,
  DASHBOARD,
  DASHBOARD_TEXT,
  MARK_EXPRESSIONS,
  PANEL_EXPRESSIONS,
  RECORDING_RULES,
  RULE_EXPRESSIONS,
  selectorsOf,
} from '../ops/expressions.ts';
import { scrapeOf, STATS } from '../telemetry/stats.ts';

const ROOT = new URL('../../', import.meta.url);
const panels = DASHBOARD.panels.filter(({ type }) => type !== 'row');
const everything = [...PANEL_EXPRESSIONS, ...MARK_EXPRESSIONS, ...RULE_EXPRESSIONS];

test('every panel has a title, a description, a unit and a legend', () => {
  expect(panels.length).toBeGreaterThan(30);
  for (const { title, description, fieldConfig, datasource, targets = [] } of panels) {
    expect(`${title}. ${description}`).toMatch(/^[A-Z].{3,}\. .{20,}[.:)]$/);
    expect(fieldConfig?.defaults.unit, `panel ${title}`).toMatch(/^\w+$/);
    expect(datasource?.uid, `panel ${title}`).toBe('${datasource}');
    expect(targets.length, `panel ${title}`).toBeGreaterThan(0);
    for (const { expr, legendFormat } of targets) {
      expect(expr, `panel ${title}`).toMatch(/\w/);
      expect(legendFormat, `panel ${title}`).toMatch(/\w/);
    }
    expect(new Set(targets.map(({ refId }) => refId)).size, `panel ${title}`).toBe(targets.length);
  }
  expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  expect(new Set(DASHBOARD.panels.map(({ id }) => id)).size).toBe(DASHBOARD.panels.length);
});

test('every label in a legend is kept by its expression', () => {
  const lost = panels.flatMap(({ title, targets = [] }) =>
    targets.flatMap(({ expr, legendFormat }) =>
      [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)]
        .map(([, label = '']) => label)
        // Recorded series and plain selectors keep their labels.
        .filter(
          (label) => / by \(|max |sum /.test(expr) && !new RegExp(`by \\([^)]*\\b${label}\\b`).test(expr),
        )
        .map((label) => `${title}: ${label}`),
    ),
  );
  expect(lost).toEqual([]);
});

test('a panel that shows names has a colour for every possible name', async () => {
  const metrics = createMetrics({ version: '1' });
  metrics.setMirror(scrapeOf(STATS));
  const text = await metrics.text();
  const named = panels.filter(({ fieldConfig }) => (fieldConfig?.overrides.length ?? 0) > 0);
  expect(named.map(({ title }) => title)).toEqual(['State', 'Catalog']);
  for (const { title, targets = [], fieldConfig } of named) {
    const [{ metric } = { metric: '?' }] = selectorsOf(targets[0]?.expr ?? '');
    const states = [...text.matchAll(new RegExp(`^${metric}\\{state="([^"]+)"\\}`, 'gm'))].map(
      ([, state]) => state,
    );
    expect(states.length, `panel ${title}`).toBeGreaterThan(2);
    const coloured = fieldConfig?.overrides.map(({ matcher }) => matcher.options);
    expect(new Set(coloured), `panel ${title}`).toEqual(new Set(states));
  }
});

test('the panels fill their rows and do not overlap', () => {
  const taken = new Set<string>();
  for (const { title, gridPos } of DASHBOARD.panels) {
    expect(gridPos.x + gridPos.w, `panel ${title}`).toBeLessThanOrEqual(24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect(taken.has(`${x},${y}`), `panel ${title}`).toBe(false);
        taken.add(`${x},${y}`);
      }
    }
  }
  expect(taken.size % 24).toBe(0);
});

test('every link leads to a file in the repository', () => {
  const urls = [DASHBOARD, ...DASHBOARD.panels].flatMap(({ links = [] }) => links.map(({ url }) => url));
  expect(urls.length).toBeGreaterThan(15);
  for (const url of urls) {
    expect(url).toMatch(/^\$\{repository\}\//);
    expect(existsSync(new URL(url.replace('${repository}/', ''), ROOT)), `link ${url}`).toBe(true);
  }
});

test('every runbook is linked from a panel', () => {
  const linked = DASHBOARD.panels.flatMap(({ links = [] }) => links.map(({ url }) => url.split('/').at(-1)));
  const books = readdirSync(new URL('ops/runbooks/', ROOT));
  expect(books.filter((book) => !linked.includes(book))).toEqual([]);
});

test('only the known variables are used, and the data source is the provisioned one', () => {
  const { list } = DASHBOARD.templating;
  expect(list.map(({ name }) => name)).toEqual(['datasource', 'job', 'instance', 'repository']);
  expect(list[0]?.current?.value).toBe(DATASOURCE_UID);
  const used = new Set([...DASHBOARD_TEXT.matchAll(/\$\{?(\w+)/g)].map(([, name]) => name));
  expect(used).toEqual(new Set(['__all', '__rate_interval', 'datasource', 'job', 'instance', 'repository']));
});

test('a panel shows only the chosen mirror, or all mirrors by name', () => {
  for (const { title, targets = [] } of panels) {
    for (const { expr, legendFormat } of targets) {
      const all = /by \(job\b/.test(expr);
      expect(all, `panel ${title}`).toBe(title.includes('ll mirrors'));
      if (all) expect(legendFormat, `panel ${title}`).toContain('{{job}}');
      for (const [, inside] of expr.matchAll(/\b(?:catalog_mirror[_:]|process_|nodejs_)[\w:]+(\{[^}]*\})?/g))
        expect(inside?.includes('job="$job"') ?? false, `panel ${title}: ${expr}`).toBe(!all);
    }
  }
  expect(new Set(ALERT_RULES.map(({ alert }) => alert)).size).toBeGreaterThan(10);
});

test('the mirror is chosen before its daemons, one at a time', () => {
  const [, job, instance] = DASHBOARD.templating.list;
  expect(job?.query).toMatchObject({ query: 'label_values(catalog_mirror_build_info, job)' });
  expect(job?.multi ?? false).toBe(false);
  expect(job?.includeAll ?? false).toBe(false);
  expect(instance?.query).toMatchObject({
    query: 'label_values(catalog_mirror_build_info{job="$job"}, instance)',
  });
});

test('links lead to the repository of package.json by default', () => {
  const variable = DASHBOARD.templating.list.find(({ name }) => name === 'repository');
  expect(variable?.query).toBe(FILES);
});

test('values read from Postgres are not summed over daemons, and counters of daemons are', () => {
  const counted = Object.entries<Metric>(METRICS).flatMap(([name, metric]) => ('on' in metric ? [name] : []));
  for (const { where, expr } of everything) {
    for (const { metric } of selectorsOf(expr)) {
      const name = metric.replace(/^catalog_mirror_/, '');
      if (name === metric || name === 'build_info' || name === 'mirror_stats_available') continue;
      const isCounted = counted.some((each) => name === each || name.startsWith(`${each}_`));
      const inside = new RegExp(`(\\w+)(?: by \\([^)]*\\))? \\(\\s*(?:\\w+\\()?${metric}\\b`);
      const bare = new RegExp(`(sum|max)\\((?:\\w+\\()?${metric}\\b`);
      const by = inside.exec(expr)?.[1] ?? bare.exec(expr)?.[1];
      expect(by, `${where}: ${metric}`).toBe(isCounted ? 'sum' : 'max');
    }
  }
});

test('every metric of ours is used on the dashboard or in a rule', () => {
  const exported = Object.keys(METRICS).map((name) => PREFIX + name);
  const used = new Set(
    everything.flatMap(({ expr }) =>
      selectorsOf(expr).flatMap(({ metric }) => [metric, metric.replace(/_(?:bucket|sum|count)$/, '')]),
    ),
  );
  expect(exported.filter((name) => !used.has(name))).toEqual([]);
  const known = new Set([
    ...exported,
    ...exported.flatMap((name) => ['_bucket', '_sum', '_count'].map((end) => name + end)),
    ...RECORDING_RULES.map(({ record }) => record),
  ]);
  expect([...used].filter((name) => name.startsWith('catalog_mirror') && !known.has(name))).toEqual([]);
  expect(ALERT_RULES.length).toBeGreaterThan(10);
});
