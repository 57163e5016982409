import type { ManifestCandidates } from '../../../partner/manifest-answer.ts';
import type { KnownFields } from '../../../partner/manifest-fields.ts';
import type { EntryForm } from '../../../partner/size-map.ts';
import { harmless } from '../../../status/style.ts';
import type { CheckResult } from '../check.ts';
import { bulkElements, namesRefused, entriesIn, manyNames, namesRead, unknownSku } from './shapes.ts';

/** SKUs to ask for, from the beginning of the manifest file or from the mirror. */
export interface SkuSample {
  readonly snapshot: readonly string[];
  /** Few are requested, because each costs the partner a live computation. */
  readonly live: readonly string[];
  /** The manifest field whose URL led to a readable file; null: none did. */
  readonly urlPath: string | null;
  /** Why there is no file; null if there is one, or there was no URL. */
  readonly problem: { readonly message: string; readonly hint: string } | null;
}

/** One bulk call and its result. `kind` is 'ok' or the error's kind. */
interface BulkTry {
  readonly sent: ReadonlyMap<string, readonly string[]>;
  readonly kind: string;
  readonly body: unknown;
}

/** One delta and its result. `path` is the manifest field that the token came from; null: the mirror's own token. */
export interface DeltaTry {
  readonly path: string | null;
  readonly kind: string;
  readonly body: unknown;
}

export interface Evidence {
  /** Null: not asked yet. */
  readonly manifest: {
    readonly kind: string;
    readonly body: unknown;
    readonly candidates: ManifestCandidates;
  } | null;
  /** Null: not searched for yet. */
  readonly sample: SkuSample | null;
  readonly bulk: readonly BulkTry[];
  readonly delta: readonly DeltaTry[];
  /** The mirror's token, if it has one: a delta from there may contain elements. */
  readonly ownToken: string | null;
}

export interface Names {
  readonly bulkBodyKey: string;
  readonly snapshotId: string | null;
}

export type Question =
  | { readonly ask: 'manifest' }
  | { readonly ask: 'sample' }
  | { readonly ask: 'bulk'; readonly body: ReadonlyMap<string, readonly string[]>; readonly why: string }
  | { readonly ask: 'delta'; readonly since: string; readonly path: string | null; readonly why: string }
  | { readonly ask: 'nothing' };

const SAMPLE_SNAPSHOT = 12;
const SAMPLE_LIVE = 2;

/**
 * Returns the name under which the partner reads the list; of several, the configured one if it is among them. Null if
 * it is not known yet.
 */
export function bodyKeyOf(evidence: Evidence, configured: string): string | null {
  for (const { sent, kind, body } of evidence.bulk) {
    const read = kind === 'ok' ? namesRead(sent, body) : [];
    if (read.length > 0) return read.includes(configured) ? configured : (read[0] ?? null);
  }
  return null;
}

/** Returns the SKUs of one call under a name that is known or assumed. */
function sampleList({ snapshot, live }: Pick<SkuSample, 'snapshot' | 'live'>): string[] {
  return [...snapshot.slice(0, SAMPLE_SNAPSHOT), ...live.slice(0, SAMPLE_LIVE)];
}

/**
 * Decides what to ask next, from what is known. Each question except 'sample' is one request. First comes what the
 * mirror cannot do without: catalog, body key, token; then what has not been seen yet.
 */
export function nextQuestion(evidence: Evidence, names: Names): Question {
  if (evidence.manifest === null) return { ask: 'manifest' };
  if (evidence.sample === null) return { ask: 'sample' };
  const { sample } = evidence;
  const key = bodyKeyOf(evidence, names.bulkBodyKey);
  if (key === null) {
    const body = nextBody(evidence.bulk, sample, names.bulkBodyKey);
    if (body !== null) return { ask: 'bulk', body, why: 'body key, prices, form of lists' };
  }
  return nextDelta(evidence, names) ?? nextSample(evidence, sample, key) ?? { ask: 'nothing' };
}

/** Returns the next body to try: all names at once, then those in the partner's error, then only the configured one. */
function nextBody(
  tries: readonly BulkTry[],
  sample: SkuSample,
  configured: string,
): Map<string, readonly string[]> | null {
  const last = tries.at(-1);
  if (last === undefined)
    return manyNames(configured, sampleList(sample), sample.snapshot.slice(SAMPLE_SNAPSHOT));
  if (last.kind !== 'bad-request') return null;
  const alone = new Set(tries.filter(({ sent }) => sent.size === 1).flatMap(({ sent }) => [...sent.keys()]));
  const { wanted, unwanted } = namesRefused(last.body);
  // A validator that refuses unknown names does not mention the right one in its error.
  const allowed = unwanted.length > 0 ? [...last.sent.keys()].filter((name) => !unwanted.includes(name)) : [];
  const next = [...wanted, ...allowed, configured].find((name) => !alone.has(name));
  if (next === undefined) return null;
  // The refusal may be about the unknown SKU, so a name that was already sent is tried without it.
  const unknown = last.sent.has(next) && unwanted.length === 0 ? [] : [unknownSku(0)];
  return new Map([[next, [...sampleList(sample), ...unknown]]]);
}

