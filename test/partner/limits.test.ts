import fc from 'fast-check';
import { expect, test } from 'vitest';
import { excessOf, limitsOf } from '../../src/partner/limits.ts';

const NONE = { values: Infinity, structure: Infinity, depth: Infinity };

/** Values, names and containers on all levels, and levels of nesting, counted in the parsed text. */
function sizeOf(value: unknown): { values: number; structure: number; depth: number } {
  if (typeof value !== 'object' || value === null) return { values: 1, structure: 0, depth: 0 };
  const inner = Object.values(value).map(sizeOf);
  const names = Array.isArray(value) ? 0 : inner.length;
  return {
    values: 1 + inner.reduce((sum, { values }) => sum + values, 0),
    structure: 1 + names + inner.reduce((sum, { structure }) => sum + structure, 0),
    depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
  };
}

test('the size of a text is counted as JSON.parse sees it, whatever its strings contain', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.json({ maxDepth: 6, stringUnit: 'binary' }),
      fc.constantFrom('', ' ', '\n'),
      async (text, space) => {
        const { values, structure, depth } = sizeOf(JSON.parse(text));
        const spaced = JSON.stringify(JSON.parse(text), null, space);
        for (const each of [text, spaced]) {
          expect(await excessOf(each, { ...NONE, depth })).toBeNull();
          expect(await excessOf(each, { ...NONE, structure })).toBeNull();
          // An empty container is counted as if it had one value.
          expect(await excessOf(each, { ...NONE, values: values + structure })).toBeNull();
          if (depth > 0) expect(await excessOf(each, { ...NONE, depth: depth - 1 })).toBe('nesting');
          if (structure > 0)
            expect(await excessOf(each, { ...NONE, structure: structure - 1 })).toBe('structure');
          if (values > 1) expect(await excessOf(each, { ...NONE, values: values - 1 })).toBe('values');
        }
      },
    ),
  );
});

test.each([
  ['a quote that is escaped', String.raw`["\"[[[[", "\\", [1]]`, 2],
  ['a string that never ends', '["[[[[[[', 1],
  ['brackets that never open', ']]]]]]', 0],
])('nesting is counted correctly for %s', async (_, text, depth) => {
  expect(await excessOf(text, { ...NONE, depth })).toBeNull();
});

test('a text of 24 MB is read in pieces, and other tasks run in between', async () => {
  let turns = 0;
  const ticking = setInterval(() => (turns += 1), 0);
  expect(
    await excessOf(`[${'"SKU-000001",'.repeat(2_000_000)}1]`, { ...NONE, values: 3_000_000 }),
  ).toBeNull();
  clearInterval(ticking);
  expect(turns).toBeGreaterThan(3);
});

test('strings across pieces, an escape at the end of a piece and nesting behind it are all seen', async () => {
  const piece = 2 * 1024 * 1024;
  for (const shift of [0, 1, 2, 3]) {
    const text = `["${'x'.repeat(piece - 4 + shift)}\\"[[[[", [[1]]]`;
    expect(await excessOf(text, { ...NONE, depth: 3 })).toBeNull();
    expect(await excessOf(text, { ...NONE, depth: 2 })).toBe('nesting');
  }
});

test('a full answer is far within the limits of its route', async () => {
  const entry = { price: 12_345, available: true, offers: 3, updated_at: '2026-11-21T12:00:00Z' };
  const record = {
    code: '0000',
    size_map: {
      size_type: 'US',
      ...Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`${n}.5`, entry])),
    },
    product: Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [`member_${n}`, 'a text of some length']),
    ),
  };
  const results = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`SKU-${n}`, record]));
  const text = JSON.stringify({ results, not_found: [], deferred: [], errors: [] });
  const bulk = limitsOf('bulk', 100);
  expect(await excessOf(text, bulk)).toBeNull();
  expect(text.length).toBeLessThan(bulk.bytes / 2);
  const delta = JSON.stringify({
    changed: [],
    now_live: [],
    removed: Array.from({ length: 1_000_000 }, (_, n) => `SKU-${n}`),
  });
  expect(await excessOf(delta, limitsOf('delta'))).toBeNull();
  expect(delta.length).toBeLessThan(limitsOf('delta').bytes);
});
