import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { kindsOf, ROUTES } from '../../src/partner/errors.ts';
import { REJECTIONS } from '../../src/partner/manifest-lines.ts';
import { TASKS } from '../../src/store/tasks.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { NOW, own, STATS } from './stats.ts';

const PREFIX = 'catalog_mirror_';
const create = () => createMetrics({ version: '1.2.3', now: () => NOW });

/** A scrape in which every metric has a series. */
async function everySeries(): Promise<string> {
  const metrics = create();
  const refused = {
    outcome: 'unauthorised',
    times: 1,
    since: new Date(NOW),
    ownRequests: 1,
    ownMost: 1,
    suspected: 'nothing',
  };
  const task = { nextAt: new Date(NOW), running: false, startedAt: null, finishedAt: null };
  metrics.setMirrorStats({
    ...STATS,
    deltaCheckedAt: new Date(NOW),
    pace: { ...STATS.pace, refused },
    live: { computedPerMinute: 1, ceilingPerMinute: 2, longestWaitSeconds: 3 },
    tasks: TASKS.map((name) => ({
      ...task,
      task: name,
      succeededAt: new Date(NOW),
      failures: 0,
      outcome: null,
      progress: null,
    })),
  });
  return await metrics.text();
}

/** Our metrics as rows of the table in the README. */
async function table(): Promise<string[]> {
  const text = await everySeries();
  const samples = own(text);
  return [...text.matchAll(/^# HELP catalog_mirror_(\w+) (.*)\n# TYPE \S+ (\w+)$/gm)].map(
    ([, name, help, type]) => {
      const series = new RegExp(`^${PREFIX}${name}(?:_bucket)?(?:\\{(.*)\\})? `);
      const labels = samples.flatMap((line) => (series.exec(line)?.[1] ?? '').match(/\w+(?==")/g) ?? []);
      const shown = [...new Set(labels)].filter((label) => label !== 'le').map((label) => `\`${label}\``);
      return `| \`${name}\` | ${type} | ${shown.join(', ')} | ${help} |`;
    },
  );
}

test('the table in the README is the one the code has', async () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const rows = readme.split('\n').filter((line) => /^\| `\w+` \| (?:gauge|counter|histogram) \|/.test(line));
  expect(rows.toSorted()).toEqual((await table()).toSorted());
});

test('every outcome that is known beforehand has its series before it happens', async () => {
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
  // Codes of other routes, and what only a file can be.
  expect(lines.filter((line) => /route="bulk",outcome="(snapshot|file|url|sku)/.test(line))).toEqual([]);
});

const promtool = spawnSync('promtool', ['--version']).error === undefined;
test.skipIf(!promtool)('promtool finds nothing to say about our metrics', async () => {
  const text = (await everySeries())
    .split('\n')
    .filter((line) => line.replace(/^# (?:HELP|TYPE) /, '').startsWith(PREFIX))
    .join('\n');
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: `${text}\n`,
    encoding: 'utf8',
  });
  expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
});
