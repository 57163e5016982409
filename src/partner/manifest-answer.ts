import { isObject } from '../lib/json-object.ts';
import type { ManifestMeta } from './answers.ts';
import { INT4_MAX } from './limits.ts';
import { SecretUrl } from './secret-url.ts';
import { isReadableSku } from './text.ts';
import { readCount } from './wire.ts';

/** Configured names of the manifest response's undocumented fields; a name may be dotted (`snapshot.id`). */
export interface ManifestNames {
  urlField?: string | undefined;
  snapshotIdField?: string | undefined;
}

/** The metadata, or why not: `problem` names fields, `hint` the variable to set; neither holds a value. */
export type ManifestReading =
  | { ok: true; value: ManifestMeta }
  | { ok: false; problem: string; hint: string };

interface Leaf {
  path: string;
  words: readonly string[];
  /** Words of the object that contains the leaf; empty at the top. */
  parent: readonly string[];
  value: unknown;
}

interface Choice {
  leaf: Leaf | null;
  candidates: readonly Leaf[];
}

const URL_WORDS = ['url', 'uri', 'link', 'href', 'download', 'presigned'];
const ID_WORDS = ['id', 'identifier'];
const VERSION_WORDS = ['id', 'identifier', 'version', 'revision', 'key', 'token'];
/** Words that say a field is about something else than which snapshot it is. */
const NOT_ID_WORDS = [
  'at',
  'time',
  'date',
  'count',
  'expires',
  'age',
  'size',
  'bytes',
  'interval',
  'code',
  'message',
];
const OTHER_ID_WORDS = ['request', 'trace', 'correlation', 'supplier', 'account', 'schema', 'format', 'api'];
const MAX_NAMED = 12;

/** `urlExpiresAt`, `url_expires_at` and `url-expires-at` all become [url, expires, at]. */
function wordsOf(name: string): string[] {
  const spaced = name.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase();
  return spaced.split(/[^a-z0-9]+/).filter((word) => word !== '');
}

/** Fields of the body and of the objects directly in it. */
function leavesOf(body: Readonly<Record<string, unknown>>): Leaf[] {
  return Object.entries(body).flatMap(([name, value]) => {
    if (!isObject(value)) return [{ path: name, words: wordsOf(name), parent: [], value }];
    return Object.entries(value).map(([inner, member]) => {
      return { path: `${name}.${inner}`, words: wordsOf(inner), parent: wordsOf(name), value: member };
    });
  });
}

function has(words: readonly string[], any: readonly string[]): boolean {
  return words.some((word) => any.includes(word));
}

function named(leaves: readonly Leaf[], field: string): Leaf | null {
  return (
    leaves.find((leaf) => leaf.path === field) ??
    leaves.find((leaf) => leaf.path.endsWith(`.${field}`)) ??
    null
  );
}

