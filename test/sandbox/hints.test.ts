import { describe, it } from 'vitest';
import type { ToldHint } from '../../src/sandbox/hints.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { some } from '../support/soak.ts';
import { control, opened } from './control-support.ts';

/** Starts a market whose every step moves some twenty SKUs, and tells which, by the truth before and after. */
async function movingMarket({
  recall,
  precision,
  seed = 7,
}: {
  recall: number;
  precision: number;
  seed?: number;
}) {
  const sandbox = await startSandbox({
    seed,
    skus: 500,
    liveShare: 0.8,
    unlistedShare: 0.1,
    marketMoves: 20,
    hintRecall: recall,
    hintPrecision: precision,
    snapshotRetention: 2,
  });
  const { world } = sandbox;
  return {
    sandbox,
    /** Returns the live SKUs whose prices changed in a step, and the hints about it. */
    step: (): { moved: Set<string>; told: readonly ToldHint[] } => {
      world.buildSnapshot();
      const before = world.truth();
      const { next } = world.hints(Infinity);
      world.step();
      const told = world.hints(next).hints;
      world.buildSnapshot();
      const moved = new Set<string>();
      for (const [sku, { priceSource, sizeMap }] of world.truth())
        if (
          priceSource === 'live' &&
          JSON.stringify(sizeMap) !== JSON.stringify(before.get(sku)?.sizeMap ?? {})
        )
          moved.add(sku);
      return { moved, told };
    },
  };
}

describe.concurrent('the source of hints', () => {
  it.for(
    some(
      [
        { recall: 0.5, precision: 0.5 },
        { recall: 0.9, precision: 0.2 },
        { recall: 0.2, precision: 1 },
        { recall: 1, precision: 0.8 },
      ],
      1,
    ),
  )(
    'tells of the share $recall of all moves, and is right with probability $precision',
    async (asked, { expect }) => {
      const { sandbox, step } = await movingMarket(asked);
      await using _ = sandbox;
      let [moves, told, right] = [0, 0, 0];
      for (let n = 0; n < 250; n += 1) {
        const one = step();
        moves += one.moved.size;
        told += one.told.length;
        right += one.told.filter(({ sku }) => one.moved.has(sku)).length;
      }
      expect(moves).toBeGreaterThan(2000);
      expect(Math.abs(right / moves - asked.recall)).toBeLessThan(0.03);
      expect(Math.abs(right / told - asked.precision)).toBeLessThan(0.03);
    },
  );

  it('tells only of live SKUs, and of nothing if no price moves', async ({ expect }) => {
    const { sandbox, step } = await movingMarket({ recall: 1, precision: 0.2 });
    await using _ = sandbox;
    const { world } = sandbox;
    for (let n = 0; n < 50; n += 1) {
      const sources = step().told.map(({ sku }) => world.find(sku)?.priceSource);
      expect(new Set(sources)).toEqual(new Set(['live']));
    }
    const { next } = world.hints(Infinity);
    world.buildSnapshot();
    const [sku = ''] = [...world.truth()].find(([, { priceSource }]) => priceSource === 'live') ?? [];
    const [size = '', price = null] = Object.entries(world.find(sku)?.sizeMap ?? {})[0] ?? [];
    world.setPrice(sku, size, price);
    world.setProduct(sku, { name: 'Another' });
    expect(world.hints(next).hints).toEqual([]);
  });

  it('tells at once of a move made by hand, once per SKU', async ({ expect }) => {
    const caller = await opened({ liveShare: 0.5, skus: 300, hintRecall: 1, hintPrecision: 1 });
    await using _ = caller.sandbox;
    const path = '/skus/MINE';
    await control(caller, 'PUT', path, { price_source: 'live', sizes: { 7: 100, 8: 200 } });
    const { json: before } = await control(caller, 'GET', '/hints');
    await control(caller, 'PUT', path, { sizes: { 7: 110, 9: 200 } });
    const { json } = await control(caller, 'GET', `/hints?after=${String(before['next'])}`);
    expect(json).toEqual({
      hints: [{ id: Number(before['next']) + 1, sku: 'MINE', at: '2026-01-01T00:00:00.000Z' }],
      next: Number(before['next']) + 1,
      missed: 0,
    });
  });

  it('gives the same hints for the same seed, and does not influence the market', async ({ expect }) => {
    const told = async (seed: number, recall: number) => {
      const { sandbox, step } = await movingMarket({ recall, precision: 0.5, seed });
      await using _ = sandbox;
      const steps = Array.from({ length: 20 }, () => step());
      return {
        hints: steps.flatMap((one) => one.told.map(({ id, sku }) => `${id} ${sku}`)),
        moves: steps.map(({ moved }) => [...moved]),
      };
    };
    const [first, again, another, without] = await Promise.all([
      told(7, 0.5),
      told(7, 0.5),
      told(8, 0.5),
      told(7, 0),
    ]);
    expect(first.hints.length).toBeGreaterThan(100);
    expect(again).toEqual(first);
    expect(another.hints).not.toEqual(first.hints);
    expect(without).toEqual({ hints: [], moves: first.moves });
  });

  it('keeps the last ten thousand, returns a thousand at a time, and counts what was missed', async ({
    expect,
  }) => {
    const caller = await opened({
      liveShare: 1,
      skus: 300,
      hintRecall: 1,
      hintPrecision: 0.05,
      marketMoves: 200,
    });
    await using _ = caller.sandbox;
    const { world } = caller.sandbox;
    for (let n = 0; n < 20; n += 1) world.step();
    const { json: first } = await control(caller, 'GET', '/hints');
    expect(Number(first['missed'])).toBeGreaterThan(1000);
    let after = 0;
    const ids: number[] = [];
    for (;;) {
      const { hints, next } = world.hints(after);
      if (hints.length === 0) break;
      expect(hints.length).toBeLessThanOrEqual(1000);
      ids.push(...hints.map(({ id }) => id));
      after = next;
    }
    expect(ids).toEqual(Array.from({ length: 10_000 }, (_1, n) => Number(first['missed']) + n + 1));
    expect(world.hints(after)).toEqual({ hints: [], next: after, missed: 0 });
    // A position from before a reset.
    expect(world.hints(after + 5000)).toEqual({ hints: [], next: after, missed: 0 });
  });

  it.for(['x', '-1', '1.5', '1'.repeat(16), ''])('rejects after=%s', async (after, { expect }) => {
    const caller = await opened({ skus: 20 });
    await using _ = caller.sandbox;
    const { status, json } = await control(caller, 'GET', `/hints?after=${after}`);
    expect([status, json['message']]).toEqual([400, 'after must be the next of an answer, or 0']);
  });
});
