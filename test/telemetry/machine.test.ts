import { describe, expect, test } from 'vitest';
import { judgeHealth, NO_OWN_FACTS } from '../../src/status/health.ts';
import { MIRROR_STATES, REASON_CODES } from '../../src/status/reason.ts';
import type { MirrorStats } from '../../src/status/status.ts';
import type { TaskState } from '../../src/store/ledger/tasks.ts';
import { createMetrics, type MirrorScrape } from '../../src/telemetry/metrics/metrics.ts';
import { NOW, own, scrapeOf, STATS } from './stats.ts';

async function scraped(stats: Partial<MirrorStats> = {}, more: Partial<MirrorScrape> = {}) {
  const metrics = createMetrics({ version: '1.2.3' });
  metrics.setMirror(scrapeOf({ ...STATS, ...stats }, more));
  return own(await metrics.text());
}

describe('the metrics of the state', () => {
  const ofMetric = (lines: readonly string[], name: string) =>
    lines.filter((line) => line.startsWith(`catalog_mirror_${name}{`));

  test.each(MIRROR_STATES)('show %s as 1 and every other state as 0', async (state) => {
    const states = ofMetric(await scraped({}, { health: { state, reasons: [] } }), 'state');
    expect(states).toHaveLength(MIRROR_STATES.length);
    expect(states.filter((line) => !line.endsWith(' 0'))).toEqual([
      `catalog_mirror_state{state="${state}"} 1`,
    ]);
  });

  test('show each reason once by its code, even if Postgres cannot be read', async () => {
    const metrics = createMetrics({ version: '1.2.3' });
    metrics.setMirror(scrapeOf(null, { health: judgeHealth(null, { ...NO_OWN_FACTS, queues: 'x' }) }));
    const lines = own(await metrics.text());
    expect(lines).toContain('catalog_mirror_state{state="broken"} 1');
    const reasons = ofMetric(lines, 'state_reason');
    expect(reasons).toHaveLength(REASON_CODES.length);
    expect(reasons.filter((line) => line.endsWith(' 1'))).toEqual([
      'catalog_mirror_state_reason{code="postgres-unavailable"} 1',
      'catalog_mirror_state_reason{code="queues-unavailable"} 1',
    ]);
  });

  test('show a code that two reasons share only once', async () => {
    const reason = { code: 'clock', level: 'degraded' } as const;
    const reasons = [
      { ...reason, text: 'one clock is ahead', hint: '' },
      { ...reason, text: 'another is behind', hint: '' },
    ];
    const lines = await scraped({}, { health: { state: 'degraded', reasons } });
    expect(lines.filter((line) => line.includes('code="clock"'))).toEqual([
      'catalog_mirror_state_reason{code="clock"} 1',
    ]);
  });

  test('say why Postgres takes no writes', async () => {
    const lines = await scraped({}, { storeFailure: 'read-only' });
    expect(lines).toContain('catalog_mirror_store_paused{because="read-only"} 1');
    expect(lines).toContain('catalog_mirror_store_paused{because="disk-full"} 0');
  });

  test('say why Postgres takes no writes even if it cannot be read', async () => {
    const metrics = createMetrics({ version: '1.2.3' });
    metrics.setMirror(scrapeOf(null, { storeFailure: 'too-many-connections' }));
    const paused = ofMetric(own(await metrics.text()), 'store_paused');
    expect(paused.filter((line) => line.endsWith(' 1'))).toEqual([
      'catalog_mirror_store_paused{because="too-many-connections"} 1',
    ]);
  });
});

test('metrics of the window show own requests, those of others, and the limits', async () => {
  expect(await scraped()).toEqual(
    expect.arrayContaining([
      'catalog_mirror_requests_in_window 17',
      'catalog_mirror_other_requests_in_window 3',
      'catalog_mirror_requests_in_window_limit{of="account"} 200',
      'catalog_mirror_requests_in_window_limit{of="mirror"} 118',
    ]),
  );
});

test('metrics of tasks show when each last succeeded, and its failures since', async () => {
  const task = (differs: Partial<TaskState> & Pick<TaskState, 'task'>): TaskState => ({
    nextAt: new Date(NOW),
    running: false,
    startedAt: null,
    finishedAt: null,
    succeededAt: null,
    failures: 0,
    outcome: null,
    progress: null,
    ...differs,
  });
  const lines = await scraped({
    tasks: [task({ task: 'delta', succeededAt: new Date(1500) }), task({ task: 'manifest', failures: 2 })],
  });
  expect(lines.filter((line) => line.startsWith('catalog_mirror_task'))).toEqual([
    'catalog_mirror_task_last_success_timestamp_seconds{task="delta"} 1.5',
    'catalog_mirror_task_failures{task="delta"} 0',
    'catalog_mirror_task_failures{task="manifest"} 2',
  ]);
});
