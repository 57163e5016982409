import { expect, test } from 'vitest';
import type { Metric } from '../../src/telemetry/metrics/declaration.ts';
import { createMetrics, METRICS, PREFIX } from '../../src/telemetry/metrics/metrics.ts';
import { read } from './markdown.ts';

const page = read('docs/metrics.md');
const metrics = Object.entries<Metric>(METRICS);

test('the page says for each metric how to combine the series of several daemons', () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \| (?:counter|gauge|histogram) \| [^|]* \| `(sum|max)` \|/gm)];
  const told = Object.fromEntries(rows.map(([, name = '', how = '']) => [name, how]));
  // What a daemon counts itself starts at 0 with it; what is read from Postgres, every daemon shows.
  expect(told).toEqual(
    Object.fromEntries(metrics.map(([name, metric]) => [name, 'on' in metric ? 'sum' : 'max'])),
  );
});

test('the page names the metrics that are gauges of a single daemon', async () => {
  const text = await createMetrics({ version: '1' }).text();
  const own = metrics.flatMap(([name, metric]) =>
    !('on' in metric) && new RegExp(`^${PREFIX}${name}[ {]`, 'm').test(text) ? [name] : [],
  );
  const [, named = ''] = /\bOnly (.*?) are each daemon's own view/s.exec(page) ?? [];
  expect([...named.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(own.toSorted());
});
