import { describe, expect, test } from 'vitest';
import { manifestCandidates, readManifestMeta } from '../../src/partner/manifest-answer.ts';

const URL_TEXT = 'https://files.example.com/m.gz?X-Amz-Signature=canary';
const known = {
  url_expires_at: '2026-11-01T01:00:00.000Z',
  generated_at: '2026-11-01T00:00:00.000Z',
  sku_count: 10,
  live_priced_sku_count: '2',
};

test.each<[string, object, string]>([
  ['snake case', { snapshot_id: 's1', url: URL_TEXT, ...known }, 's1'],
  ['camel case', { snapshotId: 's1', downloadUrl: URL_TEXT, ...known }, 's1'],
  ['a plain snapshot field', { snapshot: 's1', manifest_url: URL_TEXT, ...known }, 's1'],
  ['a bare id', { id: 's1', link: URL_TEXT, ...known }, 's1'],
  ['a version only', { version: 17, url: URL_TEXT, ...known }, '17'],
  ['an unhelpful URL name', { snapshot_id: 's1', location: URL_TEXT, ...known }, 's1'],
  ['nested objects', { snapshot: { id: 's1', status: 'ready', ...known }, file: { url: URL_TEXT } }, 's1'],
  [
    'other ids beside it',
    { snapshot_id: 's1', id: 'x', request_id: 'r', supplier_id: 'p', url: URL_TEXT, ...known },
    's1',
  ],
  [
    'the id named twice alike',
    { snapshot_id: 's1', latest_snapshot_id: 's1', url: URL_TEXT, ...known },
    's1',
  ],
  [
    'a status beside a snapshot id',
    { snapshot_id: 's1', snapshot_status: 'ready', url: URL_TEXT, ...known },
    's1',
  ],
  [
    'a docs URL beside a named one',
    { snapshot_id: 's1', documentation: 'https://docs.example.com', url: URL_TEXT, ...known },
    's1',
  ],
  [
    'a URL in a *_at field',
    { snapshot_id: 's1', located_at: 'https://x.example.com', download: URL_TEXT, ...known },
    's1',
  ],
])('a manifest response is recognised by its shape: %s', (_name, body, snapshotId) => {
  const reading = readManifestMeta(body, {});
  if (!reading.ok) throw new Error(reading.problem);
  const { url, readBy, ...rest } = reading.value;
  expect(url.reveal().href).toBe(URL_TEXT);
  expect(rest).toEqual({
    snapshotId,
    generatedAt: new Date(known.generated_at),
    skuCount: 10,
    livePricedSkuCount: 2,
  });
  // Read by its remembered fields, it yields the same, whatever their names suggest.
  expect(readManifestMeta(body, { known: readBy })).toEqual(reading);
});

test('counts and the build time are found in camel case, but not those of another snapshot', () => {
  const counts = { generatedAt: known.generated_at, skuCount: 10, livePricedSkuCount: '2' };
  const read = (more: object) => readManifestMeta({ snapshotId: 's1', url: URL_TEXT, ...more }, {});
  const found = { generatedAt: new Date(known.generated_at), skuCount: 10, livePricedSkuCount: 2 };
  expect(read(counts)).toMatchObject({ ok: true, value: found });
  expect(read({ snapshot: counts })).toMatchObject({ ok: true, value: found });
  expect(read({ ...counts, previous: { sku_count: 7 } })).toMatchObject({ ok: true, value: found });
  expect(read({ sku_count: 11, skuCount: 10 })).toMatchObject({ ok: true, value: { skuCount: 11 } });
  expect(read({ skuCount: 10, snapshot: { skuCount: 10 } })).toMatchObject({ value: { skuCount: 10 } });
  expect(read({ skuCount: 11, snapshot: { skuCount: 10 } })).toMatchObject({ value: { skuCount: null } });
  expect(read({ snapshot: { skuCount: 'many' } })).toMatchObject({
    ok: false,
    problem: 'snapshot.skuCount is not a count',
  });
  expect(read({ previous: counts })).toMatchObject({ ok: true, value: { skuCount: null } });
});

