import { isObject } from '../lib/json.ts';
import { isReadableToken, isStorableText, MAX_TOKEN_BYTES } from './text.ts';

/*
 * Finds the fields of a manifest response that are its URL and its snapshot identifier, whose names the partner
 * does not document (partner rules 2.7.open). Nothing here throws.
 */

/** Fields of a manifest response by their paths, which may be dotted (`snapshot.id`); null if unknown. */
export interface KnownFields {
  readonly url: string | null;
  readonly snapshotId: string | null;
}

/** Configured names of the undocumented fields, which may be dotted, and the fields known without configuration. */
export interface ManifestNames {
  urlField?: string | undefined;
  snapshotIdField?: string | undefined;
  /** The fields by which the last applied manifest was read. They count whenever they are present. */
  known?: KnownFields | undefined;
}

export interface Leaf {
  path: string;
  words: readonly string[];
  /** Words of the object that contains the leaf; empty at the top. */
  parent: readonly string[];
  value: unknown;
}

export interface Choice {
  leaf: Leaf | null;
  candidates: readonly Leaf[];
}

const words = (text: string): string[] => text.split(' ');

const URL_WORDS = words('url uri link href download presigned');
const ID_WORDS = words('id identifier');
const VERSION_WORDS = words('id identifier version revision key token');
/** Words that show that a field says something other than which snapshot it is. */
const NOT_ID_WORDS = words('at time date count expires age size bytes interval code message');
const OTHER_ID_WORDS = words('request trace correlation supplier account schema format api');
/** Words that refer to another snapshot than the manifest's. `latest` is missing, because it may be the manifest's. */
const OTHER_SNAPSHOT_WORDS = words(
  'previous prev prior preceding former old older oldest earliest first last expired base parent ancestor ' +
    'next following upcoming since from delta diff replaces replaced supersedes superseded',
);
const CHECKSUM_WORDS = words('checksum hash digest etag signature crc crc32 md5 sha sha1 sha256 sha512');
/** A field with one of these words is the identifier only if no field without them is. */
const UNLIKE_ID_WORDS = [
  ...OTHER_SNAPSHOT_WORDS,
  ...CHECKSUM_WORDS,
  ...words(
    'status state type kind name label title description region environment bucket path file filename',
  ),
];
/** A URL with one of these words is the file's only if no URL without them is. */
const UNLIKE_URL_WORDS = [
  ...OTHER_SNAPSHOT_WORDS,
  ...CHECKSUM_WORDS,
  ...words('doc docs documentation readme help support contact terms license policy changelog schema spec'),
  ...words(
    'status stats report log logs error errors console dashboard portal page html web home homepage website',
  ),
  ...words('logo icon image thumbnail preview sample example callback webhook self api metadata'),
  ...words('mirror backup fallback alternate alternative secondary'),
];

/** Splits a name into words: `url_expires_at`, `url-expires-at` and the camel-case form become [url, expires, at]. */
function wordsOf(name: string): string[] {
  const spaced = name.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase();
  return spaced.split(/[^a-z0-9]+/).filter((word) => word !== '');
}

/** Returns the fields of the body and of the objects directly in it. */
export function leavesOf(body: Readonly<Record<string, unknown>>): Leaf[] {
  return Object.entries(body).flatMap(([name, value]) => {
    if (!isObject(value)) return [{ path: name, words: wordsOf(name), parent: [], value }];
    return Object.entries(value).map(([inner, member]) => {
      return { path: `${name}.${inner}`, words: wordsOf(inner), parent: wordsOf(name), value: member };
    });
  });
}

function has(given: readonly string[], any: readonly string[]): boolean {
  return given.some((word) => any.includes(word));
}

/** Returns the leaf with this path, or one of this name in an object, preferably not in one about another snapshot. */
function named(leaves: readonly Leaf[], field: string): Leaf | null {
  const inner = leaves.filter((leaf) => leaf.path.endsWith(`.${field}`));
  return (
    leaves.find((leaf) => leaf.path === field) ??
    inner.find((leaf) => !has(leaf.parent, OTHER_SNAPSHOT_WORDS)) ??
    inner[0] ??
    null
  );
}

