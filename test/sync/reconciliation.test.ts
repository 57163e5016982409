import { array, assert, constantFrom, property, record, uniqueArray } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { eachColumn } from '../../src/declared/metadata.ts';
import type { BulkAnswer, LowestRecord, UnreadableRecord } from '../../src/partner/answers.ts';
import { reconcile, skuResultOf, tally, unpriced } from '../../src/sync/reprice/reconciliation.ts';
import { settingsWith } from '../support/settings.ts';

const RECORD: LowestRecord = {
  sizes: new Map(),
  metadata: eachColumn(() => null),
  product: null,
};
const PARTS = ['results', 'unreadable', 'placeholder', 'notFound', 'deferred', 'errors'] as const;
type Part = (typeof PARTS)[number];

/** An answer that names each SKU in the given parts, in any order and any number of times. */
function answerOf(named: readonly { sku: string; part: Part }[]): BulkAnswer {
  const skus = (part: Part) => named.filter((n) => n.part === part).map(({ sku }) => sku);
  return {
    results: new Map<string, LowestRecord | UnreadableRecord>([
      ...skus('results').map((sku) => [sku, RECORD] as const),
      ...skus('unreadable').map((sku) => [sku, { unreadable: 'no size_map' }] as const),
      ...skus('placeholder').map((sku) => [sku, { unreadable: 'null', isPlaceholder: true }] as const),
    ]),
    notFound: skus('notFound'),
    deferred: skus('deferred'),
    errors: skus('errors'),
    requested: null,
  };
}

const anySku = constantFrom('A', 'B', 'C', 'D', 'E', '__proto__', 'constructor', '');
const anyAsked = uniqueArray(anySku, { maxLength: 8 });
const anyNamed = array(record({ sku: anySku, part: constantFrom(...PARTS) }), { maxLength: 20 });

const FAILED = {
  sku: 'A',
  generation: 1,
  deferrals: 0,
  failures: 5,
  live: false,
  dueAt: new Date(0),
  reason: 'changed',
} as const;

describe('a bulk answer', () => {
  test('gives every requested SKU exactly one result, whatever it names, omits, repeats or contradicts', () => {
    assert(
      property(anyAsked, anyNamed, (asked, named) => {
        const { skuAnswers, unexpected } = reconcile(asked, answerOf(named));
        expect([...skuAnswers.keys()].toSorted()).toEqual(asked.toSorted());
        const counts = tally(skuAnswers.values());
        expect(counts.resolved + counts.notFound + counts.deferred + counts.errors).toBe(asked.length);
        const unexpectedSkus = new Set(named.map(({ sku }) => sku).filter((sku) => !asked.includes(sku)));
        expect(unexpected).toBe(unexpectedSkus.size);
      }),
    );
  });

  test('decides a SKU only if everything it says about it agrees; otherwise the SKU stays due', () => {
    assert(
      property(anyAsked, anyNamed, (asked, named) => {
        const { skuAnswers } = reconcile(asked, answerOf(named));
        for (const sku of asked) {
          const answer = answerOf(named.filter((n) => n.sku === sku));
          const result = answer.results.get(sku);
          const listed = [
            ...answer.notFound.map(() => 'not_found'),
            ...answer.deferred.map(() => 'deferred'),
            ...answer.errors.map(() => 'error'),
          ];
          const said =
            result === undefined || ('isPlaceholder' in result && listed.length > 0)
              ? listed
              : [...listed, 'sizes' in result ? 'record' : 'error'];
          const agreed = new Set(said).size === 1 ? said[0] : 'error';
          expect(skuAnswers.get(sku)?.kind).toBe(agreed);
        }
      }),
    );
  });

  test.each<[Part[], ReturnType<typeof skuAnswerOf>]>([
    [[], { kind: 'error', because: 'omitted' }],
    [['results'], { kind: 'record', record: RECORD }],
    [['unreadable'], { kind: 'error', because: 'unreadable' }],
    [['notFound'], { kind: 'not_found' }],
    [['notFound', 'notFound'], { kind: 'not_found' }],
    [['deferred'], { kind: 'deferred' }],
    [['errors'], { kind: 'error', because: 'reported' }],
    [['results', 'notFound'], { kind: 'error', because: 'contradictory' }],
    [['notFound', 'deferred'], { kind: 'error', because: 'contradictory' }],
    [['deferred', 'errors'], { kind: 'error', because: 'contradictory' }],
    [['unreadable', 'deferred'], { kind: 'error', because: 'contradictory' }],
    [['placeholder'], { kind: 'error', because: 'unreadable' }],
    [['placeholder', 'notFound'], { kind: 'not_found' }],
    [['placeholder', 'deferred'], { kind: 'deferred' }],
    [['placeholder', 'errors'], { kind: 'error', because: 'reported' }],
    [['placeholder', 'notFound', 'deferred'], { kind: 'error', because: 'contradictory' }],
  ])('that names a SKU in %j', (parts, skuAnswer) => {
    expect(skuAnswerOf(parts)).toEqual(skuAnswer);
  });

  test('counts its results, and errors by their cause', () => {
    const asked = ['A', 'B', 'C', 'D', 'E', 'F', 'G'];
    const named = [
      { sku: 'A', part: 'results' },
      { sku: 'B', part: 'notFound' },
      { sku: 'C', part: 'deferred' },
      { sku: 'D', part: 'errors' },
      { sku: 'E', part: 'unreadable' },
      { sku: 'F', part: 'results' },
      { sku: 'F', part: 'errors' },
    ] as const;
    expect(tally(reconcile(asked, answerOf(named)).skuAnswers.values())).toEqual({
      resolved: 1,
      notFound: 1,
      deferred: 1,
      errors: 4,
      omitted: 1,
      contradictory: 1,
      unreadable: 1,
    });
  });
});

