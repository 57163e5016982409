import { describe, expect, test } from 'vitest';
import type { StoreFailure } from '../../src/store/db.ts';
import type { MirrorStats } from '../../src/status/stats.ts';
import type { TaskState } from '../../src/store/tasks.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { NOW, own, STATS } from './stats.ts';

async function scraped(stats: Partial<MirrorStats> = {}, failure: StoreFailure | null = null) {
  const metrics = createMetrics({ version: '1.2.3', now: () => NOW });
  metrics.setMirrorStats({ ...STATS, ...stats }, failure);
  return own(await metrics.text());
}

describe('the state of the machine', () => {
  const following: Partial<MirrorStats> = {
    catalogState: 'ok',
    incident: null,
    pace: { ...STATS.pace, backingOffUntil: null },
    skus: [
      { state: 'priced', priceSource: 'live', count: 99 },
      { state: 'pending', priceSource: 'live', count: 1 },
    ],
  };
  const more = {
    backingOff: { pace: { ...STATS.pace, backingOffUntil: new Date(NOW + 1) } },
    stale: { catalogState: 'stale' },
    incident: { incident: { since: new Date(0), because: 'deferrals' } },
    unpriced: { skus: [{ state: 'pending', priceSource: 'unknown', count: 1 }] },
    empty: { manifestAppliedAt: null, catalogState: 'none', skus: [] },
  } satisfies Record<string, Partial<MirrorStats>>;

  test.each<[string, Partial<MirrorStats>, StoreFailure | null]>([
    ['following', {}, null],
    ['incident', more.incident, null],
    ['stale', { ...more.incident, ...more.stale }, null],
    ['filling', { ...more.stale, ...more.unpriced }, null],
    ['filling', more.empty, null],
    ['backing-off', { ...more.backingOff, ...more.unpriced }, null],
    ['store-paused', more.backingOff, 'disk-full'],
  ])('%s', async (state, differs, failure) => {
    const lines = await scraped({ ...following, ...differs }, failure);
    const states = lines.filter((line) => line.startsWith('catalog_mirror_state{'));
    expect(states).toHaveLength(6);
    expect(states.filter((line) => line.endsWith(' 1'))).toEqual([
      `catalog_mirror_state{state="${state}"} 1`,
    ]);
  });

  test('why Postgres takes no writes', async () => {
    const lines = await scraped({}, 'read-only');
    expect(lines).toContain('catalog_mirror_store_paused{because="read-only"} 1');
    expect(lines).toContain('catalog_mirror_store_paused{because="disk-full"} 0');
  });
});

test('the window: own requests, those of others, and how many there may be', async () => {
  expect(await scraped()).toEqual(
    expect.arrayContaining([
      'catalog_mirror_requests_in_window 17',
      'catalog_mirror_other_requests_in_window 3',
      'catalog_mirror_requests_in_window_limit{of="account"} 200',
      'catalog_mirror_requests_in_window_limit{of="mirror"} 118',
    ]),
  );
});

test('tasks: when each last did its work, and failures since', async () => {
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