/**
 * Returns the leaf of a documented name. If this snapshot has none, returns the leaf that spells the name
 * otherwise, such as `skuCount`, provided that all such leaves have the same value.
 */
export function documented(leaves: readonly Leaf[], field: string): Leaf | null {
  const exact = named(leaves, field);
  if (exact !== null && !has(exact.parent, OTHER_SNAPSHOT_WORDS)) return exact;
  const spelt = wordsOf(field).join(' ');
  const [alike, ...others] = leaves.filter(
    ({ words: own, parent }) => own.join(' ') === spelt && !has(parent, OTHER_SNAPSHOT_WORDS),
  );
  return alike !== undefined && others.every(({ value }) => value === alike.value) ? alike : exact;
}

export function asHttpUrl(value: unknown): URL | null {
  if (typeof value !== 'string' || !/^https?:\/\//i.test(value)) return null;
  return URL.parse(value);
}

export function asSnapshotId(value: unknown): string | null {
  const id = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
  return isReadableToken(id) && asHttpUrl(id) === null ? id : null;
}

/** Describes what a value is instead of a URL or an identifier, without quoting any of it. */
export function unlike(wanted: 'url' | 'snapshotId', value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return 'a boolean';
  if (typeof value === 'object') return Array.isArray(value) ? 'a list' : 'an object';
  if (typeof value !== 'string') return wanted === 'url' ? 'a number' : 'a number that is no integer';
  if (value === '') return 'empty';
  if (wanted === 'url')
    return /^https?:\/\//i.test(value)
      ? `a text of ${value.length} characters that is no URL`
      : `a text of ${value.length} characters that does not begin with http or https`;
  const bytes = Buffer.byteLength(value);
  if (bytes > MAX_TOKEN_BYTES) return `a text of ${bytes} bytes, more than ${MAX_TOKEN_BYTES}`;
  return isStorableText(value) ? 'a URL' : 'a text with a NUL or half a character';
}

/** Chooses the leaf of the first tier that is not empty. If its leaves have different values, a person must choose. */
function firstTier(tiers: readonly (readonly Leaf[])[]): Choice {
  const candidates = tiers.find((tier) => tier.length > 0) ?? [];
  const [leaf] = candidates;
  const alike = candidates.every((other) => other.value === leaf?.value);
  return { leaf: leaf !== undefined && alike ? leaf : null, candidates };
}

/** Chooses among the leaves whose names contain none of the words `unlike`, or among all if that finds none. */
function likeFirst(
  leaves: readonly Leaf[],
  unlike: readonly string[],
  choose: (from: readonly Leaf[]) => Choice,
): Choice {
  const like = choose(leaves.filter((leaf) => !has([...leaf.words, ...leaf.parent], unlike)));
  return like.candidates.length > 0 ? like : choose(leaves);
}

function chooseUrl(leaves: readonly Leaf[]): Choice {
  const urls = leaves.filter((leaf) => asHttpUrl(leaf.value) !== null && leaf.words.at(-1) !== 'at');
  return likeFirst(urls, UNLIKE_URL_WORDS, (from) =>
    firstTier([from.filter((leaf) => has(leaf.words, URL_WORDS)), from]),
  );
}

function chooseSnapshotId(leaves: readonly Leaf[]): Choice {
  return idByName(leaves.filter((leaf) => asSnapshotId(leaf.value) !== null));
}

/** Chooses the identifier by the names of the leaves, whatever their values. */
function idByName(leaves: readonly Leaf[]): Choice {
  const other = [...NOT_ID_WORDS, ...URL_WORDS, ...OTHER_ID_WORDS];
  const ids = leaves.filter((leaf) => !has(leaf.words, other));
  return likeFirst(ids, [...UNLIKE_ID_WORDS, ...OTHER_ID_WORDS], (from) =>
    firstTier([
      from.filter((leaf) => isOfSnapshot(leaf) && has(leaf.words, ID_WORDS)),
      from.filter((leaf) => leaf.words.includes('snapshot')),
      from.filter((leaf) => has(leaf.words, ID_WORDS)),
      from.filter((leaf) => has(leaf.words, VERSION_WORDS)),
    ]),
  );
}

const isOfSnapshot = (leaf: Leaf): boolean =>
  leaf.words.includes('snapshot') || leaf.parent.includes('snapshot');

/** Returns the leaf of the known path; null if it is absent or its value is not usable. */
function knownLeaf(
  leaves: readonly Leaf[],
  path: string | null | undefined,
  read: (value: unknown) => unknown,
): Leaf | null {
  return leaves.find((leaf) => leaf.path === path && read(leaf.value) !== null) ?? null;
}

/** Chooses the two fields: by their configured names, else the known ones, else by shape. */
export function choicesOf(
  leaves: readonly Leaf[],
  { urlField, snapshotIdField, known }: ManifestNames,
): { url: Choice; snapshotId: Choice } {
  const choice = (field: string | undefined, leaf: Leaf | null, byShape: () => Choice): Choice => {
    if (field !== undefined) return { leaf: named(leaves, field), candidates: [] };
    return leaf === null ? byShape() : { leaf, candidates: [leaf] };
  };
  const knownUrl = knownLeaf(leaves, known?.url, asHttpUrl);
  const knownId = knownLeaf(leaves, known?.snapshotId, asSnapshotId);
  return {
    url: choice(urlField, knownUrl, () => chooseUrl(leaves)),
    snapshotId: choice(snapshotIdField, knownId, () => chooseSnapshotId(leaves)),
  };
}

/**
 * Returns the leaf that should be the URL or the identifier but has an unusable value: found by its configured
 * name, else by the known path, else by what its name suggests; null if there is none.
 */
export function misfitOf(
  wanted: 'url' | 'snapshotId',
  leaves: readonly Leaf[],
  { urlField, snapshotIdField, known }: ManifestNames,
): Leaf | null {
  const field = wanted === 'url' ? urlField : snapshotIdField;
  if (field !== undefined) return named(leaves, field);
  const knownPath = known?.[wanted];
  const before = leaves.find((leaf) => leaf.path === knownPath);
  if (before !== undefined) return before;
  const unlikely = wanted === 'url' ? [...NOT_ID_WORDS, ...UNLIKE_URL_WORDS] : UNLIKE_ID_WORDS;
  const likely = leaves.filter((leaf) => !has([...leaf.words, ...leaf.parent], unlikely));
  const [first] =
    wanted === 'url' ? likely.filter((leaf) => has(leaf.words, URL_WORDS)) : idByName(likely).candidates;
  return first ?? null;
}

/** The documented fields (partner rules 2.7), none of which is the identifier. */
const DOCUMENTED = words('url_expires_at generated_at sku_count live_priced_sku_count');

/** Returns all leaves that could be the URL or the identifier, whatever their names: known or found by shape first. */
export function candidatesOf(
  leaves: readonly Leaf[],
  known?: KnownFields,
): { readonly url: readonly Leaf[]; readonly snapshotId: readonly Leaf[] } {
  const { url, snapshotId } = choicesOf(leaves, { known });
  const likely = [...snapshotId.candidates, ...chooseSnapshotId(leaves).candidates];
  const rest = leaves.filter((leaf) => {
    const other = has(leaf.words, [...NOT_ID_WORDS, ...URL_WORDS]) || DOCUMENTED.includes(leaf.path);
    return asSnapshotId(leaf.value) !== null && !other;
  });
  const unrelated = (leaf: Leaf) => Number(has(leaf.words, OTHER_ID_WORDS));
  const ids = [...likely, ...rest.toSorted((a, b) => unrelated(a) - unrelated(b))];
  const urls = leaves.filter((leaf) => asHttpUrl(leaf.value) !== null);
  return {
    url: [...new Set([...url.candidates, ...chooseUrl(leaves).candidates, ...urls])],
    snapshotId: [...new Set(ids)],
  };
}