function skuAnswerOf(parts: readonly Part[]) {
  return reconcile(['A'], answerOf(parts.map((part) => ({ sku: 'A', part })))).skuAnswers.get('A');
}

test('a deferred SKU waits for DEFERRED_INTERVAL, plus a tenth at most', () => {
  const settings = settingsWith({ DEFERRED_INTERVAL: '10m' });
  const asked = {
    sku: 'A',
    generation: 1,
    deferrals: 0,
    failures: 0,
    live: true,
    dueAt: new Date(0),
    reason: 'sweep',
  };
  const waits = (random: number) => skuResultOf(asked, { kind: 'deferred' }, settings, () => random);
  expect([0, 0.5, 1].map(waits)).toEqual(
    [600_000, 630_000, 660_000].map((waitMs) => ({ sku: 'A', kind: 'deferred', waitMs })),
  );
});

describe('a limit that silently cuts a call', () => {
  const asked = ['A', 'B', 'C', 'D'];
  const answer = (requested: number | null, notFound: string[]): BulkAnswer => ({
    results: new Map(),
    notFound,
    deferred: [],
    errors: [],
    requested,
  });

  test.each([
    ['half is read, and answered', 2, ['A', 'B'], true],
    ['all is read', 4, ['A', 'B'], false],
    ['nothing is said of it', null, ['A', 'B'], false],
    ['fewer are said to be read than are answered', 1, ['A', 'B'], false],
    ['all is answered', 2, asked, false],
    ['none is said to be read', 0, [], false],
  ] as const)('%s', (_, requested, notFound, cut) => {
    expect(reconcile(asked, answer(requested, [...notFound])).cut).toBe(cut);
  });

  test.each([
    ['from the middle', ['A', 'D'], [], false],
    ['at the end', ['A', 'B'], [], true],
    ['at the end, which have failed while others were answered', ['A', 'B'], ['C', 'D'], false],
    ['at the end, of which one has', ['A', 'B'], ['C'], true],
    ['at the end, which may be chance', ['A', 'B', 'C'], [], false],
  ] as const)('is distinguished from skipped SKUs: those left out are %s', (_, notFound, setBack, cut) => {
    const found = reconcile(asked, answer(notFound.length, [...notFound]), new Set(setBack));
    expect(found).toMatchObject({ read: notFound.length, cut });
  });

  test('counts as a failure of no SKU', () => {
    const omitted = { kind: 'error', because: 'omitted' } as const;
    const settings = settingsWith({});
    const known = { generalErrors: false, computes: false, cut: true };
    const result = skuResultOf(FAILED, omitted, settings, () => 0, known);
    expect(result).toMatchObject({ kind: 'error', blame: 'general', waitMs: settings.intervals.errorMs });
  });
});

test('an entry is unpriced if it has a value that cannot be read', () => {
  const sizes = new Map([
    ['8', { price: 1200, entry: null }],
    ['9', { price: 1200, entry: { price: 1200, stock: 1 } }],
    ['10', { price: null, entry: 'sold', unreadable: true as const }],
    ['10.5', { price: null, entry: { price: null } }],
    ['11', { price: null, entry: null }],
  ]);
  expect(unpriced({ ...RECORD, sizes })).toBe(1);
});

test.each(['reported', 'omitted', 'contradictory', 'unreadable'] as const)(
  'an error that is %s says so',
  (because) => {
    const skuAnswer = { kind: 'error', because } as const;
    expect(skuResultOf(FAILED, skuAnswer, settingsWith({}), () => 0)).toMatchObject({ because });
  },
);
