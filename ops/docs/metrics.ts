import { judge } from '../../src/status/health.ts';
import { TASKS } from '../../src/store/tasks.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { NOW, STATS } from '../../test/telemetry/stats.ts';

const PREFIX = 'catalog_mirror_';

/** A scrape in which every metric has a series. */
export async function everySeries(): Promise<string> {
  const metrics = createMetrics({ version: '1.2.3', now: () => NOW });
  const refused = {
    outcome: 'unauthorised',
    times: 1,
    since: new Date(NOW),
    ownRequests: 1,
    ownMost: 1,
    suspected: 'rate' as const,
  };
  const task = { nextAt: new Date(NOW), running: false, startedAt: null, finishedAt: null };
  const stats = {
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
  };
  metrics.setMirror({ stats, health: judge(null), storeFailure: null });
  return await metrics.text();
}

/** Our metrics by name, without their prefix: name, type, labels, help. */
export async function metricRows(): Promise<string[][]> {
  const text = await everySeries();
  const rows = [...text.matchAll(/^# HELP catalog_mirror_(\w+) (.*)\n# TYPE \S+ (\w+)$/gm)].map(
    ([, name = '', help = '', type = '']) => {
      const series = new RegExp(`^${PREFIX}${name}(?:_bucket)?(?:\\{(.*)\\})? `, 'gm');
      const labels = [...text.matchAll(series)].flatMap(
        ([, inside = '']) => inside.match(/\w+(?==")/g) ?? [],
      );
      const shown = [...new Set(labels)].filter((label) => label !== 'le').map((label) => `\`${label}\``);
      return [`\`${name}\``, type, shown.join(', '), help];
    },
  );
  return rows.toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1));
}
