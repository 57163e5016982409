import { faultsOf, type Mutant } from './mutant.ts';

const CORNERS = 'test/partner/corners.test.ts';
const VALUES = ['test/partner/manifest-values.test.ts'];
const META = ['test/partner/manifest-answer.test.ts', CORNERS];

/** Faults in how a manifest response is read. */
export const MANIFEST_ANSWERS: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/manifest-decision.ts',
    ['test/sync/manifest-decision.test.ts'],
    [
      'manifest: any number of live SKUs is taken after failures of another kind',
      '!(isMiscounted && failures >= tries)',
      '!(failures >= tries)',
    ],
    [
      'manifest: the file that a cache has from before is taken whatever it counts',
      'const tries = kept === null ? TRIES : TRIES_OF_KEPT;',
      'const tries = TRIES;',
    ],
    [
      'manifest: the file that a cache has from before is never taken',
      'if (kept !== null && !(isTold && failures >= TRIES))',
      'if (kept !== null)',
    ],
    [
      'manifest: the file that a cache has from before is taken at once where it counts as many',
      'if (kept !== null && !(isTold && failures >= TRIES))',
      'if (false)',
    ],
    [
      'manifest: no cache has kept a file',
      'if (ageSeconds <= 0 || builtAt === null) return null;',
      'if (ageSeconds >= 0 || builtAt === null) return null;',
    ],
  ),
  ...faultsOf(
    'src/sync/manifest.ts',
    ['test/sync/manifest.pg.test.ts'],
    [
      'manifest: the clock of a host tells how long a cache has kept a file',
      'meta.generatedAt, askedAt.getTime());',
      'meta.generatedAt, clock.now());',
    ],
    [
      'manifest: a file that a cache has from before is taken without a word',
      'if (kept !== null) emit',
      'if (false) emit',
    ],
  ),
  ...faultsOf(
    'src/partner/manifest-lines.ts',
    ['test/partner/manifest-lines.test.ts'],
    [
      'manifest lines: an epoch as text is no time',
      "if (typeof value === 'string' && !EPOCH_TEXT.test(value))",
      "if (typeof value === 'string')",
    ],
  ),
  ...faultsOf(
    'src/partner/manifest-fields.ts',
    META,
    [
      'manifest answer: counts in camel case are none',
      'return alike !== undefined && others.every(({ value }) => value === alike.value) ? alike : exact;',
      'return exact;',
    ],
    [
      'manifest answer: of two counts in camel case the first is taken',
      'others.every(({ value }) => value === alike.value)',
      'true',
    ],
    [
      'manifest answer: a count that is there twice is none',
      'others.every(({ value }) => value === alike.value)',
      'others.length === 0',
    ],
    [
      'manifest answer: of two ids the first is taken',
      'leaf: leaf !== undefined && alike ? leaf : null',
      'leaf: leaf ?? null',
    ],
    [
      'manifest answer: the id of a request is the snapshot',
      '...NOT_ID_WORDS, ...URL_WORDS, ...OTHER_ID_WORDS]',
      '...NOT_ID_WORDS, ...URL_WORDS]',
    ],
    [
      'manifest answer: a configured name is only tried',
      'return { leaf: named(leaves, field), candidates: [] };',
      'return { leaf: named(leaves, field) ?? byShape().leaf, candidates: [] };',
    ],
    [
      'manifest answer: the identifier of another snapshot is the one',
      'const UNLIKE_ID_WORDS = [\n  ...OTHER_SNAPSHOT_WORDS,',
      'const UNLIKE_ID_WORDS = [',
    ],
    [
      'manifest answer: the URL of a checksum is the one',
      'const UNLIKE_URL_WORDS = [\n  ...OTHER_SNAPSHOT_WORDS,\n  ...CHECKSUM_WORDS,',
      'const UNLIKE_URL_WORDS = [\n  ...OTHER_SNAPSHOT_WORDS,',
    ],
    [
      'manifest answer: what an object is called says nothing of its fields',
      '!has([...leaf.words, ...leaf.parent], unlike)',
      '!has([...leaf.words], unlike)',
    ],
    [
      'manifest answer: the identifier of a request is one within its object',
      'likeFirst(ids, [...UNLIKE_ID_WORDS, ...OTHER_ID_WORDS],',
      'likeFirst(ids, [...UNLIKE_ID_WORDS],',
    ],
    [
      'manifest answer: what is called otherwise is not taken where it is alone',
      'like.candidates.length > 0 ? like : choose(leaves)',
      'like',
    ],
    [
      'manifest answer: a known field counts without a value that is usable',
      'leaf.path === path && read(leaf.value) !== null',
      'leaf.path === path',
    ],
    [
      'manifest answer: a known field counts only where shape finds none',
      'return leaf === null ? byShape() : { leaf, candidates: [leaf] };',
      'return byShape().leaf === null && leaf !== null ? { leaf, candidates: [leaf] } : byShape();',
    ],
    [
      'manifest answer: doctor tries what is known last',
      'const likely = [...snapshotId.candidates, ...chooseSnapshotId(leaves).candidates];',
      'const likely = chooseSnapshotId(leaves).candidates;',
    ],
  ),
  ...faultsOf(
    'src/partner/manifest-answer.ts',
    META,
    [
      'manifest answer: a name that no table takes is remembered',
      'return isReadableSku(path) ? path : null;',
      'return path ?? null;',
    ],
    [
      'manifest answer: an unreadable sku_count is none',
      'if (announced !== null && skuCount === null)',
      'if (announced === Infinity)',
    ],
    [
      'manifest answer: a live count that no column holds',
      'count === null || count > INT4_MAX ? null : count',
      'count',
    ],
  ),
  ...faultsOf('src/partner/bulk-answer.ts', META, [
    'manifest answer: seconds are milliseconds',
    'text < 100_000_000_000 ? text * 1000 : text',
    'text < 100_000_000_000 ? text : text',
  ]),
  ...faultsOf('src/partner/manifest-fields.ts', VALUES, [
    'manifest answer: counts are those of whatever comes first',
    'inner.find((leaf) => !has(leaf.parent, OTHER_SNAPSHOT_WORDS)) ??',
    '',
  ]),
  ...faultsOf(
    'src/partner/text.ts',
    VALUES,
    [
      'manifest values: an identifier is as long as a SKU',
      'Buffer.byteLength(value) <= MAX_TOKEN_BYTES',
      'value.length <= MAX_KEY_LENGTH',
    ],
    [
      'manifest values: characters of an identifier are counted, not bytes',
      'Buffer.byteLength(value) <= MAX_TOKEN_BYTES',
      'value.length <= MAX_TOKEN_BYTES',
    ],
  ),
  ...faultsOf(
    'src/partner/manifest-answer.ts',
    VALUES,
    [
      'manifest values: a field whose value is none is not there',
      '  if (misfit !== null) {',
      '  if (misfit === leaves[-1]) {',
    ],
    [
      'manifest values: an object by its configured name is not there',
      '?? ownMember(body, field));',
      '?? ownMember({}, field));',
    ],
  ),
  ...faultsOf(
    'src/cli/doctor/discovery/checks.ts',
    ['test/doctor/known-names.test.ts'],
    [
      'manifest values: doctor would have another field tried',
      'faults.snapshotId?.misfit === true ?',
      'faults.snapshotId?.ok === undefined ?',
    ],
  ),
];
