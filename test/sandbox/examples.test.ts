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
  'a catalog has the SKUs of the documents, snapshot-priced (seed %i)',
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

test('so has one that is all live-priced, and a few SKUs have none of them', async () => {
  const live = await truthAfter(0, { liveShare: 1 });
  expect([live.get(MOVING), live.get(CORRECTED)]).toMatchObject([
    { priceSource: 'live' },
    { priceSource: 'live' },
  ]);
  const few = await truthAfter(0, { skus: 9 });
  expect([few.has(MOVING), few.has(CORRECTED)]).toEqual([false, false]);
});

test('between two snapshots of the demo size 9 has moved; size 11 goes and comes; a size_type is corrected', async () => {
  await using sandbox = await startSandbox({ skus: 60, marketMoves: 0, noopShare: 0 });
  const { world } = sandbox;
  const seen = new Map<string, Set<string>>();
  const see = (what: string, value: unknown) =>
    seen.set(what, (seen.get(what) ?? new Set()).add(JSON.stringify(value) ?? 'gone'));
  for (let snapshot = 0; snapshot < 4; snapshot += 1) {
    const since = world.newestSnapshot();
    for (let step = 0; step < 7; step += 1) sandbox.step();
    world.buildSnapshot();
    expect(world.delta(since)).toMatchObject({ changed: [MOVING, CORRECTED] });
    const truth = world.truth();
    see('9', truth.get(MOVING)?.sizeMap['9']);
    see('11', truth.get(MOVING)?.sizeMap['11']);
    see('size_type', truth.get(CORRECTED)?.sizeType);
  }
  expect(seen.get('9')?.size).toBe(4);
  expect([...(seen.get('11') ?? [])].toSorted()).toEqual(['5450', 'gone']);
  expect([...(seen.get('size_type') ?? [])]).toEqual(['"US"', '"EU"', '"UK"']);
});

test('no random move touches them: for an hour they are offered in the cohort that they began in', async () => {
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

test('what is withdrawn or removed by hand stays so', async () => {
  await using sandbox = await startSandbox({ skus: 60, marketMoves: 0 });
  sandbox.world.withdraw(MOVING);
  sandbox.world.remove(CORRECTED);
  for (let step = 0; step < 100; step += 1) sandbox.step();
  const truth = sandbox.world.truth();
  expect(truth.get(MOVING)?.sizeMap).toEqual({});
  expect(truth.get(CORRECTED)).toMatchObject({ answer: 'not_found', sizeType: 'US' });
});
