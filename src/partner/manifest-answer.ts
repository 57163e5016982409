import { isObject } from '../lib/json.ts';
import type { ManifestMeta } from './answers.ts';
import { readTime, parseExact, readCount } from './bulk-answer.ts';
import { PartnerError } from './errors.ts';
import { INT4_MAX } from './limits.ts';
import {
  asHttpUrl,
  asSnapshotId,
  candidatesOf,
  type Choice,
  choicesOf,
  documented,
  type KnownFields,
  type Leaf,
  leavesOf,
  type ManifestNames,
  misfitOf,
  unlike,
} from './manifest-fields.ts';
import { lostMember } from './repeated-members.ts';
import { SecretUrl } from './secret-url.ts';
import { isReadableSku } from './text.ts';

/** The metadata, or why not: `problem` names fields, `hint` the variable to set; neither holds a value. */
export type ManifestReading = { ok: true; value: ManifestMeta } | ManifestFault;

export interface ManifestFault {
  ok: false;
  problem: string;
  hint: string;
  /** The field is there, and its value is none. */
  misfit?: true;
}

const NO_OBJECT: ManifestFault = {
  ok: false,
  problem: 'the body is not an object',
  hint: 'check PARTNER_BASE_URL',
};

const MAX_NAMED = 12;

/**
 * Text of a manifest response to a value, with large integers as their digits. Throws PartnerError, kind 'unreadable',
 * where the value does not have all that the text says: of two URLs, identifiers or counts nobody knows which is right.
 * By its `message` nothing is decided.
 */
export function parseManifestResponse(text: string): unknown {
  const body = parseExact(text);
  const names = isObject(body)
    ? Object.keys(body).filter((name) => /^\w+$/.test(name) && name !== 'message')
    : [];
  const lost = names.length === 0 ? null : lostMember(text, names);
  if (lost === null) return body;
  throw new PartnerError('unreadable', 'manifest', {
    status: 200,
    detail: `${lost} is there more than once`,
  });
}

/** The fields that `readManifestMeta` reads with these names; null where it finds none, or none that is usable. */
export function manifestFields(body: unknown, names: ManifestNames): KnownFields {
  if (!isObject(body)) return { url: null, snapshotId: null };
  const { url, snapshotId } = choicesOf(leavesOf(body), names);
  return {
    url: asHttpUrl(url.leaf?.value) === null ? null : (url.leaf?.path ?? null),
    snapshotId: asSnapshotId(snapshotId.leaf?.value) === null ? null : (snapshotId.leaf?.path ?? null),
  };
}

/** Fields that may hold what the partner does not document, the likeliest first; a path may be dotted. */
export interface ManifestCandidates {
  readonly url: readonly { readonly path: string; readonly value: SecretUrl }[];
  readonly snapshotId: readonly { readonly path: string; readonly value: string }[];
}

/**
 * All fields of a manifest response that could be its URL or its snapshot identifier, whatever they are called: those
 * that are known or found by shape first, then what is left over. For `doctor`, which tries them. Never throws.
 */
export function manifestCandidates(body: unknown, known?: KnownFields): ManifestCandidates {
  if (!isObject(body)) return { url: [], snapshotId: [] };
  const { url, snapshotId } = candidatesOf(leavesOf(body), known);
  return {
    url: url.flatMap(({ path, value }) => {
      const read = asHttpUrl(value);
      return read === null ? [] : [{ path, value: new SecretUrl(read) }];
    }),
    snapshotId: snapshotId.flatMap(({ path, value }) => {
      const read = asSnapshotId(value);
      return read === null ? [] : [{ path, value: read }];
    }),
  };
}

/** A count that a table's integer holds; null where it is none. */
function readInt4(value: unknown): number | null {
  const count = readCount(value);
  return count === null || count > INT4_MAX ? null : count;
}

/** The path of what was chosen, where a table takes it. */
function rememberable({ leaf }: Choice): string | null {
  const path = leaf?.path;
  return isReadableSku(path) ? path : null;
}

const CALLED = {
  url: { what: 'presigned URL', variable: 'PARTNER_MANIFEST_URL_FIELD' },
  snapshotId: { what: 'snapshot identifier', variable: 'PARTNER_SNAPSHOT_ID_FIELD' },
} as const;

