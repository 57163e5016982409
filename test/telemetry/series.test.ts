import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { kindsOf, ROUTES } from '../../src/partner/errors.ts';
import { REJECTIONS } from '../../src/partner/manifest-lines.ts';
import { createMetrics, METRICS } from '../../src/telemetry/metrics/metrics.ts';
import { everyMetric, own, scrapeOf, STATS } from './stats.ts';

const PREFIX = 'catalog_mirror_';
const create = () => createMetrics({ version: '1.2.3' });

test('every known outcome has a series before it happens', async () => {
  const lines = own(await create().text());
  const requests = ROUTES.flatMap((route) =>
    ['ok', ...kindsOf(route)].map(
      (outcome) => `${PREFIX}partner_requests_total{route="${route}",outcome="${outcome}"} 0`,
    ),
  );
  const rejections = REJECTIONS.map(
    (reason) => `${PREFIX}manifest_rejected_lines_total{reason="${reason}"} 0`,
  );
  expect(requests).toHaveLength(new Set(requests).size);
  const wanted = [
    ...requests,
    ...rejections,
    'partner_requests_total{route="bulk",outcome="throttled-or-forbidden"} 0',
    'partner_requests_total{route="manifest-file",outcome="url-expired"} 0',
    'partner_requests_total{route="delta",outcome="snapshot-expired"} 0',
    'syncs_total{kind="manifest",outcome="shrunk"} 0',
    'syncs_total{kind="manifest",outcome="file-corrupt"} 0',
    'syncs_total{kind="delta",outcome="disk-full"} 0',
    'rebaselines_total{because="chain-broken"} 0',
    'jobs_total{queue="reprice",outcome="fault"} 0',
    'jobs_total{queue="delta",outcome="postponed"} 0',
    'job_duration_seconds_count{queue="manifest",outcome="failed"} 0',
    'partner_request_wait_seconds_count{lane="delta"} 0',
    'partner_request_put_offs_total{lane="reprice",because="silence"} 0',
    'change_latency_seconds_count 0',
    'unreadable_records_total{source="bulk"} 0',
  ].map((line) => (line.startsWith(PREFIX) ? line : PREFIX + line));
  expect(lines).toEqual(expect.arrayContaining(wanted));
  // Codes of other routes, and outcomes that only a file can have.
  expect(lines.filter((line) => /route="bulk",outcome="(snapshot|file|url|sku)/.test(line))).toEqual([]);
});

test('test/telemetry/every-metric.txt shows a value for every metric', async () => {
  const lines = own(await everyMetric());
  const fed = (name: string) =>
    lines.some(
      (line) => line.replace(/_count(?=[{ ])/, '').split(/[{ ]/)[0] === PREFIX + name && !line.endsWith(' 0'),
    );
  expect(Object.keys(METRICS).filter((name) => !fed(name))).toEqual([]);
});

/** Names that sellers might give to their sources. */
const STRANGE = [
  'line\nbreak',
  'carriage\rreturn',
  'a "quoted" {name="x"} 1',
  String.raw`back\slash\n`,
  '\u2028\u0001\t#',
  '商'.repeat(60),
  '👟'.repeat(60),
];

/** Returns a scrape with these sources of hints. */
async function withSources(sources: readonly string[]): Promise<string> {
  const metrics = create();
  const numbers = { hints: 1, refreshesBroughtForward: 1, precision: 0.5, recall: 0.5, waiting: 1 };
  metrics.setMirror(
    scrapeOf({ ...STATS, hints: { unread: 0, sources: sources.map((source) => ({ source, ...numbers })) } }),
  );
  return await metrics.text();
}

test('a source of hints has one series per metric, whatever its name', async () => {
  const lines = own(await withSources(STRANGE)).filter((line) => line.includes('hints_total'));
  const names = lines.map(
    (line) => /^catalog_mirror_hints_total\{source=("(?:[^"\\]|\\.)*")\} 1$/su.exec(line)?.[1] ?? '',
  );
  const read = names.map((name) =>
    name.slice(1, -1).replace(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter)),
  );
  expect(read).toEqual(STRANGE);
});

const promtool = spawnSync('promtool', ['--version']).error === undefined;
test.skipIf(!promtool).each([
  ['our metrics', () => everyMetric()],
  ['sources of strange names', () => withSources(STRANGE)],
  ['a whole scrape, the metrics of Node.js included', () => createMetrics({ version: '1' }).text()],
])('promtool accepts %s', async (_, text) => {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: await text(),
    encoding: 'utf8',
  });
  expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
});
