import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DEAD_AFTER_MS } from '../../src/daemon/health.ts';
import { readTargets } from '../../src/store/catalog/sync-state.ts';
import { type Lane, DUE_LANES, laneNumber } from '../../src/store/ledger/due.ts';
import type { SyncSettings } from '../../src/sync/context.ts';
import { snapshotMs } from '../../src/sync/intervals.ts';
import { DASHBOARD } from '../ops/expressions.ts';
import { useStore } from './support.ts';

/* What TypeScript and SQL both have to know, or a dashboard repeats, held together. */

const store = useStore();

const REASONS: Readonly<Record<Lane, readonly string[]>> = {
  urgent: ['changed', 'watched', 'refresh'],
  live: ['live', 'unlisted'],
  new: ['new', 'absent', 'removed'],
  error: ['error'],
  metadata: ['metadata'],
  sweep: ['sweep'],
};

test('lanes: SQL serves each reason in the lane of that number, and names it by one of its reasons', async () => {
  const [{ names }] = await store.sql<[{ names: string[] }]>`select catalog_internal.lane_names() as names`;
  expect(names).toHaveLength(DUE_LANES.length);
  for (const lane of DUE_LANES) {
    expect(REASONS[lane]).toContain(names[laneNumber(lane) - 1]);
    const rows = await store.sql<{ lane: number }[]>`
      select catalog_internal.lane_of(reason) as lane from unnest(${REASONS[lane] as string[]}::text[]) as reason`;
    expect([lane, rows.map((row) => row.lane)]).toEqual([lane, REASONS[lane].map(() => laneNumber(lane))]);
  }
  // The partial index on it names it by its number.
  expect(laneNumber('urgent')).toBe(1);
});

test('the target age of snapshot-priced SKUs: SQL judges by what the next refresh is planned by', async () => {
  const durations = fc.integer({ min: 1, max: 30 * 86_400 });
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.constant(0), durations), durations, async (sweep, metadata) => {
      await store.sql`update catalog_internal.settings set sweep_interval = ${sweep}, metadata_interval = ${metadata}`;
      const intervals = { sweepMs: sweep * 1000, metadataMs: metadata * 1000 } as SyncSettings['intervals'];
      expect((await readTargets(store.sql)).snapshotSeconds * 1000).toBe(snapshotMs({ intervals }));
    }),
    { numRuns: 50 },
  );
});

test('a late delta: two polls, half an hour at least, and red on the dashboard from there', async () => {
  const lateAfter = async (interval: number) => {
    await store.sql`update catalog_internal.settings set delta_interval = ${interval}`;
    return (await readTargets(store.sql)).deltaLateAfterSeconds;
  };
  expect(await lateAfter(3600)).toBe(2 * 3600);
  const usual = await lateAfter(300);
  const panel = DASHBOARD.panels.find(({ title }) => title === 'Delta last checked');
  const { thresholds } = (panel?.fieldConfig?.defaults ?? {}) as {
    thresholds?: { steps: { value: number | null }[] };
  };
  expect(thresholds?.steps.at(-1)?.value).toBe(usual);
});

test('a daemon at work: the estimate of next refreshes and livez give it up after the same time', async () => {
  const { sql } = store;
  for (const [offset, atWork] of [
    [-5, true],
    [5, false],
  ] as const) {
    await sql`
      update catalog_internal.tasks set finished_at = now() - make_interval(secs => ${DEAD_AFTER_MS / 1000 + offset})
      where task = 'maintenance'`;
    const [row] = await sql<[{ atWork: boolean }]>`
      select coalesce(at_work, true) as "atWork" from catalog_internal.trust_terms()`;
    expect(row.atWork).toBe(atWork);
  }
});
