import { z } from 'zod';
import { parseJson } from '../lib/json.ts';
import { EPOCH_TEXT, parseExact, readCount, readTime } from './bulk-answer.ts';
import { INT4_MAX } from './limits.ts';
import { lostMember } from './repeated-members.ts';
import { isReadableSku, isStorableText, toStorable } from './text.ts';

/** One line of the manifest (partner rules 2.6). `hash` is null for a live line; `updatedAt` is ISO 8601 in UTC. */
export interface ManifestLine {
  sku: string;
  sizes: number | null;
  hash: string | null;
  priceSource: 'snapshot' | 'live';
  updatedAt: string | null;
}

export const REJECTIONS = [
  'not-json',
  'not-an-object',
  'no-sku',
  'bad-sku',
  'unknown-price-source',
  'bad-hash',
  'bad-sizes',
  'bad-updated-at',
  'repeated-member',
  'too-long',
] as const;
export type RejectionReason = (typeof REJECTIONS)[number];

/** A line that is not applied: its number from 1, its SKU if readable, and its start (≤ 200 characters). */
export interface RejectedLine {
  line: number;
  reason: RejectionReason;
  sku: string | null;
  sample: string;
}

const SAMPLE_LENGTH = 200;
/** What serialisers write for an absent time: nothing, or the year 1. */
const NO_TIME = /^$|^0001-01-01T/;
/** Characters searched for secrets before the sample is cut out of them, so that no secret is cut in two. */
const SEARCHED_LENGTH = 8192;
/** Some programs write it at the beginning of a file; it is not part of the first line. */
const BYTE_ORDER_MARK = /^\uFEFF/;
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?<zone>Z|[+-]\d\d:?\d\d)?$/;

// `hash` is unchecked here: on a live line any value is ignored, so the check needs price_source. The other two may
// have several types (settleLine).
const lineSchema = z.compile(
  z.object({
    sku: z.string(),
    sizes: z.unknown().optional(),
    hash: z.unknown().optional(),
    price_source: z.enum(['snapshot', 'live']),
    updated_at: z.unknown().optional(),
  }),
  // Without `strict`, a schema that cannot be compiled would silently be slower.
  { strict: true },
);

const REASON_OF_FIELD: readonly (readonly [string, RejectionReason])[] = [
  ['sku', 'bad-sku'],
  ['price_source', 'unknown-price-source'],
];

const WRITTEN_DAY =
  /^(?:19[7-9]\d|[2-9]\d{3})-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)/;
const WRITTEN_TIME_OF_DAY = /T(?:[01]\d|2[0-3])(?::[0-5]\d){2}\.\d{3}Z$/;
/** Times as toISOString writes them. They skip its call, which takes longer than everything else done to a line. */
const WRITTEN_TIME = new RegExp(WRITTEN_DAY.source + WRITTEN_TIME_OF_DAY.source);

/** The year 10,000. */
const END_OF_TIMES = 253_402_300_800_000;

/**
 * Returns the timestamp in the one spelling that Postgres certainly accepts, in UTC if it names no zone; null if it
 * is not a time of the years 1970 to 9999.
 */
function normaliseTime(text: string): string | null {
  if (WRITTEN_TIME.test(text)) return text;
  const iso = ISO_TIME.exec(text);
  const ms = iso === null ? Number.NaN : Date.parse(iso.groups?.['zone'] === undefined ? `${text}Z` : text);
  return ms >= 0 && ms < END_OF_TIMES ? new Date(ms).toISOString() : null;
}

/** Members that decide which SKU a line is about and how it is priced. For others the last value does no harm. */
const DECISIVE = ['sku', 'price_source', 'hash'];

const QUOTED = DECISIVE.map((name) => `"${name}"`);

/** Returns a member for which a line gives two values, or null. A live line's hash is ignored, whatever it is. */
function saidTwice(text: string, isLive: boolean): string | null {
  // This settles nearly all lines: walking through the text is slow.
  if (!QUOTED.some((name) => isThereTwice(text, name)) && !text.includes(ESCAPE)) return null;
  return lostMember(text, isLive ? DECISIVE.filter((name) => name !== 'hash') : DECISIVE);
}

/** A JSON escape can stand for any letter of a name. */
const ESCAPE = String.raw`\u`;

function isThereTwice(text: string, quoted: string): boolean {
  const at = text.indexOf(quoted);
  return at !== -1 && text.indexOf(quoted, at + quoted.length) !== -1;
}

/** Returns the SKU of an incomplete line: the string after its first "sku" key, if that much can be read. */
function salvageSku(text: string): string | null {
  const quoted = /"sku"\s*:\s*("(?:[^"\\]|\\.){1,600}")/.exec(text)?.[1];
  const sku = quoted === undefined ? null : valueOf(quoted);
  return isReadableSku(sku) ? sku : null;
}

function valueOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function skuOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'sku' in value ? value.sku : undefined;
}

export interface LineReader {
  /** Reads a line without its newline, and its number. Returns the line, or why it is rejected; null if blank. */
  (text: string, line: number): ManifestLine | RejectedLine | null;
}

function rejectionOf(value: unknown): RejectionReason {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not-an-object';
  const sku = skuOf(value);
  if (sku === undefined || sku === null || sku === '') return 'no-sku';
  const issues = lineSchema.safeParse(value).error?.issues ?? [];
  const fields = new Set(issues.map((issue) => issue.path[0]));
  return REASON_OF_FIELD.find(([field]) => fields.has(field))?.[1] ?? 'bad-sku';
}

/** Reads a count of sizes, which may be text; undefined if it is something else. */
function sizesOf(value: unknown): number | null | undefined {
  if (value === undefined || value === null) return null;
  const count = readCount(value);
  return count !== null && count <= INT4_MAX ? count : undefined;
}

/** Reads a time into ISO 8601, from ISO text or epoch seconds or milliseconds; undefined for anything else. */
function timeOf(value: unknown): string | null | undefined {
  if (value === undefined || value === null || value === 0) return null;
  if (typeof value === 'string' && !EPOCH_TEXT.test(value))
    return NO_TIME.test(value) ? null : (normaliseTime(value) ?? undefined);
  const time = readTime(value);
  return time !== null && time.getTime() < END_OF_TIMES ? time.toISOString() : undefined;
}

/** Reads a fingerprint: text, or the digits of an integer; null for anything else or an empty value. */
function hashOf(value: unknown, text: string): string | null {
  if (typeof value === 'string') return value !== '' && isStorableText(value) ? value : null;
  if (typeof value !== 'number' || !Number.isInteger(value) || value === 0) return null;
  if (Number.isSafeInteger(value)) return String(value);
  // The parsed number has lost digits; the text still has them.
  const exact: unknown = parseExact(text);
  const digits = typeof exact === 'object' && exact !== null && 'hash' in exact ? exact.hash : null;
  return typeof digits === 'string' && /^-?\d+$/.test(digits) ? digits : null;
}

/** Checks the content of a line whose shape is right; returns a reason if it cannot be applied. */
function settleLine(data: z.infer<typeof lineSchema>, text: string): ManifestLine | RejectionReason {
  if (data.sku === '') return 'no-sku';
  if (!isReadableSku(data.sku)) return 'bad-sku';
  const live = data.price_source === 'live';
  const hash = live ? null : hashOf(data.hash, text);
  if (!live && hash === null) return 'bad-hash';
  const sizes = sizesOf(data.sizes);
  if (sizes === undefined) return 'bad-sizes';
  const updatedAt = timeOf(data.updated_at);
  if (updatedAt === undefined) return 'bad-updated-at';
  return { sku: data.sku, sizes, hash, priceSource: data.price_source, updatedAt };
}

/**
 * Creates the reader of manifest lines (partner rules 2.6). Drops the hash of a live line and rejects a snapshot
 * line without one; `sizes` and `updated_at` may be absent or null. Numbers may be text, times may be epochs as a
 * number or text, and fingerprints may be numbers. Lines longer than `lineBytes` bytes are rejected as 'too-long'.
 * `hide` removes secrets from samples. Never throws.
 */
export function lineReader(lineBytes: number, hide = (text: string): string => text): LineReader {
  return (given, line) => {
    const text = line === 1 ? given.replace(BYTE_ORDER_MARK, '') : given;
    // A UTF-16 unit takes at most three bytes, so most lines need no exact count.
    const tooLong = text.length * 3 > lineBytes && Buffer.byteLength(text) > lineBytes;
    const reject = (reason: RejectionReason, sku: unknown): RejectedLine => {
      const shown = hide(text.slice(0, SEARCHED_LENGTH));
      // The buffer makes a copy: a slice would keep the whole chunk in memory.
      const sample = toStorable(Buffer.from(shown.slice(0, SAMPLE_LENGTH)).toString());
      return { line, reason, sku: isReadableSku(sku) ? sku : null, sample };
    };
    if (tooLong) return reject('too-long', salvageSku(text.slice(0, lineBytes)));
    // Before parsing, because a parse error costs more than a good line does, and a bomb may consist of blank lines.
    if (text.trim() === '') return null;
    const value = valueOf(text);
    if (value === undefined) return reject('not-json', salvageSku(text));
    const parsed = lineSchema.safeParse(value);
    if (!parsed.success) return reject(rejectionOf(value), skuOf(value));
    const settled = settleLine(parsed.data, text);
    if (typeof settled === 'string') return reject(settled, parsed.data.sku);
    const twice = saidTwice(text, settled.priceSource === 'live');
    return twice === null ? settled : reject('repeated-member', twice === 'sku' ? null : settled.sku);
  };
}
