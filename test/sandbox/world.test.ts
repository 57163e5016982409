import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { TruthRow } from '../../src/sandbox/index.ts';
import { start, type Caller } from './support.ts';

let caller: Caller;
afterEach(() => caller.sandbox.close());

const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('step'), moves: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('build'), moves: fc.constant(0) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('incident'), moves: fc.integer({ min: 0, max: 1 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('churn'), moves: fc.integer({ min: 0, max: 29 }) }) },
);

/** Checks a delta against the truths frozen at its two ends. */
function checkDelta(
  before: Map<string, TruthRow>,
  after: Map<string, TruthRow>,
  delta: { changed: string[]; removed: string[]; now_live: string[] },
): void {
  const rows = [...after.values()];
  const names = (fits: (row: TruthRow, old: TruthRow | undefined) => boolean): string[] =>
    rows.filter((row) => fits(row, before.get(row.sku))).map((row) => row.sku);
  const changed = new Set(delta.changed);
  expect(changed.size).toBe(delta.changed.length);
  const moved = names((row, old) => row.listed && (!old?.listed || old.hash !== row.hash));
  expect(moved.filter((sku) => !changed.has(sku))).toEqual([]);
  expect(names((row) => changed.has(row.sku) && !row.listed)).toEqual([]);
  expect(delta.removed.toSorted()).toEqual(
    names((row, old) => !row.listed && old?.listed === true).toSorted(),
  );
  const live = names((row) => changed.has(row.sku) && row.priceSource === 'live');
  expect(delta.now_live.toSorted()).toEqual(live.toSorted());
}

describe('deltas across any history', () => {
  it('never miss a snapshot-priced SKU, name exactly the removed ones, and judge now_live at the end', async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { minLength: 3, maxLength: 25 }),
        fc.boolean(),
        async (actions, noops) => {
          run += 1;
          caller = await start({
            skus: 30,
            seed: run,
            liveShare: 0.2,
            ghostShare: 0.1,
            rateLimit: Infinity,
            noopShare: noops ? 0.5 : 0,
          });
          const { world } = caller.sandbox;
          const frozen = [{ id: world.newestSnapshot() ?? '', truth: world.truth() }];
          for (const { kind, moves } of [...actions, { kind: 'build', moves: 0 }]) {
            if (kind === 'step') world.step(moves);
            else if (kind === 'incident') world.setIncident(moves === 1);
            else if (kind === 'build') frozen.push({ id: world.buildSnapshot(), truth: world.truth() });
            else {
              const sku = [...world.truth().keys()][moves] ?? '';
              if (world.truth().get(sku)?.listed) world.remove(sku);
              else world.relist(sku);
            }
          }
          const last = frozen.at(-1);
          for (const { id, truth } of frozen) {
            const { json } = await caller.delta(id);
            expect(json.to_snapshot).toBe(last?.id);
            checkDelta(truth, last?.truth ?? new Map(), json);
          }
          const listed = [...(last?.truth.values() ?? [])].filter((row) => row.listed);
          const { json: manifest } = await caller.manifest();
          expect(manifest['sku_count']).toBe(listed.length);
          expect(manifest['live_priced_sku_count']).toBe(listed.filter((row) => row.hash === null).length);
          await caller.sandbox.close();
        },
      ),
      { numRuns: 40 },
    );
  });

  it('give the same hash only to the same sizes and prices', async () => {
    caller = await start({ skus: 50 });
    const { world } = caller.sandbox;
    const seen = new Map<string, string>();
    for (let round = 0; round < 30; round += 1) {
      world.step(40);
      world.buildSnapshot();
      for (const row of world.truth().values()) {
        if (row.hash === null || row.answer === 'not_found') continue;
        const content = JSON.stringify(
          Object.entries(row.sizeMap).toSorted(([a], [b]) => a.localeCompare(b)),
        );
        expect(seen.get(row.hash) ?? content).toBe(content);
        seen.set(row.hash, content);
      }
    }
    expect(new Set(seen.values()).size).toBe(seen.size);
  });
});

describe('random moves', () => {
  it('cause every kind of change', async () => {
    caller = await start({ skus: 300, liveShare: 0.1 });
    const { world } = caller.sandbox;
    const before = world.truth();
    world.step(3000);
    world.buildSnapshot();
    const rows = [...world.truth().values()].map((row) => ({ row, old: before.get(row.sku) }));
    const some = (fits: (row: TruthRow, old: TruthRow) => boolean): boolean =>
      rows.some(({ row, old }) => old !== undefined && fits(row, old));
    expect(some((row, old) => row.hash !== old.hash && row.hash !== null)).toBe(true);
    expect(some((row, old) => row.priceSource === 'live' && old.priceSource === 'snapshot')).toBe(true);
    expect(some((row, old) => row.priceSource === 'snapshot' && old.priceSource === 'live')).toBe(true);
    expect(
      some((row) => row.listed && row.answer === 'record' && Object.keys(row.sizeMap).length === 0),
    ).toBe(true);
    expect(some((row, old) => !row.listed && old.listed && row.answer === 'not_found')).toBe(true);
    expect(some((row, old) => row.sizeType !== old.sizeType)).toBe(true);
    expect(some((row, old) => row.product.name !== old.product.name)).toBe(true);
    expect(rows.some(({ old }) => old === undefined)).toBe(true);
    for (const { row } of rows) {
      for (const price of Object.values(row.sizeMap)) {
        expect(Number.isInteger(price) && (price ?? 0) >= 50).toBe(true);
      }
    }
  });

  it('start quickly with the exact numbers of each kind', async () => {
    const before = performance.now();
    caller = await start({ skus: 5000, unlistedShare: 0.01, ghostShare: 0.002, liveShare: 0.05 });
    expect(performance.now() - before).toBeLessThan(10_000);
    const rows = [...caller.sandbox.world.truth().values()];
    expect(rows.filter((row) => row.listed)).toHaveLength(5000);
    expect(rows.filter((row) => row.priceSource === 'live')).toHaveLength(250);
    expect(rows.filter((row) => !row.listed)).toHaveLength(50);
    expect(rows.filter((row) => row.answer === 'not_found')).toHaveLength(10);
  });
});