/** Kinds of error with which a delta rejects an unknown token. */
const UNKNOWN_TOKEN = new Set(['snapshot-expired', 'since-missing', 'bad-request']);

/** Returns the field that a delta has confirmed as the snapshot's identifier. */
export function confirmedToken(delta: readonly DeltaTry[]): string | null {
  return delta.find(({ path, kind }) => path !== null && takesToken(kind))?.path ?? null;
}

/** Returns the manifest fields whose value a delta rejected as an unknown token. */
export function rejectedTokens(delta: readonly DeltaTry[]): string[] {
  return delta.flatMap(({ path, kind }) => (path !== null && UNKNOWN_TOKEN.has(kind) ? [path] : []));
}

/** Returns whether a delta knew its token. A change set that is too large was also counted from a known token. */
const takesToken = (kind: string): boolean => kind === 'ok' || kind === 'delta-too-large';

function nextDelta({ manifest, delta }: Evidence, names: Names): Question | null {
  const asked = delta.at(-1);
  const settled = confirmedToken(delta) !== null;
  // Any other answer says nothing about the token, and would be the same again.
  if (settled || (asked !== undefined && !UNKNOWN_TOKEN.has(asked.kind))) return null;
  const tried = new Set(delta.map(({ path }) => path));
  const all = manifest?.candidates.snapshotId ?? [];
  const ranked = all.toSorted(
    (a, b) => Number(b.path === names.snapshotId) - Number(a.path === names.snapshotId),
  );
  const next = ranked.find(({ path }) => !tried.has(path));
  if (next === undefined) return null;
  return { ask: 'delta', since: next.value, path: next.path, why: 'whether this is the snapshot identifier' };
}

/** Decides what is worth one more request once names and token are known. */
function nextSample(evidence: Evidence, sample: SkuSample, key: string | null): Question | null {
  const bodies = evidence.bulk.filter(({ kind }) => kind === 'ok').map(({ body }) => body);
  const seen = new Set(bodies.flatMap((body) => entriesIn(body)).map(({ sku }) => sku));
  const asked = new Set(
    evidence.bulk
      .filter(({ kind }) => kind === 'ok')
      .flatMap(({ sent }) => (key === null ? [] : (sent.get(key) ?? []))),
  );
  const unpriced = seen.size === 0 && sample.snapshot.some((sku) => !asked.has(sku));
  const unseenLive = sample.live.length > 0 && !sample.live.some((sku) => asked.has(sku));
  const unspelled = bodies.every((body) => bulkElements(body, asked) === null) && !asked.has(unknownSku(0));
  if (key !== null && (unpriced || unseenLive || unspelled)) {
    const fresh = sample.snapshot.filter((sku) => !asked.has(sku));
    const body = new Map([[key, [...sampleList({ ...sample, snapshot: fresh }), unknownSku(0)]]]);
    return { ask: 'bulk', body, why: unpriced ? 'prices' : 'entries of live SKUs, form of lists' };
  }
  const ownAsked = evidence.delta.some(({ path }) => path === null);
  const isNewest = evidence.manifest?.candidates.snapshotId.some(({ value }) => value === evidence.ownToken);
  if (evidence.ownToken === null || ownAsked || isNewest === true) return null;
  return { ask: 'delta', since: evidence.ownToken, path: null, why: 'form of the delta’s lists' };
}

/** What the mirror has learned about undocumented names, and uses to read answers. */
export interface KnownNames {
  /** Null: the mirror holds no form of entries. */
  readonly price: EntryForm | null;
  /** The form of records without any entry of `price`; null: none is held. */
  readonly also?: EntryForm | null;
  readonly manifest: KnownFields;
}

export const NOTHING_KNOWN: KnownNames = { price: null, manifest: { url: null, snapshotId: null } };

/** The five names as configured (null: found by shape), and what else is known. */
export interface FieldNames extends Names {
  readonly price: readonly string[];
  readonly sku: string;
  readonly manifestUrl: string | null;
  readonly known: KnownNames;
}

export interface Discovered {
  readonly findings: readonly CheckResult[];
  /** Variables with the values that the partner's answers have confirmed. */
  readonly settings: Readonly<Record<string, string>>;
  readonly unknown: readonly string[];
}

/** The result of one check. */
export type Part = Partial<Discovered>;

export const shown = (name: string): string => `\`${harmless(name).slice(0, 64)}\``;
export const several = (names: readonly string[]): string => names.slice(0, 8).map(shown).join(', ');

/** Returns the bodies of the answered bulk calls. */
export const answered = ({ bulk }: Evidence): unknown[] =>
  bulk.filter(({ kind }) => kind === 'ok').map(({ body }) => body);
