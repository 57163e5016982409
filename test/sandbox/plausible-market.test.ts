import { afterEach, expect, test } from 'vitest';
import { oddityOf, type SizePrices } from '../../src/store/answer/plausibility.ts';
import { type Caller, start } from './support.ts';

let caller: Caller;
afterEach(() => caller.sandbox.close());

/** As in the demo: `--skus 100`, and the moves of its market between two snapshots. */
const SKUS = 100;
const MOVES = 32;
const ROUNDS = 60;

test.each([1, 2, 3, 4])(
  'the market of a demo moves plausibly, even if a SKU is offered again (seed %i)',
  async (seed) => {
    caller = await start({ skus: SKUS, seed, rateLimit: Infinity });
    const { world } = caller.sandbox;
    const last = new Map<string, SizePrices>();
    let looks = 0;
    const odd: unknown[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const { sku, sizeMap } of world.truth().values()) {
        const now = new Map(
          Object.entries(sizeMap).flatMap(([size, price]) =>
            price === null ? [] : [[size, price] as const],
          ),
        );
        const before = last.get(sku) ?? new Map<string, number>();
        if (now.size === 0) continue;
        looks += Number(before.size > 0);
        const oddity = oddityOf(before, now);
        if (oddity !== null && before.size > 0) odd.push({ sku, oddity, before: [...before], now: [...now] });
        last.set(sku, now);
      }
      world.step(MOVES);
    }
    expect(looks).toBeGreaterThan(ROUNDS * SKUS * 0.8);
    expect(odd.length / looks, `odd: ${JSON.stringify(odd)}`).toBeLessThanOrEqual(1 / 2000);
  },
);
