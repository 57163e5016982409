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

/**
 * A line that is not applied: its number from 1, its SKU where one could be read, and the start of it (≤ 200
 * characters).
 */
export interface RejectedLine {
  line: number;
  reason: RejectionReason;
  sku: string | null;
  sample: string;
}

const SAMPLE_LENGTH = 200;
/** What serialisers write where there is no time: nothing, or the first year. */
const NO_TIME = /^$|^0001-01-01T/;
/** Characters of a line that are searched for secrets before the sample is cut from it, so that none is cut in two. */
const SEARCHED_LENGTH = 8192;
/** What some programs put at the beginning of a file is no part of its first line. */
const BYTE_ORDER_MARK = /^\uFEFF/;
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?<zone>Z|[+-]\d\d:?\d\d)?$/;

// `hash` is unchecked here: a live line's is ignored whatever it is, so the rule needs price_source beside it. The
// other two are read in several types (settleLine).
const lineSchema = z.compile(
  z.object({
    sku: z.string(),
    sizes: z.unknown().optional(),
    hash: z.unknown().optional(),
    price_source: z.enum(['snapshot', 'live']),
    updated_at: z.unknown().optional(),
  }),
  // What cannot be compiled would be read more slowly, without a word.
  { strict: true },
);

const REASON_OF_FIELD: readonly (readonly [string, RejectionReason])[] = [
  ['sku', 'bad-sku'],
  ['price_source', 'unknown-price-source'],
];

const WRITTEN_DAY =
  /^(?:19[7-9]\d|[2-9]\d{3})-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)/;
const WRITTEN_TIME_OF_DAY = /T(?:[01]\d|2[0-3])(?::[0-5]\d){2}\.\d{3}Z$/;
/** Times as toISOString writes them. They skip its call, which takes longer than all else that is done to a line. */
const WRITTEN_TIME = new RegExp(WRITTEN_DAY.source + WRITTEN_TIME_OF_DAY.source);

/** The year 10,000. */
const END_OF_TIMES = 253_402_300_800_000;

/**
 * The timestamp in the one spelling Postgres is sure to take, in UTC where it names no zone; null where it is no time
 * of the years 1970 to 9999.
 */
function normaliseTime(text: string): string | null {
  if (WRITTEN_TIME.test(text)) return text;
  const iso = ISO_TIME.exec(text);
  const ms = iso === null ? Number.NaN : Date.parse(iso.groups?.['zone'] === undefined ? `${text}Z` : text);
  return ms >= 0 && ms < END_OF_TIMES ? new Date(ms).toISOString() : null;
}

/** Members by which a line is a SKU's, and its price reported or live; of others the last value does no harm. */
const DECISIVE = ['sku', 'price_source', 'hash'];

const QUOTED = DECISIVE.map((name) => `"${name}"`);

/** A member of which a line says two things, or null. A live line's hash is ignored, whatever it is. */
function saidTwice(text: string, isLive: boolean): string | null {
  // Of nearly all lines nothing else is asked: a walk through the text is slow.
  if (!QUOTED.some((name) => isThereTwice(text, name)) && !text.includes(ESCAPE)) return null;
  return lostMember(text, isLive ? DECISIVE.filter((name) => name !== 'hash') : DECISIVE);
}

/** By its code, any letter of a name may be written. */
const ESCAPE = String.raw`\u`;

function isThereTwice(text: string, quoted: string): boolean {
  const at = text.indexOf(quoted);
  return at !== -1 && text.indexOf(quoted, at + quoted.length) !== -1;
}

/** The SKU of a line that is not whole JSON: what follows its first "sku" key, where that much can be read. */
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
  /** In: one line without its newline and its number. Out: the line, or why it is rejected; null for a blank one. */
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

/** A count of sizes, also as text; undefined where there is something else. */
function sizesOf(value: unknown): number | null | undefined {
  if (value === undefined || value === null) return null;
  const count = readCount(value);
  return count !== null && count <= INT4_MAX ? count : undefined;
}

/** A time as ISO 8601, also as epoch seconds or milliseconds; undefined where there is something else. */
function timeOf(value: unknown): string | null | undefined {
  if (value === undefined || value === null || value === 0) return null;
  if (typeof value === 'string' && !EPOCH_TEXT.test(value))
    return NO_TIME.test(value) ? null : (normaliseTime(value) ?? undefined);
  const time = readTime(value);
  return time !== null && time.getTime() < END_OF_TIMES ? time.toISOString() : undefined;
}

/** A fingerprint: text, or the digits of an integer; null where it is neither, or one that stands for none. */
function hashOf(value: unknown, text: string): string | null {
  if (typeof value === 'string') return value !== '' && isStorableText(value) ? value : null;
  if (typeof value !== 'number' || !Number.isInteger(value) || value === 0) return null;
  if (Number.isSafeInteger(value)) return String(value);
  // Its digits are lost but in the text.
  const exact: unknown = parseExact(text);
  const digits = typeof exact === 'object' && exact !== null && 'hash' in exact ? exact.hash : null;
  return typeof digits === 'string' && /^-?\d+$/.test(digits) ? digits : null;
}

/** A line whose shape is right, judged by its content: a reason where it cannot be applied. */
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
 * Makes the reader of manifest lines (partner rules 2.6). A live line's hash is dropped, a snapshot line without one
 * is rejected; `sizes` and `updated_at` may be absent or null. Numbers may be text, times epochs as a number or text,
 * and fingerprints numbers. Never throws. In: the greatest length of a line in bytes; a longer one is rejected as
 * 'too-long'. `hide` cuts secrets out of samples.
 */
export function lineReader(lineBytes: number, hide = (text: string): string => text): LineReader {
  return (given, line) => {
    const text = line === 1 ? given.replace(BYTE_ORDER_MARK, '') : given;
    // A UTF-16 unit is at most three bytes, so most lines need no count.
    const tooLong = text.length * 3 > lineBytes && Buffer.byteLength(text) > lineBytes;
    const reject = (reason: RejectionReason, sku: unknown): RejectedLine => {
      const shown = hide(text.slice(0, SEARCHED_LENGTH));
      // By way of a buffer: a slice would keep the whole chunk it was cut from alive.
      const sample = toStorable(Buffer.from(shown.slice(0, SAMPLE_LENGTH)).toString());
      return { line, reason, sku: isReadableSku(sku) ? sku : null, sample };
    };
    if (tooLong) return reject('too-long', salvageSku(text.slice(0, lineBytes)));
    // Before the parser, whose error costs more than a good line does: a bomb may be nothing but blank lines.
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
