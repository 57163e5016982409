import { expect, test } from 'vitest';
import { type SandboxOptions, startSandbox } from '../../src/sandbox/index.ts';

const MOVING = 'DD1391-100';
const CORRECTED = 'FV5029-141';

async function truthAfter(steps: number, options: SandboxOptions = {}) {
  await using sandbox = await startSandbox({ skus: 60, ...options });
  for (let step = 0; step < steps; step += 1) sandbox.step();
  return sandbox.world.truth();
}

test.each([1, 2, 3, 17])(
  'a catalog contains the example SKUs of the documents, snapshot-priced (seed %i)',
  async (seed) => {
    const truth = await truthAfter(0, { seed, liveShare: 0.5 });
    for (const sku of [MOVING, CORRECTED])
      expect(truth.get(sku)).toMatchObject({
        answer: 'record',
        listed: true,
        priceSource: 'snapshot',
        sizeType: 'US',
      });
    expect(truth.get(MOVING)?.sizeMap['9']).toBe(5000);
    expect([...truth.values()].filter(({ listed }) => listed)).toHaveLength(60);
  },
);

test('an all-live catalog contains them live-priced, and a catalog of a few SKUs lacks them', async () => {
  const live = await truthAfter(0, { liveShare: 1 });
  expect([live.get(MOVING), live.get(CORRECTED)]).toMatchObject([
    { priceSource: 'live' },
    { priceSource: 'live' },
  ]);
  const few = await truthAfter(0, { skus: 9 });
  expect([few.has(MOVING), few.has(CORRECTED)]).toEqual([false, false]);
});

test('they move in each of the first two demo snapshots, later seldom: sizes 9 and 11, a size_type', async () => {
  await using sandbox = await startSandbox({ skus: 60, marketMoves: 0, noopShare: 0 });
  const { world } = sandbox;
  const moved: number[] = [];
  const seen: unknown[] = [];
  for (let snapshot = 1; snapshot <= 13; snapshot += 1) {
    const since = world.newestSnapshot();
    for (let step = 0; step < 7; step += 1) sandbox.step();
    world.buildSnapshot();
    const delta = world.delta(since);
    if (typeof delta === 'string' || delta.changed.length === 0) continue;
    expect(delta.changed).toEqual([MOVING, CORRECTED]);
    moved.push(snapshot);
    const truth = world.truth();
    const { '9': nine, '11': eleven } = truth.get(MOVING)?.sizeMap ?? {};
    seen.push([nine, eleven, truth.get(CORRECTED)?.sizeType]);
  }
  expect(moved).toEqual([1, 2, 5, 9, 13]);
  expect(seen).toEqual([
    [4800, 5450, 'US'],
    [4690, undefined, 'EU'],
    [4770, 5450, 'EU'],
    [4620, undefined, 'UK'],
    [4730, 5450, 'UK'],
  ]);
});

test('no random move touches them: for an hour they stay on offer and in their cohort', async () => {
  await using sandbox = await startSandbox({ skus: 12, marketMoves: 20 });
  for (let step = 0; step < 720; step += 1) {
    sandbox.step();
    const truth = sandbox.world.truth();
    expect([truth.get(MOVING), truth.get(CORRECTED)]).toMatchObject([
      { answer: 'record', product: { name: "Nike Dunk Low 'Panda' (2021)" } },
      { answer: 'record', product: { name: "Jordan Air Jordan 4 'Cream' (2025)" } },
    ]);
    expect(truth.get(MOVING)?.sizeMap['9']).toBeLessThan(5200);
    sandbox.world.buildSnapshot();
    const { world } = sandbox;
    expect([world.truth().get(MOVING)?.priceSource, world.truth().get(CORRECTED)?.priceSource]).toEqual([
      'snapshot',
      'snapshot',
    ]);
  }
});

test('they stay withdrawn or removed if done by hand', async () => {
  await using sandbox = await startSandbox({ skus: 60, marketMoves: 0 });
  sandbox.world.withdraw(MOVING);
  sandbox.world.remove(CORRECTED);
  for (let step = 0; step < 100; step += 1) sandbox.step();
  const truth = sandbox.world.truth();
  expect(truth.get(MOVING)?.sizeMap).toEqual({});
  expect(truth.get(CORRECTED)).toMatchObject({ answer: 'not_found', sizeType: 'US' });
});
