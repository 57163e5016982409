import { describe, expect, test } from 'vitest';
import { discovered } from '../../src/cli/doctor/discovery/checks.ts';
import { type KnownNames, NOTHING_KNOWN, type Evidence } from '../../src/cli/doctor/discovery/plan.ts';
import { manifestCandidates } from '../../src/partner/manifest-answer.ts';

/* `doctor` reads with the names that the mirror has learned. */

const NAMES = {
  bulkBodyKey: 'skus',
  price: ['price', 'lowest_ask'],
  sku: 'sku',
  manifestUrl: null,
  snapshotId: null,
};

function findings(body: unknown, entries: readonly unknown[], known: KnownNames): string[] {
  const records = entries.map((entry, n) => [`S${n}`, { code: '0000', size_map: { '40': entry } }]);
  const skus = records.map(([sku]) => sku as string);
  const evidence: Evidence = {
    manifest: { kind: 'ok', body, candidates: manifestCandidates(body, known.manifest) },
    sample: { snapshot: skus, live: [], urlPath: null, problem: null },
    bulk: [
      {
        sent: new Map([['skus', skus]]),
        kind: 'ok',
        body: { results: Object.fromEntries(records) as unknown },
      },
    ],
    delta: [],
    ownToken: null,
  };
  const found = discovered(evidence, { ...NAMES, known }).findings;
  return found.map(({ check, level, text }) => `${level} ${check}: ${text}`);
}

const URL_TEXT = 'https://files.example.com/m.gz';

test('a manifest of ambiguous shape is read by the learned fields', () => {
  const body = { version: 's1', revision: 'r7', url: URL_TEXT, download: `${URL_TEXT}2` };
  expect(
    findings(body, [], NOTHING_KNOWN).filter((line) => /^FAIL (manifest url|snapshot id)/.test(line)),
  ).toHaveLength(2);
  const known = { price: null, manifest: { url: 'download', snapshotId: 'version' } };
  const found = findings(body, [], known);
  expect(found).toContain('OK manifest url: in `download`');
  expect(found).toContain('OK snapshot id: in `version`, not tested with the delta');
});

test('a field with an unusable value is not looked for under another name', () => {
  const body = { snapshot_id: 'x'.repeat(3000), url: '/m.gz' };
  const evidence: Evidence = {
    manifest: { kind: 'ok', body, candidates: manifestCandidates(body) },
    sample: null,
    bulk: [],
    delta: [],
    ownToken: null,
  };
  const found = discovered(evidence, { ...NAMES, known: NOTHING_KNOWN }).findings;
  expect(found.filter(({ level }) => level === 'FAIL')).toMatchObject([
    {
      check: 'manifest url',
      text: 'presigned URL: url is a text of 5 characters that does not begin with http or https',
      remedy: expect.stringMatching(/^ask the partner; .* PARTNER_MANIFEST_URL_FIELD/),
    },
    {
      check: 'snapshot id',
      text: 'snapshot identifier: snapshot_id is a text of 3000 bytes, more than 2048',
      remedy: expect.stringMatching(/^ask the partner; .* PARTNER_SNAPSHOT_ID_FIELD/),
    },
  ]);
});

test.each([
  [{ price: 3590, lowest_ask: 3200 }, 'lowest_ask', 'in `lowest_ask`, `price`'],
  [{ price: 3590, lowest_ask: 3200 }, 'price', 'in `price`, `lowest_ask`'],
  [3200, null, 'plain numbers, no field name needed'],
])('entries that contain the learned form are read by it: %j by %s', (entry, field, where) => {
  const known = { price: { field }, manifest: NOTHING_KNOWN.manifest };
  const prices = findings({}, [entry], known).filter((line) => line.includes('prices'));
  expect(prices).toEqual([`OK prices: 1 size_map entries read: ${where}`]);
});

test.each([
  ['price', 'the mirror reads `price`, and no entry'],
  [null, 'the mirror reads plain numbers, and no entry'],
])('a warning says what the mirror reads if no entry contains it any longer: %s', (field, text) => {
  const known = { price: { field }, manifest: NOTHING_KNOWN.manifest };
  const body = { results: { A: { code: '0000', size_map: { '40': { lowest_ask: 3200 } } } } };
  const evidence: Evidence = {
    manifest: null,
    sample: null,
    bulk: [{ sent: new Map([['skus', ['A']]]), kind: 'ok', body }],
    delta: [],
    ownToken: null,
  };
  const warned = discovered(evidence, { ...NAMES, known }).findings.filter(({ level }) => level === 'WARN');
  expect(warned.map((finding) => finding.text)).toEqual([expect.stringContaining(text)]);
});

describe('entries of two forms, one with a field and one with plain numbers,', () => {
  const PLAIN = { '40': 5000, '41': 5100 };
  const NAMED = { '40': { price: 900, listings: 3 }, '41': null };
  const prices = (sizes: Record<string, object>, live: readonly string[] = [], known = NOTHING_KNOWN) => {
    const results = Object.fromEntries(
      Object.entries(sizes).map(([sku, map]) => [sku, { code: '0000', size_map: map }]),
    );
    const skus = Object.keys(sizes);
    const evidence: Evidence = {
      manifest: null,
      sample: { snapshot: skus.filter((sku) => !live.includes(sku)), live, urlPath: null, problem: null },
      bulk: [{ sent: new Map([['skus', skus]]), kind: 'ok', body: { results } }],
      delta: [],
      ownToken: null,
    };
    const found = discovered(evidence, { ...NAMES, known }).findings;
    return found.filter(({ check }) => check === 'prices').map(({ level, text }) => `${level}: ${text}`);
  };
  const BOTH = 'size_map entries of two forms read: in `price` for';
  const LATER = '; the mirror reads both once three answers have had both';
  const knownBoth = (field: string | null, also: string | null) => ({
    ...NOTHING_KNOWN,
    price: { field },
    also: { field: also },
  });

  test.each([
    ['of SKUs of one kind', [], 'OK: 5 ' + BOTH + ' 1 SKU, plain numbers for 2 SKUs' + LATER],
    ['of live SKUs and others', ['C'], 'OK: 5 ' + BOTH + ' 1 SKU, plain numbers for 2 SKUs' + LATER],
  ])('are both read: %s', (_, live, text) => {
    expect(prices({ A: PLAIN, B: PLAIN, C: NAMED }, live)).toEqual([text]);
  });

  test.each([
    [null, 'price'],
    ['price', null],
  ])('are read like the mirror that holds %s and next to it %s, without a warning', (field, also) => {
    const known = knownBoth(field, also);
    expect(prices({ A: PLAIN, C: NAMED }, [], known)).toEqual([
      `OK: 3 ${BOTH} 1 SKU, plain numbers for 1 SKU`,
    ]);
    expect(prices({ A: PLAIN }, [], known)).toEqual([
      'OK: 2 size_map entries read: plain numbers, no field name needed',
    ]);
    expect(prices({ C: NAMED }, [], known)).toEqual(['OK: 1 size_map entries read: in `price`']);
  });

  test('do not include two fields, because the mirror reads only one', () => {
    expect(prices({ A: { '40': { price: 900 } }, B: { '40': { lowest_ask: 800 } } }, ['B'])).toEqual([
      'FAIL: SKUs differ in the field of their price: 1 of 2 entries read, by `price`',
    ]);
  });
});
