import fc from 'fast-check';

export const SKUS = ['A1', 'A2', 'AB1', 'B1', 'B2', 'C1', 'C2', 'D'];
const NAMES = ['Nike', 'Puma', ' nike', 'PUMA '];
const anySku = fc.constantFrom(...SKUS);
const someSkus = fc.uniqueArray(anySku, { minLength: 1, maxLength: 4 });
const anyRule = fc.oneof(
  fc.record({ kind: fc.constant('sku'), value: anySku }),
  fc.record({ kind: fc.constant('prefix'), value: fc.constantFrom('', 'A', 'AB', 'C') }),
  fc.record({ kind: fc.constantFrom('brand', 'model', 'category'), value: fc.constantFrom(...NAMES) }),
);
const answerKind = fc.constantFrom('record', 'record', 'bare', 'not_found', 'deferred', 'error', 'omitted');
/** One step of a random sequence. */
export const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('rule'), rule: anyRule, include: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('unrule'), rule: anyRule }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('truncate', 'read', 'sweep', 'pass', 'all', 'metadata', 'forget'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('mode'), scoped: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('claim') }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('answer'), kinds: fc.array(answerKind, { minLength: 1 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('turn'),
      sku: anySku,
      name: fc.constantFrom('Nike', 'Puma', null),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('delta'),
      changed: someSkus,
      live: someSkus,
      removed: fc.subarray(SKUS, { maxLength: 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('manifest'), skus: someSkus, hash: fc.constantFrom('h1', 'h2') }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('watch', 'refresh'), skus: someSkus }) },
);
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
