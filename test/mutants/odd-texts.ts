import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in reading texts and envelopes that a partner may send but hardly ever does. */
export const ODD_TEXTS: readonly Mutant[] = [
  ...faultsOf(
    'src/partner/text.ts',
    ['test/partner/odd-bytes.test.ts', 'test/partner/manifest-file.test.ts'],
    [
      'utf-8: bytes that are none become another SKU',
      "return isUtf8(bytes) ? bytes.toString('utf8') : decodedBroken(bytes).replaceAll('\\uFFFD', BROKEN);",
      "return bytes.toString('utf8');",
    ],
    [
      'utf-8: the half that stands for a byte makes another half whole',
      "replaceAll(BEHIND_HALF, '\\uFFFD\\uFFFD')",
      'toString()',
    ],
    [
      'utf-8: behind a backslash a byte becomes six characters',
      'replaceAll(UNESCAPED, ',
      "replaceAll('\\uFFFD', ",
    ],
    [
      'utf-8: bytes of a file that are none become another SKU',
      'parts.push(isUtf8(line) ? line : escaped());',
      'parts.push(line);',
    ],
  ),
  ...faultsOf(
    'src/partner/delta-answer.ts',
    ['test/partner/odd-bytes.test.ts'],
    [
      'utf-8: a delta passes over a SKU that it cannot read',
      'if (isBroken(sku)) return',
      'if (sku === null) return',
    ],
  ),
  ...faultsOf(
    'src/partner/file-stream.ts',
    ['test/partner/manifest-file.test.ts'],
    [
      'utf-8: a line that comes in two chunks is judged by halves',
      'if (end < chunk.length) open.push(chunk.subarray(end));',
      'if (end < chunk.length) yield withBrokenEscaped(chunk.subarray(end));',
    ],
  ),
  ...faultsOf(
    'src/partner/tunnel.ts',
    ['test/partner/odd-bytes.test.ts'],
    [
      'network: how a connection failed is not said',
      "code !== undefined && ERROR_CODE.test(code) ? code : ''",
      "''",
    ],
    [
      'network: a certificate that ran out is told as one of nobody who is trusted',
      'HAS_EXPIRED',
      'HAS_NONE',
    ],
    ['network: what refuses TLS is told as a certificate', '/^ERR_SSL.*_ALERT_/', '/^ERR_NONE/'],
  ),
  ...faultsOf(
    'src/partner/manifest-file.ts',
    ['test/partner/manifest-file-faults.test.ts'],
    [
      'network: of a file that is not reached, a setting is blamed',
      'factsOfWay(error, kind, proxy, NAMED_BY)',
      'factsOfWay(error, kind, proxy)',
    ],
  ),
  ...faultsOf(
    'src/partner/bulk-answer.ts',
    ['test/partner/wire.test.ts'],
    [
      'wire: a SKU that is said not to be in a list is in it',
      'Object.keys(part).filter((sku) => part[sku] !== false)',
      'Object.keys(part)',
    ],
    [
      'wire: false in place of a record contradicts the list that names the SKU',
      '  value === false ||\n',
      '',
    ],
  ),
  ...faultsOf(
    'src/partner/bulk-answer.ts',
    ['test/partner/manifest-values.test.ts'],
    [
      'wire: an epoch as text is no time of building',
      "if (typeof value === 'string' && EPOCH_TEXT.test(value)) return readTime(Number(value));",
      '',
    ],
  ),
  ...faultsOf(
    'src/lib/json.ts',
    ['test/lib/json.test.ts'],
    ['keys: read as V8 has them', 'if (keys.length === 0) return value;', 'return value;'],
    [
      'keys: what stands for one is left in its place',
      'return names.size === 0 ? read : renamed(read, names);',
      'return read;',
    ],
    ['keys: another one of the text stands for one', 'of [text, ...keys.map', 'of [...keys.map'],
    ['keys: another one that is escaped stands for one', '[text, ...keys.map(({ name }) => name)]', '[text]'],
    ['keys: one before blanks is taken for a text', '/[\\t\\n\\r ]*:/y', '/:/y'],
    [
      'keys: the same one is another where it is there again',
      'if (!standIns.has(name)) standIns.set',
      'standIns.set',
    ],
  ),
  ...faultsOf(
    'src/partner/bulk-answer.ts',
    ['test/partner/repeated-records.test.ts'],
    [
      'keys: those of answers are read as V8 has them',
      'parseExact(text) : parseJson(text)',
      'parseExact(text) : JSON.parse(text)',
    ],
    [
      'keys: those beside long numbers are read as V8 has them',
      'return parseJson(text, (_key, value, context) => {',
      'return JSON.parse(text, (_key, value, context) => {',
    ],
  ),
  ...faultsOf(
    'src/store/connection/db.ts',
    ['test/store/answer-corners.pg.test.ts'],
    ['keys: those of rows are read as V8 has them', '    types: { json: JSON_TYPE },\n', ''],
  ),
  ...faultsOf(
    'src/partner/text.ts',
    ['test/store/longest-names.pg.test.ts'],
    ['wire: a size that no index holds is read', 'Buffer.byteLength(key) <= MAX_SIZE_BYTES && ', ''],
  ),
  ...faultsOf(
    'src/store/answer/apply.ts',
    ['test/store/longest-names.pg.test.ts'],
    [
      'members: one with an endless name keeps others from being muted',
      'noted.muted.filter(mayBeMuted)',
      'noted.muted',
    ],
  ),
  ...faultsOf(
    'src/partner/size-map.ts',
    ['test/partner/many-blanks.test.ts'],
    [
      'wire: a text is divided in every way to see whether it is a price',
      String.raw`(?:\p{L}{1,8}[^\d\p{L}]*)?\d(?:[.,'’\s]*\d)*[^\d\p{L}]*(?:\p{L}{1,8}[^\d\p{L}]*)?$/u`,
      String.raw`\p{L}{0,8}[^\d\p{L}]*\d[\d.,'’\s]*[^\d\p{L}]*\p{L}{0,8}[^\d\p{L}]*$/u`,
    ],
  ),
  ...faultsOf(
    'src/partner/delta-answer.ts',
    ['test/partner/many-blanks.test.ts'],
    [
      'delta: blanks are divided in every way to see whether a member says nothing',
      'NO_TEXT.test(value.trim())',
      String.raw`/^\s*(?:false|no|none|null|0)?\s*$/i.test(value)`,
    ],
  ),
];
