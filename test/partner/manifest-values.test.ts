import { describe, expect, test } from 'vitest';
import { readDelta } from '../../src/partner/delta-answer.ts';
import { manifestFaults, readManifestMeta } from '../../src/partner/manifest-answer.ts';
import { MAX_TOKEN_BYTES } from '../../src/partner/text.ts';

const url = 'https://files.example.com/m.gz?X-Amz-Signature=canary';
const NAMES = { priceFields: [], skuField: 'sku' };

const idOf = (snapshot_id: unknown) => {
  const reading = readManifestMeta({ snapshot_id, url }, {});
  return reading.ok ? reading.value.snapshotId : null;
};
const tokenOf = (to_snapshot: unknown) => {
  const body = { changed: ['A'], removed: [], now_live: [], to_snapshot };
  const reading = readDelta(body, NAMES);
  return reading.ok ? reading.value.toSnapshot : null;
};

test.each([
  ['a signed token', `eyJ${'a'.repeat(700)}`, true],
  ['the longest', 'a'.repeat(MAX_TOKEN_BYTES), true],
  ['one byte too long', 'a'.repeat(MAX_TOKEN_BYTES + 1), false],
  ['as long in bytes', `${'ก'.repeat(682)}aa`, true],
  ['too long in bytes alone', 'ก'.repeat(683), false],
  ['a NUL', 'a\0', false],
  ['half a character', '\ud800', false],
])('manifest and delta read an identifier alike: %s', (_name, id, isRead) => {
  expect([idOf(id), tokenOf(id)]).toEqual(isRead ? [id, id] : [null, null]);
});

describe('an unusable value is reported instead of counting as an absent field:', () => {
  const long = 'secret'.repeat(400);
  test.each<[string, unknown, string]>([
    ['too long', long, `a text of 2400 bytes, more than ${MAX_TOKEN_BYTES}`],
    ['empty', '', 'empty'],
    ['null', null, 'null'],
    ['a fraction', 1.5, 'a number that is no integer'],
    ['a truth', true, 'a boolean'],
    ['a list', ['secret'], 'a list'],
    ['not storable', 'secret\0', 'a text with a NUL or half a character'],
    ['a URL', 'https://secret.example.com', 'a URL'],
  ])('an identifier that is %s', (_name, value, kind) => {
    for (const names of [{}, { snapshotIdField: 'snapshot_id' }]) {
      const reading = readManifestMeta({ snapshot_id: value, sku_count: 3, url }, names);
      if (reading.ok) throw new Error('read');
      expect(reading.problem).toBe(`snapshot identifier: snapshot_id is ${kind}`);
      expect(reading.hint).toMatch(/^ask the partner; .* PARTNER_SNAPSHOT_ID_FIELD/);
      expect(JSON.stringify(reading)).not.toMatch(/secret|canary/);
    }
  });

  test('an identifier that is an object, if its name is configured', () => {
    const body = { snapshot_id: { value: 's1' }, url };
    const reading = readManifestMeta(body, { snapshotIdField: 'snapshot_id' });
    expect(reading).toMatchObject({ problem: 'snapshot identifier: snapshot_id is an object' });
    // Without a configured name, the fields within it are the candidates.
    expect(readManifestMeta(body, {})).toMatchObject({
      problem: 'snapshot identifier: not found among the fields snapshot_id.value, url',
      hint: 'set PARTNER_SNAPSHOT_ID_FIELD to the name of the field',
    });
  });

  test('an object within an object', () => {
    expect(readManifestMeta({ snapshot: { id: { secret: 1 } }, url }, {})).toMatchObject({
      problem: 'snapshot identifier: snapshot.id is an object',
    });
  });

  test.each<[string, unknown, string]>([
    ['relative', '/file?sig=canary', 'a text of 16 characters that does not begin with http or https'],
    ['of another scheme', 's3://canary', 'a text of 11 characters that does not begin with http or https'],
    ['no URL', 'https://canary:x', 'a text of 16 characters that is no URL'],
    ['empty', '', 'empty'],
    ['null', null, 'null'],
    ['a number', 7, 'a number'],
    ['a list', [url], 'a list'],
  ])('a URL that is %s', (_name, value, kind) => {
    for (const names of [
      {},
      { urlField: 'download_url' },
      { known: { url: 'download_url', snapshotId: null } },
    ]) {
      const body = { snapshot_id: 's1', url_expires_at: 'soon', download_count: 3, download_url: value };
      const reading = readManifestMeta(body, names);
      if (reading.ok) throw new Error('read');
      expect(reading.problem).toBe(`presigned URL: download_url is ${kind}`);
      expect(reading.hint).toMatch(/^ask the partner; .* PARTNER_MANIFEST_URL_FIELD/);
      expect(JSON.stringify(reading)).not.toContain('canary');
    }
  });

  test('a remembered field, whatever its name', () => {
    const body = { place: '/m.gz', build: '', url: null };
    expect(readManifestMeta(body, { known: { url: 'place', snapshotId: 'build' } })).toMatchObject({
      problem: expect.stringContaining('presigned URL: place is a text of 5 characters'),
    });
    expect(
      readManifestMeta({ ...body, url }, { known: { url: 'place', snapshotId: 'build' } }),
    ).toMatchObject({
      problem: 'snapshot identifier: build is empty',
    });
  });

  test('but not fields that belong to something else', () => {
    const body = { url, previous_snapshot_id: '', request_id: '', snapshot_at: '', snapshot_status: '' };
    expect(readManifestMeta(body, {})).toMatchObject({
      problem: expect.stringContaining('snapshot identifier: not found among the fields url, '),
    });
  });
});

