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

/** The metadata, or why it is unreadable: `problem` names fields, `hint` the variable to set; neither has a value. */
export type ManifestReading = { ok: true; value: ManifestMeta } | ManifestFault;

export interface ManifestFault {
  ok: false;
  problem: string;
  hint: string;
  /** The field is present, but its value is unusable. */
  misfit?: true;
}

const NO_OBJECT: ManifestFault = {
  ok: false,
  problem: 'the body is not an object',
  hint: 'check PARTNER_BASE_URL',
};

const MAX_NAMED = 12;

/**
 * Parses the text of a manifest response; large integers become text of their digits. Throws PartnerError, kind
 * 'unreadable', if a member occurs with two values: nothing shows which URL, identifier or count is right.
 * `message` may repeat, because nothing depends on it.
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

/** Returns the fields that `readManifestMeta` reads with these names; null for one that is missing or unusable. */
export function manifestFields(body: unknown, names: ManifestNames): KnownFields {
  if (!isObject(body)) return { url: null, snapshotId: null };
  const { url, snapshotId } = choicesOf(leavesOf(body), names);
  return {
    url: asHttpUrl(url.leaf?.value) === null ? null : (url.leaf?.path ?? null),
    snapshotId: asSnapshotId(snapshotId.leaf?.value) === null ? null : (snapshotId.leaf?.path ?? null),
  };
}

/** Fields that may hold the undocumented URL and identifier, the likeliest first. Paths may be dotted. */
export interface ManifestCandidates {
  readonly url: readonly { readonly path: string; readonly value: SecretUrl }[];
  readonly snapshotId: readonly { readonly path: string; readonly value: string }[];
}

/**
 * Returns all fields of a manifest response that could be its URL or its snapshot identifier, whatever their names:
 * first those that are known or found by shape, then the rest. For `doctor`, which tries them. Never throws.
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

/** Reads a count that fits into a table's integer; null for anything else. */
function readInt4(value: unknown): number | null {
  const count = readCount(value);
  return count === null || count > INT4_MAX ? null : count;
}

/** Returns the path of the chosen field if a table can store it. */
function rememberable({ leaf }: Choice): string | null {
  const path = leaf?.path;
  return isReadableSku(path) ? path : null;
}

const CALLED = {
  url: { what: 'presigned URL', variable: 'PARTNER_MANIFEST_URL_FIELD' },
  snapshotId: { what: 'snapshot identifier', variable: 'PARTNER_SNAPSHOT_ID_FIELD' },
} as const;

/** Explains why the URL or the identifier is unreadable: names fields, but only the kind and length of a value. */
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

/** Returns a member of the body that is not a leaf because it is an object. */
function ownMember(
  body: Readonly<Record<string, unknown>>,
  field: string | undefined,
): Pick<Leaf, 'path' | 'value'> | null {
  return field !== undefined && Object.hasOwn(body, field) ? { path: field, value: body[field] } : null;
}

/** Returns what prevents the URL, and the identifier, from being read with these names; null if nothing. */
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
 * Reads the parsed body of a manifest response (partner rules 2.7, 2.7.open). The names of the URL field and of the
 * snapshot identifier are not documented: configured names count first, then known ones, else both are found by
 * shape, at the top level or one object deep. Returns the metadata, or the problem with candidate field names. A
 * `sku_count` that is present must be readable, because nothing else shows that the file is complete. Never throws.
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
  // If it counted as absent, a file that was cut at the end of a gzip member would pass.
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