/** Why the URL, or the identifier, cannot be read: fields by name, of a value its kind and length alone. */
function fault(
  wanted: 'url' | 'snapshotId',
  choice: Choice,
  { body, leaves, names }: { body: Readonly<Record<string, unknown>>; leaves: Leaf[]; names: ManifestNames },
): ManifestFault {
  const { what, variable } = CALLED[wanted];
  const several = choice.candidates.length > 0;
  const field = wanted === 'url' ? names.urlField : names.snapshotIdField;
  const misfit = several ? null : (misfitOf(wanted, leaves, names) ?? ownMember(body, field));
  if (misfit !== null) {
    const problem = `${what}: ${misfit.path.slice(0, 64)} is ${unlike(wanted, misfit.value)}`;
    const hint = `ask the partner; where another field is meant, name it in ${variable}`;
    return { ok: false, problem, hint, misfit: true };
  }
  const paths = (several ? choice.candidates : leaves).map((leaf) => leaf.path.slice(0, 64));
  const list = paths.slice(0, MAX_NAMED).join(', ');
  const problem = several
    ? `${what}: one of ${list}?`
    : `${what}: not found among the fields ${list || '(none)'}`;
  return { ok: false, problem, hint: `set ${variable} to the name of the field` };
}

/** A member of the body that is no leaf, as it is an object. */
function ownMember(
  body: Readonly<Record<string, unknown>>,
  field: string | undefined,
): Pick<Leaf, 'path' | 'value'> | null {
  return field !== undefined && Object.hasOwn(body, field) ? { path: field, value: body[field] } : null;
}

/** What keeps the URL and the identifier from being read with these names, each by itself; null where nothing does. */
export function manifestFaults(
  body: unknown,
  names: ManifestNames,
): { readonly url: ManifestFault | null; readonly snapshotId: ManifestFault | null } {
  if (!isObject(body)) return { url: NO_OBJECT, snapshotId: NO_OBJECT };
  const leaves = leavesOf(body);
  const { url, snapshotId } = choicesOf(leaves, names);
  const given = { body, leaves, names };
  return {
    url: asHttpUrl(url.leaf?.value) === null ? fault('url', url, given) : null,
    snapshotId: asSnapshotId(snapshotId.leaf?.value) === null ? fault('snapshotId', snapshotId, given) : null,
  };
}

/**
 * The manifest response (partner rules 2.7, 2.7.open). The names of the URL field and of the snapshot identifier are
 * not documented: configured names count, then those that are known, else both are found by shape, at the top level or
 * one object deep. In: the parsed body. Out: the metadata, or the problem with candidate field names; a `sku_count`
 * that is there must be readable, as nothing else shows that the file is whole. Never throws.
 */
export function readManifestMeta(body: unknown, names: ManifestNames): ManifestReading {
  if (!isObject(body)) return NO_OBJECT;
  const leaves = leavesOf(body);
  const { url: urlChoice, snapshotId: idChoice } = choicesOf(leaves, names);
  const url = asHttpUrl(urlChoice.leaf?.value);
  if (url === null) return fault('url', urlChoice, { body, leaves, names });
  const snapshotId = asSnapshotId(idChoice.leaf?.value);
  if (snapshotId === null) return fault('snapshotId', idChoice, { body, leaves, names });
  const counted = documented(leaves, 'sku_count');
  const announced = counted?.value ?? body['sku_count'] ?? null;
  const skuCount = readCount(announced);
  // Taken for absent, it would let a file pass that was cut at a gzip member's end.
  if (announced !== null && skuCount === null)
    return { ok: false, problem: `${counted?.path ?? 'sku_count'} is not a count`, hint: 'ask the partner' };
  return {
    ok: true,
    value: {
      snapshotId,
      url: new SecretUrl(url),
      generatedAt: readTime(documented(leaves, 'generated_at')?.value),
      skuCount,
      livePricedSkuCount: readInt4(documented(leaves, 'live_priced_sku_count')?.value),
      readBy: { url: rememberable(urlChoice), snapshotId: rememberable(idChoice) },
    },
  };
}
