import { z } from 'zod';
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

// `hash` is unchecked here: a live line's is ignored whatever it is, so the rule needs price_source beside it.
const lineSchema = z.compile(
  z.object({
    sku: z.string(),
    sizes: z.int().min(0).max(INT4_MAX).nullish(),
    hash: z.unknown().optional(),
    price_source: z.enum(['snapshot', 'live']),
    updated_at: z.string().nullish(),
  }),
  // What cannot be compiled would be read more slowly, without a word.
  { strict: true },
);

const REASON_OF_FIELD: readonly (readonly [string, RejectionReason])[] = [
  ['sku', 'bad-sku'],
  ['price_source', 'unknown-price-source'],
  ['sizes', 'bad-sizes'],
  ['updated_at', 'bad-updated-at'],
];

const WRITTEN_DAY =
  /^(?:19[7-9]\d|[2-9]\d{3})-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)/;
const WRITTEN_TIME_OF_DAY = /T(?:[01]\d|2[0-3])(?::[0-5]\d){2}\.\d{3}Z$/;
/** Times as toISOString writes them. They skip its call, which takes longer than all else that is done to a line. */
const WRITTEN_TIME = new RegExp(WRITTEN_DAY.source + WRITTEN_TIME_OF_DAY.source);

/**
 * The timestamp in the one spelling Postgres is sure to take, in UTC where it names no zone; null where it is no time
 * of the years 1970 to 9999.
 */
function normaliseTime(text: string): string | null {
  if (WRITTEN_TIME.test(text)) return text;
  const iso = ISO_TIME.exec(text);
  const ms = iso === null ? Number.NaN : Date.parse(iso.groups?.['zone'] === undefined ? `${text}Z` : text);
  return ms >= 0 && ms < 253_402_300_800_000 ? new Date(ms).toISOString() : null;
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
  const sku = quoted === undefined ? null : parseJson(quoted);
  return isReadableSku(sku) ? sku : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
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

/** A line whose shape is right, judged by its content: a reason where it cannot be applied. */
function settleLine(data: z.infer<typeof lineSchema>): ManifestLine | RejectionReason {
  if (data.sku === '') return 'no-sku';
  if (!isReadableSku(data.sku)) return 'bad-sku';
  const live = data.price_source === 'live';
  const hash = live ? null : data.hash;
  if (!live && (typeof hash !== 'string' || hash === '' || !isStorableText(hash))) return 'bad-hash';
  const time = data.updated_at ?? '';
  const updatedAt = NO_TIME.test(time) ? null : normaliseTime(time);
  if (updatedAt === null && !NO_TIME.test(time)) return 'bad-updated-at';
  return {
    sku: data.sku,
    sizes: data.sizes ?? null,
    hash: typeof hash === 'string' ? hash : null,
    priceSource: data.price_source,
    updatedAt,
  };
}

/**
 * Makes the reader of manifest lines (partner rules 2.6). A live line's hash is dropped, a snapshot line without one
 * is rejected; `sizes` and `updated_at` may be absent or null, but not of another type. Never throws. In: the
 * greatest length of a line in bytes; a longer one is rejected as 'too-long'. `hide` cuts secrets out of samples.
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
    const value = parseJson(text);
    if (value === undefined) return reject('not-json', salvageSku(text));
    const parsed = lineSchema.safeParse(value);
    if (!parsed.success) return reject(rejectionOf(value), skuOf(value));
    const settled = settleLine(parsed.data);
    if (typeof settled === 'string') return reject(settled, parsed.data.sku);
    const twice = saidTwice(text, settled.priceSource === 'live');
    return twice === null ? settled : reject('repeated-member', twice === 'sku' ? null : settled.sku);
  };
}
