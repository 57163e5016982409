import { describe, expect, test } from 'vitest';
import { findingOf, missedMoves, type Standing } from '../../src/store/catalog/audit.ts';
import { NOTHING, settledIn, type World } from './audit-world.ts';
import { mark, useStore } from './support.ts';

const store = useStore();
const settled = settledIn(store);

describe('a report', () => {
  test('is confirmed if the refresh it asks for finds a price moved', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    await world.snapshot();
    expect(await world.counts()).toEqual(NOTHING);
    await world.refresh('owed');
    expect(await world.counts()).toEqual({ ...NOTHING, confirmed: 1 });
  });

  test('is unchanged if that refresh finds no move', async () => {
    const world = await settled('A', 'B');
    world.noopNext.add('A');
    await world.snapshot();
    await world.refresh('owed');
    expect(await world.counts()).toEqual({ ...NOTHING, unchanged: 1 });
  });

  test('is counted by the refresh that answers it, not by deferrals and errors before', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    world.noopNext.add('B');
    await world.snapshot();
    for (const kind of ['deferred', 'error'] as const) {
      const refresh = await world.ask('owed');
      await world.answer(refresh!, (sku) => ({ sku, kind, waitMs: 1000 }));
      expect(await world.counts()).toEqual(NOTHING);
      await world.pass();
      await store.sql`update catalog_internal.due set held_until = null, claim = null`;
    }
    await world.refresh('owed');
    expect(await world.counts()).toEqual({ ...NOTHING, confirmed: 1, unchanged: 1 });
  });

  test('is counted once, however often its answer is applied, and not by a later refresh', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    world.noopNext.add('B');
    await world.snapshot();
    const refresh = await world.ask('owed');
    await world.answer(refresh!);
    await world.answer(refresh!);
    await world.refresh('sweep');
    expect(await world.counts()).toEqual({ ...NOTHING, confirmed: 1, unchanged: 1 });
  });

  test('is recognised even if the SKU was already due for another urgent reason', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    world.noopNext.add('B');
    await mark(store.sql, ['A', 'B'], 'refresh');
    await world.snapshot();
    await world.refresh('owed');
    expect(await world.counts()).toEqual({ ...NOTHING, confirmed: 1, unchanged: 1 });
  });

  test.each([
    [
      'is one of a change of cohort',
      async (world: World) => {
        world.cross('A');
        await world.snapshot();
        await world.refresh('owed');
        world.cross('A');
      },
    ],
    [
      'tells what the first fetch of the SKU has seen already',
      async (world: World) => {
        world.relist('N');
        await world.snapshot();
        world.move('N');
        await world.refresh('owed');
      },
    ],
    [
      'tells what a confirming look has seen already',
      async (world: World) => {
        world.move('A');
        world.build();
        world.move('A');
        await world.snapshot();
        await world.refresh('owed');
      },
    ],
    [
      'tells what a refresh of the SKU as live-priced has seen already',
      async (world: World) => {
        world.cross('A');
        await world.snapshot();
        await world.refresh('owed');
        world.cross('A');
        world.build();
        world.move('A');
        await world.refresh('sweep');
        await world.catchUp();
        await world.pass();
        await world.refresh('owed');
      },
    ],
  ])('that %s does not count as unchanged', async (_case, before) => {
    const world = await settled('A', 'B');
    await before(world);
    await world.snapshot();
    await world.refresh('owed');
    expect(await world.counts()).toMatchObject({ unchanged: 0, never: 0 });
    for (let i = 0; i < 3; i += 1) await world.snapshot();
    world.noopNext.add('A');
    await world.snapshot();
    await world.refresh('owed');
    expect(await world.counts()).toMatchObject({ unchanged: 1 });
  });

  test('answered with 0009 counts neither as confirmed nor as unchanged', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    world.noopNext.add('B');
    await world.snapshot();
    const refresh = await world.ask('owed');
    await world.answer(refresh!, (sku) => ({ sku, kind: 'not_found' }));
    expect(await world.counts()).toEqual(NOTHING);
    await mark(store.sql, ['A', 'B'], 'refresh');
    await world.refresh('owed');
    expect(await world.counts(), 'back again').toEqual(NOTHING);
    for (let i = 0; i < 4; i += 1) await world.snapshot();
    await world.refresh('sweep');
    expect(await world.counts()).toEqual(NOTHING);
  });

  test('during a refresh of its SKU is not unchanged just because that refresh saw the move', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    world.noopNext.add('B');
    const refresh = await world.ask('sweep');
    await world.pass();
    await world.snapshot();
    await world.answer(refresh!);
    await world.refresh('owed');
    expect(await world.counts()).toEqual({ ...NOTHING, unchanged: 1 });
  });
});

const refresh = (differs: Partial<Standing>): Standing => ({
  standing: 'own',
  comparable: true,
  listedSnapshot: true,
  kept: null,
  keptOnce: false,
  missedMoves: null,
  listedLive: false,
  ...differs,
});

test('a refresh has no finding unless something moved, was reported, or has waited too long', () => {
  expect(findingOf(refresh({}), 'record', false)).toBeNull();
  expect(findingOf(refresh({}), 'not_found', true)).toBeNull();
  expect(findingOf(refresh({ kept: 'waiting' }), 'record', false)).toBeNull();
  expect(findingOf(refresh({ standing: 'masked' }), 'record', true)).toBeNull();
  expect(findingOf(refresh({ standing: 'other' }), 'record', true)).toBeNull();
  expect(findingOf(refresh({ standing: 'overtaken' }), 'record', false)).toBeNull();
  expect(findingOf(refresh({ kept: 'reported' }), 'record', false)).toBe('left');
  expect(findingOf(refresh({ standing: 'overtaken', comparable: false }), 'record', false)).toBe('overtaken');
});

test('moves that the delta leaves out are counted until it reports one', () => {
  const left = (differs: Partial<Standing>, moved = false, live = false) => {
    const before = refresh(differs);
    return missedMoves({ ...before, live }, findingOf(before, 'record', moved), moved);
  };
  expect(left({})).toBeNull();
  expect(left({ kept: 'overdue', keptOnce: true })).toBe(1);
  expect(left({ kept: 'overdue', keptOnce: true, missedMoves: 2 })).toBe(3);
  expect(left({ kept: 'overdue', keptOnce: true, missedMoves: 1000 })).toBe(1000);
  // One of two moves may have gone back, which is rightly not reported.
  expect(left({ kept: 'overdue' })).toBeNull();
  expect(left({ missedMoves: 2 }, true)).toBe(2);
  expect(left({ standing: 'report', missedMoves: 2 }, true)).toBeNull();
  expect(left({ standing: 'report', kept: 'reported', missedMoves: 2 })).toBeNull();
  expect(left({ standing: 'report', missedMoves: 2 }), 'a report of nothing').toBe(2);
  expect(left({ missedMoves: 2, listedLive: true }, false, true), 'listed as live').toBeNull();
  // During an incident.
  expect(left({ missedMoves: 2 }, false, true)).toBe(2);
  expect(left({ kept: 'overdue', keptOnce: true, missedMoves: 2 }, false, true)).toBe(2);
  expect(left({ standing: 'report', missedMoves: 2 }, true, true)).toBeNull();
});