test('absent or odd metadata is null', () => {
  const reading = readManifestMeta(
    { snapshot_id: 1, url: URL_TEXT, generated_at: 'soon', live_priced_sku_count: -1 },
    {},
  );
  expect(reading).toMatchObject({
    value: {
      snapshotId: '1',
      generatedAt: null,
      skuCount: null,
      livePricedSkuCount: null,
    },
  });
});

test.each([0, '0', '0001-01-01T00:00:00Z', '1970-01-01T00:00:00Z', '0000-00-00 00:00:00', -1, ''])(
  'a zero in place of a time means that there is none: %j',
  (generated_at) => {
    const reading = readManifestMeta({ snapshot_id: 1, url: URL_TEXT, generated_at }, {});
    expect(reading).toMatchObject({ ok: true, value: { generatedAt: null } });
  },
);

test.each([-1, 1.5, 'many', [10], {}, true])(
  'an invalid sku_count is an error instead of absent: %j',
  (sku_count) => {
    const reading = readManifestMeta({ snapshot_id: 1, url: URL_TEXT, sku_count }, {});
    expect(reading).toMatchObject({ ok: false, problem: 'sku_count is not a count' });
  },
);

test('a count of live SKUs that no table can hold is null', () => {
  const live = (live_priced_sku_count: unknown) => {
    const reading = readManifestMeta({ snapshot_id: 1, url: URL_TEXT, live_priced_sku_count }, {});
    return reading.ok && reading.value.livePricedSkuCount;
  };
  expect([live(2_147_483_647), live(2_147_483_648), live('2147483648'), live(9e15)]).toEqual([
    2_147_483_647,
    null,
    null,
    null,
  ]);
});

test.each([
  [1_793_491_200, '2026-11-01T00:00:00.000Z'],
  [1_793_491_200_000, '2026-11-01T00:00:00.000Z'],
  ['2026-11-01T07:00:00+07:00', '2026-11-01T00:00:00.000Z'],
  ['2026-11-01T00:00:00', '2026-11-01T00:00:00.000Z'],
  ['2026-11-01T00:00:00.250', '2026-11-01T00:00:00.250Z'],
  ['2026-11-01 00:00', '2026-11-01T00:00:00.000Z'],
  ['2026-11-01', '2026-11-01T00:00:00.000Z'],
])(
  'a time may be epoch seconds, milliseconds or text, which without a zone means UTC: %s',
  (generated_at, iso) => {
    const before = process.env['TZ'];
    process.env['TZ'] = 'Asia/Bangkok';
    try {
      const reading = readManifestMeta({ snapshot_id: 's', url: URL_TEXT, generated_at }, {});
      expect(reading.ok && reading.value.generatedAt?.toISOString()).toBe(iso);
    } finally {
      if (before === undefined) delete process.env['TZ'];
      else process.env['TZ'] = before;
    }
  },
);

/** Fields that a partner may add to a manifest response that is readable without them. */
const ADDED: readonly object[] = [
  { previous_snapshot_id: 's0' },
  { prevSnapshotId: 's0' },
  { base_snapshot_id: 's0', parent_snapshot_id: 's0b' },
  { next_snapshot_id: 's2' },
  { last_snapshot_id: 's0' },
  { since_snapshot_id: 's0', from_snapshot_id: 's0b' },
  { oldest_snapshot_id: 's-9' },
  { latest_delta_id: 'd9' },
  { previous_snapshot: { id: 's0', url: 'https://files.example.com/old.gz' } },
  { delta: { id: 'd9', url: 'https://files.example.com/delta.gz' } },
  { request: { id: 'r1' } },
  { snapshot_status: 'ready', snapshot_type: 'full', snapshot_checksum: 'ab12' },
  { checksum_url: 'https://files.example.com/m.sha256' },
  { docs_url: 'https://docs.example.com', schema_uri: 'https://docs.example.com/schema.json' },
  { docs: { url: 'https://docs.example.com' }, links: { self: 'https://api.example.com/manifest' } },
  { status_link: 'https://status.example.com' },
  { mirror_url: 'https://mirror.example.com/m.gz' },
];

