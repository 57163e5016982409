import { METADATA } from '../declared/metadata.ts';
import { isObject } from '../lib/json.ts';
import { INT4_MAX } from './limits.ts';

/**
 * One size of a SKU. `price` is in whole baht; `entry` is the partner's entry as it came, null if it was just the
 * price as a number. `unreadable`: it says something, but not a price that can be read.
 */
export interface SizeEntry {
  price: number | null;
  entry: unknown;
  unreadable?: true;
}

/** In text, three digits after a point may be thousands, so at most two are decimals unless all digits are zero. */
const NUMERIC = /^-?(?:\d{1,20}(?:\.\d{1,2})?|0{1,20}\.0{1,20})$/;

/** Returns a number, or numeric text as a number; undefined for anything else. */
function asNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  return NUMERIC.test(text) ? Number(text) : undefined;
}

/** The partner accepts no lower ask (partner rule 8.create-floor). Anything less means that there is no price. */
export const MIN_PRICE = 50;

const isPrice = (amount: number | undefined): amount is number =>
  amount !== undefined && Number.isInteger(amount) && amount >= MIN_PRICE && amount <= INT4_MAX;

/**
 * Digits with separators of thousands and decimals, and a currency's name or sign before or after them: perhaps a
 * price. No two adjacent parts match the same character, or the regular expression would try each way to divide a
 * run of them.
 */
