import { z } from 'zod';
import { eachColumn, type Metadata } from '../declared/metadata.ts';
import { isObject } from '../lib/json.ts';
import type { BulkAnswer, LowestRecord, UnreadableRecord } from './answers.ts';
import { parseSentJson } from './json-text.ts';
import { leftOut, noteOthers } from './other-members.ts';
import { withoutUnclear } from './repeated-members.ts';
import {
  entriesOf,
  isBareAlone,
  membersOf,
  noSizes,
  type NoSizes,
  type OtherMember,
  saysNothingElse,
  type EntryForm,
  formOf,
  formOfRecord,
  formsHere,
  otherFormOf,
  readSizeEntry,
  type SizeEntry,
} from './size-map.ts';
import { isReadableSize, isReadableSku, toStorable, toStorableJson } from './text.ts';

/** The names that the partner does not document (partner rules 2.4.open, 2.5.open), as configured. */
export interface WireNames {
  /** Where a size_map entry that is an object may carry its price (formOf). */
  priceFields: readonly string[];
  /** The form by which entries are read, from earlier answers; without it that of most entries. */
  entryForm?: EntryForm | null | undefined;
  /** That of records without any entry of `entryForm`, from earlier answers; null or absent: none. */
  alsoForm?: EntryForm | null | undefined;
  /** The SKU in list elements that are objects. */
  skuField: string;
  /** Members of `size_map` that are no sizes, from earlier answers. */
  others?: readonly OtherMember[] | undefined;
}

/** Result of reading a body: the value, or the field that could not be read (upstream names, never values). */
export type Reading<T> = { ok: true; value: T } | { ok: false; problem: string };

// Members keyed by untrusted text stay `unknown` here and are walked as own entries: z.record would drop `__proto__`.
const bulkSchema = z.object({
  results: z.unknown().optional(),
  not_found: z.unknown().optional(),
  deferred: z.unknown().optional(),
  errors: z.unknown().optional(),
  requested: z.unknown().optional(),
});
const recordSchema = z.object({
  code: z.unknown().optional(),
  size_map: z.unknown().optional(),
  product: z.unknown().optional(),
});

/** A SKU has some dozens of sizes; each is a row, and thousands are no sizes. */
const MAX_SIZES = 1000;

const BULK_PARTS = ['results', 'not_found', 'deferred', 'errors'] as const;

export const isEmptyObject = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0;

/** Where a list element has its SKU: it is the element itself, or an object's member `skuField`. */
export function skuValue(element: unknown, skuField: string): unknown {
  return isObject(element) && Object.hasOwn(element, skuField) ? element[skuField] : element;
}

/** A SKU from a list element; null where none reads. */
function readSku(element: unknown, skuField: string): string | null {
  const value = skuValue(element, skuField);
  return isReadableSku(value) ? value : null;
}

/**
 * The elements of a list, or of an object keyed by SKU ({sku: reason}), in which false says that the SKU is not in the
 * list; null where it is neither; absent and null are empty.
 */
function elementsOf(part: unknown): unknown[] | null {
  if (part === undefined || part === null) return [];
  if (Array.isArray(part)) return part;
  return isObject(part) ? Object.keys(part).filter((sku) => part[sku] !== false) : null;
}

/** A documented count that may come as a number or numeric text; null where it is neither. */
export function readCount(value: unknown): number | null {
  const count = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : null;
}

/** A text with nothing in it is as good as none: serialisers write that for what is absent. */
function asText(value: unknown): string | null {
  if (typeof value === 'string') return value.trim() === '' ? null : toStorable(value);
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}

function readMetadata(
  parts: Readonly<Record<'product' | 'size_map', Readonly<Record<string, unknown>> | null>>,
): Metadata {
  return eachColumn((_, [part, member]) => {
    const from = parts[part];
    return from !== null && Object.hasOwn(from, member) ? asText(from[member]) : null;
  });
}

/** By what the records of an answer are read. */
interface ReadBy extends Readonly<Record<'form' | 'also' | 'found', EntryForm | null>> {
  readonly none: NoSizes;
  /** Their entries, as they say in which form their prices are. */
  readonly entries: readonly (readonly unknown[])[];
}