test.each(
  ADDED.flatMap((added) =>
    [
      { snapshot_id: 's1', url: URL_TEXT },
      { snapshotId: 's1', downloadUrl: URL_TEXT },
      { id: 's1', link: URL_TEXT },
      { version: 's1', location: URL_TEXT },
      { snapshot: { id: 's1' }, file: { url: URL_TEXT } },
    ].map((plain) => [added, plain] as const),
  ),
)('fields that belong to something else change nothing: %j beside %j', (added, plain) => {
  for (const body of [
    { ...added, ...plain },
    { ...plain, ...added },
  ]) {
    const reading = readManifestMeta(body, {});
    if (!reading.ok) throw new Error(reading.problem);
    expect([reading.value.url.reveal().href, reading.value.snapshotId]).toEqual([URL_TEXT, 's1']);
  }
});

test.each([
  ['base_snapshot_id', 'checksum_url'],
  ['last_snapshot_id', 'docs'],
  ['snapshot_hash', 'mirror_link'],
])('a field without competitors is used, whatever its name: %s, %s', (id, url) => {
  const reading = readManifestMeta({ [id]: 's1', [url]: URL_TEXT }, {});
  expect(reading).toMatchObject({ ok: true, value: { snapshotId: 's1', readBy: { url, snapshotId: id } } });
});

describe('the fields by which the last applied manifest was read', () => {
  const known = { url: 'file.url', snapshotId: 'version' };
  const body = { version: 's1', revision: 'r7', file: { url: URL_TEXT }, download_url: `${URL_TEXT}2` };
  const read = (...[given, names]: Parameters<typeof readManifestMeta>) => {
    const reading = readManifestMeta(given, names);
    return reading.ok
      ? [reading.value.url.reveal().href, reading.value.snapshotId, reading.value.readBy]
      : reading.problem;
  };

  test('decide if more than one field qualifies', () => {
    expect(readManifestMeta(body, {}).ok).toBe(false);
    expect(read(body, { known })).toEqual([URL_TEXT, 's1', known]);
  });

  test('take precedence over names of fields', () => {
    const renamed = { ...body, snapshot_id: 'x', url: `${URL_TEXT}3` };
    expect(read(renamed, { known })).toEqual([URL_TEXT, 's1', known]);
  });

  test('give way to configured names', () => {
    expect(read(body, { known, urlField: 'download_url', snapshotIdField: 'revision' })).toEqual([
      `${URL_TEXT}2`,
      'r7',
      { url: 'download_url', snapshotId: 'revision' },
    ]);
    expect(read(body, { known, snapshotIdField: 'nope' })).toContain('not found');
  });

  test.each([
    ['gone', { id: 's2', link: URL_TEXT }],
    ['null', { id: 's2', version: null, link: URL_TEXT, file: { url: null } }],
    ['of another type', { id: 's2', version: { major: 1 }, link: URL_TEXT, file: 'm.gz' }],
    [
      'no URL, and one',
      { id: 's2', version: 'https://x.example.com', link: URL_TEXT, file: { url: '/m.gz' } },
    ],
  ])('are ignored if they are %s', (_name, changed) => {
    const reading = readManifestMeta(changed, { known });
    expect(reading).toMatchObject({ ok: true, value: { snapshotId: 's2', readBy: { snapshotId: 'id' } } });
  });

  test('are remembered only if a table can hold their names', () => {
    const [nul, long] = ['a\0b', 'x'.repeat(513)];
    const named = { [nul]: { id: 's1' }, [long]: URL_TEXT };
    expect(read(named, {})).toEqual([URL_TEXT, 's1', { url: null, snapshotId: null }]);
  });
});

