import { expect, test } from 'vitest';
import { askAbout } from '../../src/cli/verify.ts';
import type { HeldSku } from '../../src/store/trust/verification.ts';

const SKUS = Array.from({ length: 250 }, (_, at) => `S${at}`);

const heldOf = (sku: string): HeldSku => ({
  sku,
  priceSource: 'live',
  cohort: 'live',
  pRight: 0.9,
  pRightSoon: 0.9,
  actionable: false,
  doubt: null,
  owedReason: null,
  askedAt: '0.000000',
  ageSeconds: 600,
});

type Fate = 'answered' | 'postponed' | 'silent';

/**
 * Asks about all SKUs on a clock that only sleeping advances; `fateOf` returns the fate of a SKU that many seconds
 * after the start.
 */
async function ask(fateOf: (sku: string, seconds: number) => Fate, end = new AbortController()) {
  let now = 0;
  const marked: string[] = [];
  const told: string[] = [];
  const found = await askAbout(SKUS, {
    clock: {
      now: () => now,
      monotonic: () => now,
      sleep(ms) {
        now += ms;
        return Promise.resolve();
      },
    },
    signal: end.signal,
    mark(skus) {
      marked.push(...skus);
      return Promise.resolve({ at: new Date(now), position: '0', held: skus.map(heldOf) });
    },
    read({ held }) {
      const fates = held.map(({ sku }) => [sku, fateOf(sku, now / 1000)] as const);
      const of = (fate: Fate) => fates.filter(([, each]) => each === fate).map(([sku]) => sku);
      const answered = of('answered').map((sku) => ({ sku, answeredAt: new Date(now), wrong: [] }));
      return Promise.resolve({ answered, postponed: of('postponed').length });
    },
    tell: (line) => told.push(line),
  });
  return { ...found, answered: found.answered.map(({ held }) => held.sku), marked, told };
}

test('asks about all SKUs, and continues at once past those that are deferred or fail', async () => {
  const found = await ask((sku) => (sku.endsWith('7') ? 'postponed' : 'answered'));
  expect(found).toMatchObject({ marked: SKUS, asked: 250, seconds: 0 });
  expect(found.answered).toEqual(SKUS.filter((sku) => !sku.endsWith('7')));
  expect(found.told).toEqual([
    '100 of 250 SKUs asked about, 0s left',
    '200 of 250 SKUs asked about, 0s left',
  ]);
});

test('waits as long as answers keep coming, even a minute and a half apart', async () => {
  const found = await ask((sku, seconds) =>
    sku === 'S98'
      ? seconds >= 90
        ? 'answered'
        : 'silent'
      : sku === 'S99' && seconds < 180
        ? 'silent'
        : 'answered',
  );
  expect(found).toMatchObject({ asked: 250, seconds: 180 });
  expect(found.answered).toEqual(SKUS);
});

test('ends when nothing was answered for two minutes, reports the answers so far and marks no more SKUs', async () => {
  const gone = await ask((sku) => (Number(sku.slice(1)) < 130 ? 'answered' : 'silent'));
  expect(gone).toMatchObject({ asked: 200, marked: SKUS.slice(0, 200), answered: SKUS.slice(0, 130) });
  expect(gone.seconds).toBe(121);
  expect(gone.told).toEqual([
    '100 of 250 SKUs asked about, 0s left',
    'nothing was answered for 2m, so no others are asked about',
  ]);
  expect(await ask(() => 'silent')).toMatchObject({ asked: 100, answered: [], seconds: 121 });
});

test('ends at a signal, and reports what was answered by then', async () => {
  const end = new AbortController();
  const found = await ask((sku, seconds) => {
    if (seconds >= 10) end.abort();
    return sku === 'S0' ? 'answered' : 'silent';
  }, end);
  expect(found).toMatchObject({ asked: 100, answered: ['S0'], told: [] });
});
