import { describe, expect, test } from 'vitest';
import { classifyFailure } from '../../src/partner/errors.ts';
import { readManifestMeta } from '../../src/partner/manifest-answer.ts';
import { lineReader } from '../../src/partner/manifest-lines.ts';
import { readAmount, readSizeEntry } from '../../src/partner/size-map.ts';

describe('a price', () => {
  test.each([1200.5, '1200.50', 50.01])('with satang is unreadable, and its entry is kept: %j', (entry) => {
    expect(readSizeEntry(entry, { field: null })).toEqual({ price: null, entry, unreadable: true });
    expect(readAmount(entry, { field: null })).toBe(Number(entry));
  });

  test('in whole baht may be written with decimals', () => {
    expect(readSizeEntry('1200.00', { field: null })).toEqual({ price: 1200, entry: '1200.00' });
  });
});

describe('the identifier of a snapshot', () => {
  const url = 'https://files.example.com/m.gz';

  test('is not taken from ids of the request, the account or a schema', () => {
    for (const other of ['request_id', 'trace_id', 'account_id', 'schema_version'])
      expect(readManifestMeta({ url, [other]: 'x', id: 's1' }, {})).toMatchObject({
        ok: true,
        value: { snapshotId: 's1' },
      });
  });

  test('is missing if only such ids are present', () => {
    expect(readManifestMeta({ url, request_id: 'r1' }, {})).toMatchObject({ ok: false });
  });
});

describe('a rejected line', () => {
  test('shows no part of a secret that extends beyond its sample', () => {
    const hide = (text: string) => text.replaceAll('SIGNATURE-CANARY', '[secret]');
    const text = `${'x'.repeat(193)}SIGNATURE-CANARY and more`;
    const read = lineReader(65_536, hide)(text, 1);
    expect(read).toMatchObject({ reason: 'not-json', sample: `${'x'.repeat(193)}[secret` });
  });
});

test('a request that fails while the process stops is aborted, not a timeout, whichever came first', () => {
  const error = new Error('aborted');
  const over = AbortSignal.abort();
  const not = new AbortController().signal;
  expect(classifyFailure(error, over, over)).toBe('aborted');
  expect(classifyFailure(error, over, not)).toBe('aborted');
  expect(classifyFailure(error, not, over)).toBe('timeout');
  expect(classifyFailure(error, undefined, over)).toBe('timeout');
  expect(classifyFailure(error, not, not)).toBe('network');
});
