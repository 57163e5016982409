import { z } from 'zod';
import { eachColumn, type Metadata } from '../declared/metadata.ts';
import { isObject, parseJson } from '../lib/json.ts';
import type { BulkAnswer, LowestRecord, UnreadableRecord } from './answers.ts';
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

/** Configured names of what the partner does not document (partner rules 2.4.open, 2.5.open). */
export interface WireNames {
  /** Fields in which an object of size_map may carry its price (formOf). */
  priceFields: readonly string[];
  /** The form by which entries are read, learned from earlier answers. Without it, the form of most entries counts. */
  entryForm?: EntryForm | null | undefined;
  /** The form of records without any entry of `entryForm`, learned from earlier answers; null or absent if none. */
  alsoForm?: EntryForm | null | undefined;
  /** Name of the SKU in list elements that are objects. */
  skuField: string;
  /** Members of `size_map` that are not sizes, learned from earlier answers. */
  others?: readonly OtherMember[] | undefined;
}

/** The value of a body, or the field that could not be read (by the partner's names, never values). */
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

/** A SKU has some dozens of sizes, each of them a row. Thousands of members cannot be sizes. */
const MAX_SIZES = 1000;

const BULK_PARTS = ['results', 'not_found', 'deferred', 'errors'] as const;

export const isEmptyObject = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0;

/** Returns the SKU of a list element: the element itself, or the member `skuField` of an object. */
export function skuValue(element: unknown, skuField: string): unknown {
  return isObject(element) && Object.hasOwn(element, skuField) ? element[skuField] : element;
}

/** Reads a SKU from a list element; null if it is not readable. */
function readSku(element: unknown, skuField: string): string | null {
  const value = skuValue(element, skuField);
  return isReadableSku(value) ? value : null;
}

/**
 * Returns the elements of a list, or the keys of an object keyed by SKU ({sku: reason}), where false means that the
 * SKU is not in the list. An absent part and null are empty. Null if it is neither.
 */
function elementsOf(part: unknown): unknown[] | null {
  if (part === undefined || part === null) return [];
  if (Array.isArray(part)) return part;
  return isObject(part) ? Object.keys(part).filter((sku) => part[sku] !== false) : null;
}

/** Reads a documented count, which may be a number or numeric text; null if it is neither. */
export function readCount(value: unknown): number | null {
  const count = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : null;
}

/** Reads a text, number or boolean as text. Blank text is null, because serialisers write it for absent values. */
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

/** The forms by which the records of an answer are read. */
interface ReadBy extends Readonly<Record<'form' | 'also' | 'found', EntryForm | null>> {
  readonly none: NoSizes;
  /** The entries of each record that show in which form its prices are. */
  readonly entries: readonly (readonly unknown[])[];
}

/** Determines the forms by which the records of an answer are read, and the form that its entries have (`found`). */
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
 * It is unreadable without code 0000 or without a `size_map` object, because neither says that a SKU has no prices,
 * while an empty `size_map` does (partner rule 4.2.4). It is also unreadable if no entry has a price and some
 * cannot be read, because entries in a new form are not a withdrawal. `by` tells how all records of the answer are
 * read. Never throws.
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
  // Among bare-number prices such numbers count as prices until more records show otherwise, but not in a record
  // without other entries.
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
  // A member that is null says as little as an absent one.
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
 * Returns whether a value of `results` only stands in for a SKU whose answer is in a list: an empty value from a
 * map filled in advance, or the code of its single lookup, without prices. Pure.
 */
function isPlaceholder(record: unknown): boolean {
  if (isEmpty(record)) return true;
  if (!isObject(record)) return false;
  const { code, size_map: sizeMap } = record;
  return typeof code === 'string' && code.trim() !== '' && code !== '0000' && isEmpty(sizeMap);
}

/** Returns the distinct SKUs of a list; unreadable elements are skipped. */
function readableSkus(elements: readonly unknown[], skuField: string): string[] {
  return [...new Set(elements.map((element) => readSku(element, skuField)).filter((sku) => sku !== null))];
}

/**
 * Reads a bulk answer (partner rules 2.5). Absent parts are empty; elements that cannot be read are skipped, so
 * their SKUs count as omitted. Unreadable as a whole if it is not an object, has none of the four parts, or a part
 * has the wrong type.
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
 * Parses JSON and keeps integers beyond 2^53 as text of their digits; otherwise a numeric snapshot id of that size
 * would be sent back changed. Throws SyntaxError if the text is not JSON.
 */
export function parseExact(text: string): unknown {
  return parseJson(text, (_key, value, context) => {
    const inexact = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
    return inexact ? (context?.source ?? value) : value;
  });
}

/** Fewer digits are exact, whether in a number or within text. */
const MANY_DIGITS = /\d{16}/;

/** Parses the text of an answer with records; takes the slower, exact parse only if a number may need it. */
export function parseRecords(text: string): unknown {
  return MANY_DIGITS.test(text) ? parseExact(text) : parseJson(text);
}

/** Parses the text of a bulk answer. A record with two different values becomes a text, which cannot be read. */
export function parseBulk(text: string): unknown {
  return withoutUnclear(parseRecords(text), text);
}

/** A time of day without a zone, which Date.parse would read in this machine's zone. */
const ZONELESS = /\d[T ]\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?$/;

/** No time of the partner's is older; zero stands for an absent time. */
const EARLIEST = Date.UTC(2010, 0);

/** Epoch seconds or milliseconds as text. */
export const EPOCH_TEXT = /^\d{9,13}$/;

/**
 * Reads a time from ISO text, in UTC if it names no zone (partner rules 2.6), or from epoch seconds or milliseconds
 * as a number or text; null if it is none of these.
 */
export function readTime(value: unknown): Date | null {
  if (typeof value === 'string' && EPOCH_TEXT.test(value)) return readTime(Number(value));
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  const text = typeof value === 'string' && ZONELESS.test(value) ? `${value}Z` : value;
  const date = new Date(typeof text === 'number' && text < 100_000_000_000 ? text * 1000 : text);
  return date.getTime() >= EARLIEST ? date : null;
}