/** The forms by which the records of an answer are read, and the one that its entries have (`found`). */
function formsOf(
  records: readonly unknown[],
  { priceFields, entryForm = null, alsoForm = null, others = [] }: WireNames,
): ReadBy {
  const prices = entryForm === null ? 'unknown' : isBareAlone(entryForm, alsoForm) ? 'bare' : 'anywhere';
  const none = noSizes(others, priceFields, prices);
  const entries = records.map((record) => entriesOf(record, none));
  const { held, also } = formsHere(entries, priceFields, entryForm, alsoForm);
  const found = formOf(entries.flat(), priceFields, held);
  return { form: held ?? found, also, found, none, entries };
}

/**
 * Reads a lowest-price record (partner rules 2.4, 7.3): the body of the single lookup, or a value of a bulk answer.
 * Without code 0000 or a `size_map` object it is unreadable, because neither says that a SKU has no prices, while an
 * empty `size_map` does (partner rule 4.2.4). It is unreadable, too, if no entry has a price and some cannot be read:
 * entries in another form than before are no withdrawal. Never throws. `by`: how all records of its answer are read.
 */
export function readRecord(
  body: unknown,
  names: WireNames,
  by: ReadBy = formsOf([body], names),
): LowestRecord | UnreadableRecord {
  const parsed = recordSchema.safeParse(body);
  if (!parsed.success) return { unreadable: 'the record is not an object' };
  const { code, size_map: given } = parsed.data;
  const sizeMap = Array.isArray(given) && given.length === 0 ? {} : given;
  if (code !== '0000') return { unreadable: 'code is not 0000' };
  if (!isObject(sizeMap)) return { unreadable: 'size_map is not an object' };
  const { none } = by;
  const entries = entriesOf(body, none);
  const form = formOfRecord(entries, by.form, by.also);
  // Among bare numbers they are prices all the same, until more records show them to be none, or this one has no other.
  const isPrice = by.found?.field === null && !saysNothingElse(entries);
  const sizes = new Map<string, SizeEntry>();
  if (Object.keys(sizeMap).length > MAX_SIZES) return { unreadable: `more than ${MAX_SIZES} sizes` };
  for (const [size, raw] of membersOf(body)) {
    if (none.isNone(size, raw)) continue;
    if (!isReadableSize(size)) return { unreadable: 'a size key is too long or not storable' };
    const entry = toStorableJson(raw);
    if (entry === undefined) return { unreadable: 'a size_map entry is nested too deep' };
    sizes.set(size, readSizeEntry(entry, !isPrice && none.isNoPrice(size, raw) ? null : form));
  }
  const read = [...sizes.values()];
  if (read.some(({ unreadable }) => unreadable) && read.every(({ price }) => price === null))
    return { unreadable: 'no entry of size_map reads as a price' };
  const product = toStorableJson(parsed.data.product ?? null);
  if (product === undefined) return { unreadable: 'product is nested too deep' };
  // A member that is null says nothing, as one that is absent.
  const kept = isObject(product)
    ? Object.fromEntries(Object.entries(product).filter(([, value]) => value !== null))
    : null;
  return { sizes, metadata: readMetadata({ product: kept, size_map: sizeMap }), product: kept };
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  value === false ||
  value === 0 ||
  (typeof value === 'object' && Object.keys(value).length === 0);

/**
 * Whether a value of `results` is there for a SKU that has its answer in a list: a map that was filled beforehand with
 * what is empty, or the code that its single lookup would have, without any prices. Pure.
 */
function isPlaceholder(record: unknown): boolean {
  if (isEmpty(record)) return true;
  if (!isObject(record)) return false;
  const { code, size_map: sizeMap } = record;
  return typeof code === 'string' && code.trim() !== '' && code !== '0000' && isEmpty(sizeMap);
}

/** Distinct SKUs of a list; unreadable elements are skipped. */
function readableSkus(elements: readonly unknown[], skuField: string): string[] {
  return [...new Set(elements.map((element) => readSku(element, skuField)).filter((sku) => sku !== null))];
}

/**
 * A bulk answer (partner rules 2.5). Absent parts are empty; elements that cannot be read are skipped, so their SKU
 * counts as omitted. Unreadable as a whole: not an object, none of the four parts, or a part of the wrong type.
 */
export function readBulk(body: unknown, names: WireNames): Reading<BulkAnswer> {
  const parsed = bulkSchema.safeParse(body);
  if (!parsed.success || !isObject(body)) return { ok: false, problem: 'the body is not an object' };
  if (!BULK_PARTS.some((part) => Object.hasOwn(body, part))) {
    return { ok: false, problem: `none of ${BULK_PARTS.join(', ')} is there` };
  }
  const { results: rawResults, not_found, deferred, errors, requested } = parsed.data;
  const emptyResults =
    rawResults === undefined || rawResults === null || (Array.isArray(rawResults) && rawResults.length === 0);
  if (!emptyResults && !isObject(rawResults)) return { ok: false, problem: 'results is not an object' };
  const results = new Map<string, LowestRecord | UnreadableRecord>();
  const records = Object.entries(emptyResults ? {} : rawResults);
  const all = records.map(([, record]) => record);
  const { priceFields, entryForm: held = null, alsoForm: also = null } = names;
  const others = noteOthers(names.others ?? [], all, { priceFields, held, also });
  const by = formsOf(all, { ...names, others });
  const notSizes = leftOut(all, others, priceFields);
  for (const [sku, record] of records) {
    if (!isReadableSku(sku)) continue;
    const read = readRecord(record, names, by);
    results.set(sku, 'unreadable' in read && isPlaceholder(record) ? { ...read, isPlaceholder: true } : read);
  }
  const lists: string[][] = [];
  for (const [name, part] of Object.entries({ not_found, deferred, errors })) {
    const elements = elementsOf(part);
    if (elements === null) return { ok: false, problem: `${name} is not a list` };
    lists.push(readableSkus(elements, names.skuField));
  }
  const [notFound = [], deferredSkus = [], errorSkus = []] = lists;
  return {
    ok: true,
    value: {
      results,
      notFound,
      deferred: deferredSkus,
      errors: errorSkus,
      requested: readCount(requested),
      form: by.found,
      also: otherFormOf(by.entries, priceFields, by.found, by.also),
      others,
      ...(notSizes.length > 0 && { notSizes }),
    },
  };
}

/**
 * JSON text to a value, with integers beyond 2^53 kept as their digits: a snapshot id that is such a number would
 * otherwise come back changed. Throws SyntaxError where the text is not JSON.
 */
export function parseExact(text: string): unknown {
  return parseSentJson(text, (_key, value, context) => {
    const inexact = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
    return inexact ? (context?.source ?? value) : value;
  });
}

/** Fewer digits are exact, as text of a number or within one. */
const MANY_DIGITS = /\d{16}/;

/** Text of an answer with records to a value; the slower, exact parse is taken only where a number may need it. */
export function parseRecords(text: string): unknown {
  return MANY_DIGITS.test(text) ? parseExact(text) : parseSentJson(text);
}

/** The same for a bulk answer. A record of which another value was said, too, is a text: it cannot be read. */
export function parseBulk(text: string): unknown {
  return withoutUnclear(parseRecords(text), text);
}

/** A time of day without a zone, as Date.parse would take it for one of this machine's. */
const ZONELESS = /\d[T ]\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?$/;

/** Nothing of the partner's is older: a zero in place of a time says that there is none. */
const EARLIEST = Date.UTC(2010, 0);

/** Epoch seconds or milliseconds as text. */
export const EPOCH_TEXT = /^\d{9,13}$/;

/**
 * A time as ISO text, in UTC where it names no zone (partner rules 2.6), or as epoch seconds or milliseconds, also as
 * text; null where it is none of these.
 */
export function readTime(value: unknown): Date | null {
  if (typeof value === 'string' && EPOCH_TEXT.test(value)) return readTime(Number(value));
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  const text = typeof value === 'string' && ZONELESS.test(value) ? `${value}Z` : value;
  const date = new Date(typeof text === 'number' && text < 100_000_000_000 ? text * 1000 : text);
  return date.getTime() >= EARLIEST ? date : null;
}