function asHttpUrl(value: unknown): URL | null {
  if (typeof value !== 'string' || !/^https?:\/\//i.test(value)) return null;
  return URL.parse(value);
}

function asSnapshotId(value: unknown): string | null {
  const id = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
  return isReadableSku(id) && asHttpUrl(id) === null ? id : null;
}

/** The one leaf of the first tier that has any; more than one with different values is a choice for a person. */
function firstTier(tiers: readonly (readonly Leaf[])[]): Choice {
  const candidates = tiers.find((tier) => tier.length > 0) ?? [];
  const [leaf] = candidates;
  const alike = candidates.every((other) => other.value === leaf?.value);
  return { leaf: leaf !== undefined && alike ? leaf : null, candidates };
}

function chooseUrl(leaves: readonly Leaf[]): Choice {
  const urls = leaves.filter((leaf) => asHttpUrl(leaf.value) !== null && leaf.words.at(-1) !== 'at');
  return firstTier([urls.filter((leaf) => has(leaf.words, URL_WORDS)), urls]);
}

function chooseSnapshotId(leaves: readonly Leaf[]): Choice {
  const ids = leaves.filter(({ words, value }) => {
    return asSnapshotId(value) !== null && !has(words, [...NOT_ID_WORDS, ...URL_WORDS, ...OTHER_ID_WORDS]);
  });
  const ofSnapshot = ids.filter(
    ({ words, parent }) => words.includes('snapshot') || parent.includes('snapshot'),
  );
  return firstTier([
    ofSnapshot.filter(({ words }) => has(words, ID_WORDS)),
    ids.filter(({ words }) => words.includes('snapshot')),
    ids.filter(({ words }) => has(words, ID_WORDS)),
    ids.filter(({ words }) => has(words, VERSION_WORDS)),
  ]);
}

function choicesOf(leaves: readonly Leaf[], names: ManifestNames): { url: Choice; snapshotId: Choice } {
  const choice = (field: string | undefined, choose: (from: readonly Leaf[]) => Choice): Choice =>
    field === undefined ? choose(leaves) : { leaf: named(leaves, field), candidates: [] };
  return {
    url: choice(names.urlField, chooseUrl),
    snapshotId: choice(names.snapshotIdField, chooseSnapshotId),
  };
}

/** The fields that `readManifestMeta` reads with these names; null where it finds none, or none that is usable. */
export function manifestFields(
  body: unknown,
  names: ManifestNames,
): { url: string | null; snapshotId: string | null } {
  if (!isObject(body)) return { url: null, snapshotId: null };
  const { url, snapshotId } = choicesOf(leavesOf(body), names);
  return {
    url: asHttpUrl(url.leaf?.value) === null ? null : (url.leaf?.path ?? null),
    snapshotId: asSnapshotId(snapshotId.leaf?.value) === null ? null : (snapshotId.leaf?.path ?? null),
  };
}

/** The fields that the partner documents (partner rules 2.7): none of them is the identifier. */
const DOCUMENTED = ['url_expires_at', 'generated_at', 'sku_count', 'live_priced_sku_count'];

/** Fields that may hold what the partner does not document, the likeliest first; a path may be dotted. */
export interface ManifestCandidates {
  readonly url: readonly { readonly path: string; readonly value: SecretUrl }[];
  readonly snapshotId: readonly { readonly path: string; readonly value: string }[];
}

/**
 * All fields of a manifest response that could be its URL or its snapshot identifier, whatever they are called: those
 * that are found by shape first, then what is left over. For `doctor`, which tries them. Never throws.
 */
export function manifestCandidates(body: unknown): ManifestCandidates {
  if (!isObject(body)) return { url: [], snapshotId: [] };
  const leaves = leavesOf(body);
  const chosen = chooseSnapshotId(leaves);
  const rest = leaves.filter(({ path, words, value }) => {
    const other = has(words, [...NOT_ID_WORDS, ...URL_WORDS]) || DOCUMENTED.includes(path);
    return asSnapshotId(value) !== null && !other && !chosen.candidates.some((leaf) => leaf.path === path);
  });
  const unrelated = (leaf: Leaf) => Number(has(leaf.words, OTHER_ID_WORDS));
  const ids = [...chosen.candidates, ...rest.toSorted((a, b) => unrelated(a) - unrelated(b))];
  const urls = leaves.filter((leaf) => asHttpUrl(leaf.value) !== null);
  const likely = chooseUrl(leaves).candidates;
  return {
    url: [...new Set([...likely, ...urls])].flatMap(({ path, value }) => {
      const url = asHttpUrl(value);
      return url === null ? [] : [{ path, value: new SecretUrl(url) }];
    }),
    snapshotId: ids.flatMap(({ path, value }) => {
      const id = asSnapshotId(value);
      return id === null ? [] : [{ path, value: id }];
    }),
  };
}

/** A count that a table's integer holds; null where it is none. */
function readInt4(value: unknown): number | null {
  const count = readCount(value);
  return count === null || count > INT4_MAX ? null : count;
}

/** A time of day without a zone, as Date.parse would take it for one of this machine's. */
const ZONELESS = /\d[T ]\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?$/;

/** Nothing of the partner's is older: a zero in place of a time says that there is none. */
const EARLIEST = Date.UTC(2010, 0);

/**
 * A time as ISO text, in UTC where it names no zone (partner rules 2.6), or as epoch seconds or milliseconds; null
 * where it is none of these.
 */
function readTime(value: unknown): Date | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  const text = typeof value === 'string' && ZONELESS.test(value) ? `${value}Z` : value;
  const date = new Date(typeof text === 'number' && text < 100_000_000_000 ? text * 1000 : text);
  return date.getTime() >= EARLIEST ? date : null;
}

function fault(what: string, variable: string, choice: Choice, leaves: readonly Leaf[]): ManifestReading {
  const several = choice.candidates.length > 0;
  const paths = (several ? choice.candidates : leaves).map((leaf) => leaf.path.slice(0, 64));
  const list = paths.slice(0, MAX_NAMED).join(', ');
  const problem = several
    ? `${what}: one of ${list}?`
    : `${what}: not found among the fields ${list || '(none)'}`;
  return { ok: false, problem, hint: `set ${variable} to the name of the field` };
}

/**
 * The manifest response (partner rules 2.7, 2.7.open). The names of the URL field and of the snapshot identifier are
 * not documented: configured names count, else both are found by shape, at the top level or one object deep. In: the
 * parsed body. Out: the metadata, or the problem with candidate field names; a `sku_count` that is there must be
 * readable, as nothing else shows that the file is whole. Never throws.
 */
export function readManifestMeta(body: unknown, names: ManifestNames): ManifestReading {
  if (!isObject(body))
    return { ok: false, problem: 'the body is not an object', hint: 'check PARTNER_BASE_URL' };
  const leaves = leavesOf(body);
  const { url: urlChoice, snapshotId: idChoice } = choicesOf(leaves, names);
  const url = asHttpUrl(urlChoice.leaf?.value);
  if (url === null) return fault('presigned URL', 'PARTNER_MANIFEST_URL_FIELD', urlChoice, leaves);
  const snapshotId = asSnapshotId(idChoice.leaf?.value);
  if (snapshotId === null) return fault('snapshot identifier', 'PARTNER_SNAPSHOT_ID_FIELD', idChoice, leaves);
  const announced = named(leaves, 'sku_count')?.value ?? body['sku_count'] ?? null;
  const skuCount = readCount(announced);
  // Taken for absent, it would let a file pass that was cut at a gzip member's end.
  if (announced !== null && skuCount === null)
    return { ok: false, problem: 'sku_count is not a count', hint: 'ask the partner' };
  return {
    ok: true,
    value: {
      snapshotId,
      url: new SecretUrl(url),
      urlExpiresAt: readTime(named(leaves, 'url_expires_at')?.value),
      generatedAt: readTime(named(leaves, 'generated_at')?.value),
      skuCount,
      livePricedSkuCount: readInt4(named(leaves, 'live_priced_sku_count')?.value),
    },
  };
}
