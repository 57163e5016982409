import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { runs } from '../support/soak.ts';
import { type Counts, World } from './audit-world.ts';
import { useStore } from './support.ts';

const store = useStore();
const SKUS = ['A', 'B', 'C', 'D'];

const sku = fc.constantFrom(...SKUS);
const op = <K extends string>(kind: K) => fc.record({ kind: fc.constant(kind), sku, n: fc.nat(3) });
const MOVES = [op('move'), op('back'), op('cross'), op('relist')];
const MIRROR = [
  op('build'),
  op('poll'),
  op('catch-up'),
  op('sweep'),
  op('owed'),
  op('answer'),
  op('answer'),
  op('round'),
];
const histories = fc.record({
  calm: fc.boolean(),
  drops: fc.boolean(),
  noops: fc.boolean(),
  ops: fc.array(fc.oneof(...MOVES, op('move'), ...MIRROR, op('noop'), op('manifest')), {
    minLength: 30,
    maxLength: 60,
  }),
});
type History = typeof histories extends fc.Arbitrary<infer T> ? T : never;
type Op = History['ops'][number];

/** An occasional answer has no record: deferred, an error, or 0009. */
function oddResult(at: string, n: number): SkuResult | null {
  if (at !== SKUS[n]) return null;
  const kinds = ['deferred', 'error', 'not_found'] as const;
  const kind = kinds[n % 3] ?? 'error';
  return kind === 'not_found' ? { sku: at, kind } : { sku: at, kind, waitMs: 60_000 };
}

async function apply(world: World, { kind, sku: at, n }: Op, { calm, drops, noops }: History): Promise<void> {
  switch (kind) {
    case 'move':
      return world.move(at);
    case 'back':
      return calm ? undefined : world.goBack(at);
    case 'cross':
      return world.cross(at);
    case 'relist':
      return n === 0 ? world.relist(at) : undefined;
    case 'noop':
      if (drops && n > 1) world.dropNext.add(at);
      else if (noops) world.noopNext.add(at);
      return;
    case 'build':
      return world.build();
    case 'poll':
      await world.poll(1 + n);
      return;
    case 'catch-up':
      return await world.catchUp();
    case 'manifest':
      return n === 0 ? await world.manifest() : undefined;
    case 'sweep':
    case 'owed':
      await world.ask(kind, 1 + n);
      return;
    case 'answer': {
      const refresh = world.underWay[n % Math.max(1, world.underWay.length)];
      if (refresh !== undefined) await world.answer(refresh, n === 3 ? (s) => oddResult(s, n) : undefined);
      return;
    }
    case 'round':
      await world.snapshot();
      await world.refresh('owed');
      return await world.refresh('sweep');
  }
}

async function run(history: History): Promise<{ world: World; counts: Counts }> {
  const world = new World(store, SKUS);
  await world.settle();
  for (const step of history.ops) {
    await apply(world, step, history);
    await store.sql`update catalog_internal.due set held_until = null, claim = null where held_until < now()`;
    await world.pass();
  }
  for (let i = 0; i < 3; i += 1) {
    for (const refresh of world.underWay.slice()) await world.answer(refresh);
    await world.snapshot();
    await world.refresh('owed');
    await world.refresh('sweep');
  }
  return { world, counts: await world.counts() };
}

test('no report is judged of a SKU that a delta lists as live and the next manifest as snapshot-priced', async () => {
  const steps = ['cross', 'build', 'poll', 'cross', 'build', 'manifest'] as const;
  const ops = steps.map((kind) => ({ kind, sku: 'D', n: 0 }));
  const { counts } = await run({ calm: true, drops: false, noops: false, ops });
  expect(counts).toMatchObject({ unchanged: 0, never: 0 });
});

test('answers after their lease, and a price that went back before a snapshot, blame nobody else', async () => {
  const steps = 'sweep sweep manifest owed noop move noop round move owed back build catch-up'.split(
    ' ',
  ) as Op['kind'][];
  const ops = steps.map((kind) => ({ kind, sku: 'A', n: 0 }));
  const { world, counts } = await run({ calm: false, drops: false, noops: false, ops });
  expect(counts).toMatchObject({ never: 1, waiting: 0 });
  expect(world).toMatchObject({ dropped: 0, swung: 1 });
});

