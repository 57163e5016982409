import { faultsOf, type Mutant } from './mutant.ts';

const CORNERS = 'test/partner/corners.test.ts';
const WIRE = ['test/partner/wire.test.ts', CORNERS];
const LINES = ['test/partner/manifest-lines.test.ts', CORNERS];

/** Faults in reading the partner's answers. */
export const READINGS: readonly Mutant[] = [
  ...faultsOf(
    'src/partner/bulk-answer.ts',
    WIRE,
    ['wire: any code will do', "if (code !== '0000')", "if (code !== '0000' && code !== undefined)"],
    [
      'wire: entries in another form are a withdrawal',
      "return { unreadable: 'no entry of size_map reads as a price' };",
      ';',
    ],
    [
      'wire: a list as size_map is a withdrawal',
      'if (!isObject(sizeMap)) return { unreadable',
      "if (typeof sizeMap !== 'object' || sizeMap === null) return { unreadable",
    ],
    [
      'wire: a bulk body of other members is empty',
      'if (!BULK_PARTS.some((part) => Object.hasOwn(body, part))) {',
      'if (Object.keys(body).length === 0) {',
    ],
    [
      'wire: a list of results is no results',
      '(Array.isArray(rawResults) && rawResults.length === 0)',
      'Array.isArray(rawResults)',
    ],
    [
      'wire: a SKU that names itself by another member is lost',
      'isObject(element) && Object.hasOwn(element, skuField) ? element[skuField] : element',
      'element',
    ],
    [
      'wire: deferred SKUs are errors',
      'deferred: deferredSkus,\n      errors: errorSkus',
      'deferred: errorSkus,\n      errors: deferredSkus',
    ],
    [
      'wire: counts of negative numbers',
      'Number.isSafeInteger(count) && count >= 0',
      'Number.isSafeInteger(count)',
    ],
    [
      'wire: any object for a list is an empty one',
      '&& Object.keys(value).length === 0;',
      '&& Object.keys(value).length >= 0;',
    ],
    [
      'wire: a list of prices as size_map is a withdrawal',
      'Array.isArray(given) && given.length === 0 ? {}',
      'Array.isArray(given) ? {}',
    ],
    ['wire: large integers of records are rounded', 'MANY_DIGITS.test(text) ? parseExact(text) : ', ''],
  ),
  ...faultsOf(
    'src/partner/delta-answer.ts',
    WIRE,
    [
      'wire: a delta without a token says nothing new, whatever it reports',
      'toSnapshot === null ? reported > 0 :',
      'toSnapshot === null ? reported < 0 :',
    ],
    [
      'wire: a large numeric token is rounded',
      "typeof token === 'number' && !Number.isSafeInteger(token) ? parseExact(text) : body",
      'body',
    ],
    ['wire: skipped SKUs are not counted', 'else skipped += 1;', ''],
    ['wire: an empty token makes a delta unreadable', "|| token === '' ?", '?'],
    [
      'wire: an empty object for an empty list makes a delta unreadable',
      '(isEmptyObject(value) ? [] : value)',
      'value',
    ],
    [
      'wire: an element that is no SKU is skipped',
      "if (typeof sku !== 'string') return { ok: false, problem: `${name} has an element that is no SKU` };",
      "if (typeof sku !== 'string') continue;",
    ],
    [
      'wire: changes without now_live are covered',
      "return reported && body['now_live'] === undefined ?",
      "return reported && body['now_live'] === null ?",
    ],
    ['wire: a delta with an unknown list is whole', 'if (other !== undefined)\n', "if (other?.[0] === '')\n"],
  ),
  ...faultsOf(
    'src/partner/repeated-members.ts',
    ['test/partner/repeated-member.test.ts'],
    ['repeated: the last of two lists is all that counts', 'value !== all.at(-1) && ', 'value === null && '],
    ['repeated: a list that is empty first loses something', ' && !NOTHING.test(value)', ''],
    ['repeated: a member within another is one of the delta', "':' && level === 1) from", "':') from"],
    ['repeated: a name that is escaped is another', 'return ESCAPED_LETTER.test(text);', 'return false;'],
  ),
  ...faultsOf(
    'src/partner/repeated-members.ts',
    ['test/partner/repeated-records.test.ts'],
    ['repeated: the last of two prices counts', 'countMembers(body) === countColons(text)', 'true'],
    ['repeated: the same twice is unclear', 'before !== value &&', ''],
    ['repeated: nothing is a value', ' && !NOTHING.test(before)', ''],
    ['repeated: of two members results the last alone counts', 'areRecords ? this.#records : new', 'new'],
    ['repeated: a member beside the records is one of them', "part === 'results' &&", ''],
    [
      'repeated: a message that is said twice takes the price away',
      '(inner.length === 2 || DECISIVE.has(member))',
      'true',
    ],
    ['repeated: the last record of a SKU counts', 'inner.length === 2 ||', ''],
    [
      'repeated: a SKU of two records is a placeholder',
      "const UNCLEAR = 'two values';",
      'const UNCLEAR = null;',
    ],
  ),
  ...faultsOf(
    'src/partner/delta-answer.ts',
    ['test/partner/repeated-member.test.ts'],
    [
      'repeated: a delta that has lost a list is read',
      'isObject(body) ? lostMember(',
      'body === 0 ? lostMember(',
    ],
  ),
  ...faultsOf(
    'src/partner/text.ts',
    [...WIRE, ...LINES],
    [
      'text: a SKU of 512 characters is none',
      'value.length > 0 && value.length <= MAX_KEY_LENGTH',
      'value.length > 0 && value.length < MAX_KEY_LENGTH',
    ],
    [
      'text: the empty SKU is one',
      'value.length > 0 && value.length <=',
      'value.length >= 0 && value.length <=',
    ],
    ['text: lone surrogates are stored', ' && text.isWellFormed();', ';'],
    ['text: nested without end', 'if (depth >= MAX_DEPTH) return undefined;', ''],
    ['text: keys with NUL are stored', '    toStorable(key),\n', '    key,\n'],
  ),
  ...faultsOf(
    'src/partner/manifest-lines.ts',
    LINES,
    [
      'lines: the zero of a time is nonsense',
      'const NO_TIME = /^$|^0001-01-01T/;',
      'const NO_TIME = /^never$/;',
    ],
    ['lines: the last hash of a line counts', 'const DECISIVE = [', 'const DECISIVE: string[] = []; void ['],
    [
      'lines: the last SKU of a line that names two is readable',
      "twice === 'sku' ? null : settled.sku",
      'settled.sku',
    ],
    [
      'lines: a live line keeps its hash',
      'const hash = live ? null : hashOf(data.hash, text);',
      'const hash = hashOf(data.hash, text);',
    ],
    [
      'lines: a snapshot line without a hash is applied',
      "if (!live && hash === null) return 'bad-hash';\n",
      '',
    ],
    [
      'lines: a count that is a text is none',
      'const count = readCount(value);',
      'const count = Number.isInteger(value) ? readCount(value) : null;',
    ],
    [
      'lines: a time that is a number is none',
      'const time = readTime(value);',
      "const time = typeof value === 'number' ? null : readTime(value);",
    ],
    ['lines: zero is a fingerprint', '!Number.isInteger(value) || value === 0', '!Number.isInteger(value)'],
    [
      'lines: a fingerprint of many digits loses some',
      'if (Number.isSafeInteger(value)) return',
      'if (Number.isInteger(value)) return',
    ],
    ['lines: a time of before 1970 is one', 'return ms >= 0 && ms', 'return ms >= -Infinity && ms'],
    [
      'lines: a line of exactly the limit is too long',
      'Buffer.byteLength(text) > lineBytes;',
      'Buffer.byteLength(text) >= lineBytes;',
    ],
    [
      'lines: characters are counted, not bytes',
      'text.length * 3 > lineBytes && Buffer.byteLength(text) > lineBytes',
      'text.length > lineBytes',
    ],
    [
      'lines: secrets are cut out of samples too late',
      'const shown = hide(text.slice(0, SEARCHED_LENGTH));',
      'const shown = hide(text.slice(0, SAMPLE_LENGTH));',
    ],
    [
      'lines: the SKU of a cut line is lost',
      "return reject('too-long', salvageSku(text.slice(0, lineBytes)));",
      "return reject('too-long', null);",
    ],
  ),
  ...faultsOf(
    'src/partner/errors.ts',
    ['test/partner/errors.test.ts', CORNERS],
    [
      'errors: a code counts on any route',
      '&& known.status === status && known.routes.includes(route)',
      '&& known.status === status',
    ],
    [
      'errors: a code counts with any status',
      '&& known.status === status && known.routes.includes(route)',
      '&& known.routes.includes(route)',
    ],
    [
      'errors: 0009 in a 200 is an answer',
      "code === undefined || code === '0000' ? null : 'unreadable'",
      'null',
    ],
    ['errors: a numeric code loses its zeros', "String(code).padStart(4, '0')", 'String(code)'],
    [
      'errors: the 500 of a price route is of the credential',
      "!['errorMessage', 'code', 'statusCode'].some",
      "!['errorMessage', 'statusCode'].some",
    ],
    [
      'errors: any 403 with a statusCode is an account that is not configured',
      'message.trim().toLowerCase() === NOT_CONFIGURED',
      'true',
    ],
    [
      'errors: a stopped process has timed out',
      "  if (caller?.aborted) return 'aborted';\n  if (timer.aborted) return 'timeout';",
      "  if (timer.aborted) return 'timeout';\n  if (caller?.aborted) return 'aborted';",
    ],
    [
      'errors: a 403 of the files origin is a fault',
      "status === 403 ? 'url-expired' : 'file-fault'",
      "status === 401 ? 'url-expired' : 'file-fault'",
    ],
    [
      'errors: the query of a URL is in a cause',
      "text.replaceAll(/\\?[^\\s\"']*/g, '?[query]').replaceAll",
      'text.replaceAll',
    ],
  ),
];