const PRICE_LIKE =
  /^[^\d\p{L}]*(?:\p{L}{1,8}[^\d\p{L}]*)?\d(?:[.,'’\s]*\d)*[^\d\p{L}]*(?:\p{L}{1,8}[^\d\p{L}]*)?$/u;
/** Longer text is not a price in any spelling. */
const MOST_SIGNS = 40;

const isPriceLike = (value: unknown): boolean =>
  typeof value === 'string' && value.length <= MOST_SIGNS && PRICE_LIKE.test(value);

/** Returns whether a scalar is a price, or may be one in a spelling that cannot be read. */
export function mayBePrice(value: unknown): boolean {
  const amount = asNumber(value);
  return amount === undefined ? isPriceLike(value) : isPrice(amount);
}

/** Returns whether a scalar contains a number other than zero, whatever it counts. */
export const saysNumber = (value: unknown): boolean => (asNumber(value) ?? 0) !== 0 || mayBePrice(value);

/** Where entries carry their price: in an object's member `field`, or null if the entry itself is the number. */
export interface EntryForm {
  readonly field: string | null;
  /** No entry of the latest answer had a price in this form. */
  readonly isMissing?: boolean;
  /** Entries still have the field, but their prices are elsewhere: a null in it does not mean "no offer". */
  readonly isEmptied?: boolean;
}

/** Returns the number that an entry has in this form, whatever it counts; undefined if there is none. */
export function readAmount(entry: unknown, { field }: EntryForm): number | undefined {
  if (!isObject(entry)) return field === null ? asNumber(entry) : undefined;
  return field !== null && Object.hasOwn(entry, field) ? asNumber(entry[field]) : undefined;
}

/** Returns whether an entry has this form, with or without a number. */
const isOfForm = (entry: unknown, { field, isEmptied = false }: EntryForm): boolean =>
  isObject(entry)
    ? field !== null && !isEmptied && Object.hasOwn(entry, field)
    : field === null && saysNumber(entry);

const hasPrice = (entries: readonly unknown[], form: EntryForm): boolean =>
  entries.some((entry) => isPrice(readAmount(entry, form)));

/** Returns whether an entry has a price in any of these fields. */
export const hasFieldPrice = (entry: unknown, priceFields: readonly string[]): boolean =>
  isObject(entry) && priceFields.some((field) => isPrice(readAmount(entry, { field })));

/** Records that an answer needs to show that a field is emptied. In fewer records, all sizes may be sold out. */
const EMPTIED_RECORDS = 20;

/**
 * Returns the form of earlier answers and the one beside it, marked `isEmptied` if this answer shows it: no record
 * has a price in the field, and either most have one in another field or the form was missing already.
 */
export function formsHere(
  records: readonly (readonly unknown[])[],
  priceFields: readonly string[],
  held: EntryForm | null,
  also: EntryForm | null,
): { readonly held: EntryForm | null; readonly also: EntryForm | null } {
  const rest = records.filter((entries) => held === null || !entries.some((entry) => isOfForm(entry, held)));
  return { held: formHere(records, priceFields, held), also: formHere(rest, priceFields, also) };
}

function formHere(
  records: readonly (readonly unknown[])[],
  priceFields: readonly string[],
  known: EntryForm | null,
): EntryForm | null {
  const filled = records.filter((entries) => entries.length > 0);
  if (known === null || known.field === null) return known;
  const { field: own } = known;
  // An unreadable value in the field may be a price in another spelling, which no other field then replaces. A few
  // such records do not count.
  const saysSomething = (entry: unknown) =>
    isObject(entry) && Object.hasOwn(entry, own) && !isBlank(entry[own]);
  const isUsed = hasPrice(filled.flat(), known);
  if (isUsed || filled.filter((entries) => entries.some(saysSomething)).length * 10 > filled.length)
    return known;
  const others = priceFields.filter((field) => field !== own);
  const isElsewhere = others.some(
    (field) => filled.filter((entries) => hasPrice(entries, { field })).length * 2 > filled.length,
  );
  const isEmptied = known.isMissing === true || (filled.length >= EMPTIED_RECORDS && isElsewhere);
  return isEmptied ? { ...known, isEmptied } : known;
}

/**
 * Returns the form of the entries of one answer. `priceFields` may hold the price; `known`, the form of earlier
 * answers, counts as long as any entry has it. Otherwise the form in which most entries have a price wins; among
 * equals the first field, and a field before bare numbers. Without any price it is the first field that is present.
 * Null if there is none, or only one that is emptied.
 */
export function formOf(
  entries: readonly unknown[],
  priceFields: readonly string[],
  known: EntryForm | null = null,
): EntryForm | null {
  if (known !== null && entries.some((entry) => isOfForm(entry, known))) return known;
  const forms = [...priceFields, null].map((field) => ({ field }));
  const priced = forms.map((form) => entries.filter((entry) => isPrice(readAmount(entry, form))).length);
  const most = Math.max(...priced);
  if (most > 0) return forms[priced.indexOf(most)] ?? null;
  if (known?.isEmptied === true) return null;
  return forms.find((form) => form.field !== null && entries.some((entry) => isOfForm(entry, form))) ?? null;
}

/**
 * Returns the form in which records without any entry of `form` have prices; null if there are none. One of the two
 * forms is a field and the other bare numbers, because another field beside a field may count something if there is
 * no offer. `known`, the other form of earlier answers, counts as long as any of these entries has it.
 */
export function otherFormOf(
  records: readonly (readonly unknown[])[],
  priceFields: readonly string[],
  form: EntryForm | null,
  known: EntryForm | null = null,
): EntryForm | null {
  if (form === null) return null;
  const rest = records.filter((entries) => !entries.some((entry) => isOfForm(entry, form))).flat();
  const other = formOf(rest, form.field === null ? priceFields : [], known);
  return other !== null && hasPrice(rest, other) ? other : null;
}

/** Returns the form of a record's entries: `also` if some entries have it and none has `form`. */
export function formOfRecord(
  entries: readonly unknown[],
  form: EntryForm | null,
  also: EntryForm | null,
): EntryForm | null {
  const has = (one: EntryForm | null) => one !== null && entries.some((entry) => isOfForm(entry, one));
  return !has(form) && has(also) ? also : form;
}

/** Returns whether a value is what serialisers write for "nothing": null, false, zero, or something empty. */
export function isBlank(value: unknown): boolean {
  if (value === undefined || value === null || value === false || asNumber(value) === 0) return true;
  if (typeof value === 'string') return value.trim() === '';
  return typeof value === 'object' && Object.values(value).every(isBlank);
}

/** Returns whether an entry says that there is no offer: it is blank, or its price is. */
function isWithoutOffer(entry: unknown, form: EntryForm | null): boolean {
  const field = form?.isEmptied === true ? null : (form?.field ?? null);
  return isObject(entry) && field !== null && Object.hasOwn(entry, field)
    ? isBlank(entry[field])
    : isBlank(entry);
}

/**
 * Reads one `size_map` entry (undocumented structure, partner rules 2.4; whole baht, 1.7): a number, numeric text,
 * an object, or anything else. The price must be a whole int4 number of baht and not below the lowest ask, else it
 * is null. The returned entry is null if the given one was nothing but that price. Without a price it is
 * `unreadable`, unless it says that there is no offer.
 */
export function readSizeEntry(entry: unknown, form: EntryForm | null): SizeEntry {
  const amount = form === null ? undefined : readAmount(entry, form);
  if (isPrice(amount)) return { price: amount, entry: typeof entry === 'number' ? null : entry };
  return { price: null, entry, ...(isWithoutOffer(entry, form) ? {} : { unreadable: true }) };
}

/** Documented members of a `size_map` that are not sizes. */
const NOT_SIZES: ReadonlySet<string> = new Set<string>(
  Object.values(METADATA).flatMap(([part, member]) => (part === 'size_map' ? [member] : [])),
);

/** An undocumented member of `size_map` that has stood beside prices as no size does. */
export interface OtherMember {
  readonly name: string;
  /** Records in which it did so; from `ENOUGH` on it is not a size. */
  readonly records: number;
  /** It did so as a number. Such numbers are not prices, from the first record on. */
  readonly isNumber: boolean;
  /** Records with bare prices in which it was an object with a price field; from `ENOUGH` on it is not a size. */
  readonly objects: number;
  /** It has proved to be a size since. Only many records of one answer can show the opposite again. */
  readonly isSize: boolean;
}

export const ENOUGH = 20;

/** Returns names and values of a record's `size_map` as they came, except documented members that are not sizes. */
export function membersOf(record: unknown): (readonly [name: string, value: unknown])[] {
  const sizeMap = isObject(record) ? record['size_map'] : null;
  if (!isObject(sizeMap)) return [];
  return Object.entries(sizeMap).filter(([name]) => !NOT_SIZES.has(name));
}

/** Returns whether a value has a member that may hold a price, filled or not. */
export const hasField = (value: unknown, priceFields: readonly string[]): boolean =>
  isObject(value) && priceFields.some((field) => Object.hasOwn(value, field));

/** Tells the members of records that are not sizes from the others. */
export interface NoSizes {
  /** Returns whether a member is left out. */
  readonly isNone: (name: string, value: unknown) => boolean;
  /** Returns whether its number, or its object's, is not a price, although the member may be a size. */
  readonly isNoPrice: (name: string, value: unknown) => boolean;
}

/** Returns whether all prices are known to be bare numbers. Then a few that stand beside objects are prices too. */
export const isBareAlone = (held: EntryForm | null, also: EntryForm | null): boolean =>
  held !== null && held.field === null && also === null;

/**
 * Creates the test for members that are not sizes, from what is known of them. `prices` tells whether all prices
 * are bare numbers, may be elsewhere, or are unknown yet. Unless the member is known as an object beside bare
 * prices, a value with a price field is always kept, and one that may be a price is kept unless the member is known
 * for its numbers. So a size mistaken for another member loses no price, and its SKU does not appear sold out.
 * Pure.
 */
export function noSizes(
  others: readonly OtherMember[],
  priceFields: readonly string[],
  prices: 'bare' | 'anywhere' | 'unknown' = 'anywhere',
): NoSizes {
  const known = new Map(others.filter(({ isSize }) => !isSize).map((member) => [member.name, member]));
  return {
    isNone: (name, value) => {
      if (NOT_SIZES.has(name)) return true;
      const member = known.get(name);
      if (member !== undefined && member.objects >= ENOUGH) return isObject(value) || !mayBePrice(value);
      if (member === undefined || member.records < ENOUGH || hasField(value, priceFields)) return false;
      return member.isNumber || !mayBePrice(value);
    },
    isNoPrice: (name, value) =>
      isObject(value)
        ? prices !== 'anywhere' && hasField(value, priceFields) && (known.get(name)?.objects ?? 0) > 0
        : prices !== 'bare' && known.get(name)?.isNumber === true,
  };
}

/** Returns the entries of a record's `size_map` that show in which form its prices are. */
export function entriesOf(record: unknown, { isNone, isNoPrice }: NoSizes): unknown[] {
  return membersOf(record).flatMap(([name, value]) =>
    isNone(name, value) || isNoPrice(name, value) ? [] : [value],
  );
}

/** Returns whether a record says nothing apart from its numbers that are not prices. */
export const saysNothingElse = (entries: readonly unknown[]): boolean => entries.every(isBlank);