/**
 * Runs beside the drawn histories, few of which contain all of this: a move that a refresh sees first, one that is
 * never reported, and a report although nothing moved.
 */
const SHOWN: History = {
  calm: true,
  drops: true,
  noops: true,
  ops: [
    { kind: 'move', sku: 'A', n: 0 },
    { kind: 'move', sku: 'B', n: 0 },
    { kind: 'sweep', sku: 'A', n: 3 },
    { kind: 'answer', sku: 'A', n: 0 },
    { kind: 'noop', sku: 'B', n: 2 },
    { kind: 'noop', sku: 'C', n: 0 },
    ...Array.from({ length: 4 }, (): Op[] => [
      { kind: 'move', sku: 'D', n: 0 },
      { kind: 'round', sku: 'D', n: 0 },
    ]).flat(),
  ],
};

test('over any history, no SKU is blamed that did nothing wrong', { timeout: 280_000 }, async () => {
  const total = { confirmed: 0, unchanged: 0, seenFirst: 0, never: 0, dropped: 0, noops: 0 };
  const property = fc.asyncProperty(histories, async (history) => {
    const { world, counts } = await run(history);
    expect(counts.never, 'never reported').toBeLessThanOrEqual(world.dropped + world.swung);
    const [{ missed }] = await store.sql<[{ missed: number }]>`
      select coalesce(sum(missed_moves), 0)::int as missed from catalog_internal.due`;
    expect(missed, 'left out, and nothing reported rightly since').toBeLessThanOrEqual(counts.never);
    // If prices went back, a correct report can find nothing moved.
    if (history.calm) expect(counts.unchanged, 'unchanged').toBeLessThanOrEqual(world.noops);
    for (const key of ['confirmed', 'unchanged', 'seenFirst', 'never'] as const) total[key] += counts[key];
    total.dropped += world.dropped;
    total.noops += world.noops;
  });
  await fc.assert(property, { numRuns: runs(12, 60) + 1, examples: [[SHOWN]], endOnFailure: false });
  expect(Math.min(...Object.values(total))).toBeGreaterThan(0);
});

test(
  'moves that the partner fails to report are counted exactly, whatever else happens',
  { timeout: 120_000 },
  async () => {
    const results = fc.array(fc.constantFrom('still', 'reported', 'dropped', 'went-back', 'noop'), {
      minLength: 1,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(results, fc.nat(3), async (each, more) => {
        const skus = each.map((_, i) => `S${i}`);
        const of = (...kinds: string[]) => skus.filter((_, i) => kinds.includes(each[i] ?? ''));
        const world = new World(store, [...skus, 'other']);
        await world.settle();
        for (const at of of('reported', 'dropped', 'went-back')) world.move(at);
        await world.refresh('sweep');
        for (const at of of('went-back')) world.goBack(at);
        for (const at of of('dropped')) world.dropNext.add(at);
        for (const at of of('noop')) world.noopNext.add(at);
        for (let i = 0; i < 2 + more; i += 1) {
          world.move('other');
          await world.snapshot();
          await world.refresh('owed');
        }
        await world.refresh('sweep');
        const { seconds: _, ...counts } = await world.counts();
        expect(counts).toEqual({
          confirmed: 2 + more,
          unchanged: of('noop').length,
          seenFirst: of('reported').length,
          never: of('dropped').length,
          // A second check after two snapshots sees that they moved (back), and two snapshots later that they
          // stayed.
          waiting: more < 2 ? of('went-back').length : 0,
        });
        const missed = await store.sql<{ sku: string }[]>`
          select sku from catalog_internal.due where missed_moves > 0 and reason = 'missed'`;
        expect(missed.map(({ sku }) => sku).toSorted()).toEqual(of('dropped').toSorted());
      }),
      { numRuns: runs(6, 25), endOnFailure: false },
    );
  },
);