test('doctor lists the known fields first, then those found by shape', () => {
  const body = {
    snapshot_id: 's1',
    version: 'v',
    previous_snapshot_id: 's0',
    url: URL_TEXT,
    location: URL_TEXT,
  };
  const of = (known?: { url: string; snapshotId: string }) => {
    const { url, snapshotId } = manifestCandidates(body, known);
    return [url.map(({ path }) => path), snapshotId.map(({ path }) => path)];
  };
  expect(of()).toEqual([
    ['url', 'location'],
    ['snapshot_id', 'version', 'previous_snapshot_id'],
  ]);
  expect(of({ url: 'location', snapshotId: 'version' })).toEqual([
    ['location', 'url'],
    ['version', 'snapshot_id', 'previous_snapshot_id'],
  ]);
});

test('configured names win, also dotted ones', () => {
  const body = {
    a: 'https://a.example.com/1',
    file: { b: URL_TEXT },
    snapshot_id: 's1',
    build: { no: 'b7' },
  };
  const reading = readManifestMeta(body, { urlField: 'file.b', snapshotIdField: 'no' });
  expect(reading.ok && [reading.value.url.reveal().href, reading.value.snapshotId]).toEqual([URL_TEXT, 'b7']);
});

test.each<[string, unknown, object, string, string[]]>([
  [
    'two URLs',
    { a_url: URL_TEXT, b_url: `${URL_TEXT}2`, snapshot_id: 's' },
    {},
    'PARTNER_MANIFEST_URL_FIELD',
    ['a_url', 'b_url'],
  ],
  ['no URL', { snapshot_id: 's', path: 'x' }, {}, 'PARTNER_MANIFEST_URL_FIELD', ['snapshot_id', 'path']],
  [
    'two ids',
    { url: URL_TEXT, snapshot_id: 'secretA', latest_snapshot_id: 'secretB', base_snapshot_id: 'secretC' },
    {},
    'PARTNER_SNAPSHOT_ID_FIELD',
    ['snapshot_id', 'latest_snapshot_id'],
  ],
  [
    'two ids of other snapshots',
    { url: URL_TEXT, previous_snapshot_id: 'secretA', next_snapshot_id: 'secretB' },
    {},
    'PARTNER_SNAPSHOT_ID_FIELD',
    ['previous_snapshot_id', 'next_snapshot_id'],
  ],
  [
    'two URLs of something else',
    { docs_url: URL_TEXT, checksum_url: `${URL_TEXT}2`, snapshot_id: 's' },
    {},
    'PARTNER_MANIFEST_URL_FIELD',
    ['docs_url', 'checksum_url'],
  ],
  ['no id', { url: URL_TEXT, snapshot_at: 'x', snapshot_count: 3 }, {}, 'PARTNER_SNAPSHOT_ID_FIELD', ['url']],
  [
    'a wrong configured URL',
    { url: URL_TEXT, snapshot_id: 's' },
    { urlField: 'nope' },
    'PARTNER_MANIFEST_URL_FIELD',
    ['url'],
  ],
  [
    'a wrong configured id',
    { url: URL_TEXT, snapshot_id: 's' },
    { snapshotIdField: 'nope' },
    'PARTNER_SNAPSHOT_ID_FIELD',
    ['snapshot_id'],
  ],
  [
    'a configured URL that is none',
    { url: 'x', snapshot_id: 's' },
    { urlField: 'url' },
    'PARTNER_MANIFEST_URL_FIELD',
    ['url'],
  ],
  ['no object', [], {}, 'PARTNER_BASE_URL', []],
])(
  'the hint names the variable to set for %s, and shows no value',
  (_name, body, names, variable, fields) => {
    const reading = readManifestMeta(body, names);
    if (reading.ok) throw new Error('read');
    expect(reading.hint).toContain(variable);
    for (const field of fields) expect(reading.problem).toContain(field);
    expect(JSON.stringify(reading)).not.toMatch(/canary|secret[A-C]|https?:/);
  },
);