test('doctor learns of both faults at once', () => {
  expect(manifestFaults({ snapshot_id: '', url: '/m.gz' }, {})).toEqual({
    url: expect.objectContaining({ problem: expect.stringContaining('url is a text of 5 characters') }),
    snapshotId: expect.objectContaining({ problem: 'snapshot identifier: snapshot_id is empty' }),
  });
  expect(manifestFaults({ snapshot_id: 's', url }, {})).toEqual({ url: null, snapshotId: null });
  expect(manifestFaults([], {})).toMatchObject({
    url: { hint: 'check PARTNER_BASE_URL' },
    snapshotId: { hint: 'check PARTNER_BASE_URL' },
  });
});

test.each(['previous', 'previous_snapshot', 'delta'])(
  'counts and times are those of the snapshot, not those in %s, whichever comes first',
  (name) => {
    const other = { id: 's0', generated_at: '2026-11-19T10:00:00Z', sku_count: 9, live_priced_sku_count: 8 };
    const own = { id: 's1', generated_at: '2026-11-20T10:00:00Z', sku_count: 5, live_priced_sku_count: 4 };
    for (const body of [
      { [name]: other, snapshot: own, url },
      { snapshot: own, [name]: other, url },
    ])
      expect(readManifestMeta(body, {})).toMatchObject({
        ok: true,
        value: {
          snapshotId: 's1',
          generatedAt: new Date(own.generated_at),
          skuCount: 5,
          livePricedSkuCount: 4,
        },
      });
    expect(readManifestMeta({ [name]: other, snapshot: own, url }, { snapshotIdField: 'id' })).toMatchObject({
      value: { snapshotId: 's1' },
    });
  },
);

test.each([1_793_527_200, 1_793_527_200_000, '1793527200', '1793527200000', '2026-11-01 10:00:00'])(
  'the build time may be written as %j',
  (generated_at) => {
    const reading = readManifestMeta({ snapshot_id: 1, url, generated_at }, {});
    expect(reading).toMatchObject({ value: { generatedAt: new Date('2026-11-01T10:00:00Z') } });
  },
);
