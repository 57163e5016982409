import { METADATA } from '../declared/metadata.ts';
import { isObject } from '../lib/json.ts';
import { INT4_MAX } from './limits.ts';

/**
 * One size of a SKU. `price` in whole baht; `entry` is the partner's entry as it came, null where it was just that
 * number. `unreadable`: it says something, but no price that can be read.
 */
export interface SizeEntry {
  price: number | null;
  entry: unknown;
  unreadable?: true;
}

/** In text, three digits after a point may be thousands: no more than two are decimals, unless all is zero. */
const NUMERIC = /^-?(?:\d{1,20}(?:\.\d{1,2})?|0{1,20}\.0{1,20})$/;

/** Number of an entry's price as it came, or undefined where the value is neither a number nor numeric text. */
function asNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  return NUMERIC.test(text) ? Number(text) : undefined;
}

/**
 * The partner stores no lower ask (partner rule 8.create-floor): less says that there is no price, whatever it is
 * meant to say.
 */
export const MIN_PRICE = 50;

const isPrice = (amount: number | undefined): amount is number =>
  amount !== undefined && Number.isInteger(amount) && amount >= MIN_PRICE && amount <= INT4_MAX;

/**
 * Digits with what separates thousands and decimals, a currency's word or sign before or behind: a price, perhaps. No
 * two parts side by side take the same sign, because each way to divide a run of signs would be tried.
 */
const PRICE_LIKE =
  /^[^\d\p{L}]*(?:\p{L}{1,8}[^\d\p{L}]*)?\d(?:[.,'’\s]*\d)*[^\d\p{L}]*(?:\p{L}{1,8}[^\d\p{L}]*)?$/u;
/** A longer text is no price in any spelling. */
const MOST_SIGNS = 40;

const isPriceLike = (value: unknown): boolean =>
  typeof value === 'string' && value.length <= MOST_SIGNS && PRICE_LIKE.test(value);

/** Whether a value without members is a price, or may be one in a spelling that cannot be read. */
export function mayBePrice(value: unknown): boolean {
  const amount = asNumber(value);
  return amount === undefined ? isPriceLike(value) : isPrice(amount);
}

/** Whether a value without members says a number, whatever it counts. */
export const saysNumber = (value: unknown): boolean => (asNumber(value) ?? 0) !== 0 || mayBePrice(value);

/** Where entries carry their price: an object's member `field`, or null where the entry itself is the number. */
export interface EntryForm {
  readonly field: string | null;
  /** No entry of the last answers had a price in it any longer. */
  readonly isMissing?: boolean;
  /** Entries still have it, but their prices are elsewhere: that it is null says nothing of an offer. */
  readonly isEmptied?: boolean;
}

/** The number that an entry has in this form, whatever it counts; undefined where there is none. */
export function readAmount(entry: unknown, { field }: EntryForm): number | undefined {
  if (!isObject(entry)) return field === null ? asNumber(entry) : undefined;
  return field !== null && Object.hasOwn(entry, field) ? asNumber(entry[field]) : undefined;
}

/** Whether an entry is of this form, with a number or without. */
const isOfForm = (entry: unknown, { field, isEmptied = false }: EntryForm): boolean =>
  isObject(entry)
    ? field !== null && !isEmptied && Object.hasOwn(entry, field)
    : field === null && saysNumber(entry);

const hasPrice = (entries: readonly unknown[], form: EntryForm): boolean =>
  entries.some((entry) => isPrice(readAmount(entry, form)));

/** Whether an entry has a price in any of these fields. */
export const hasFieldPrice = (entry: unknown, priceFields: readonly string[]): boolean =>
  isObject(entry) && priceFields.some((field) => isPrice(readAmount(entry, { field })));

/** An answer of at least this many records can show that a field is emptied; in fewer, all sizes may be sold. */
const EMPTIED_RECORDS = 20;

/**
 * The form of earlier answers, and the one beside it, marked `isEmptied` if this answer shows it: no record has a price
 * in the field, and most have one in another field or the form was missing already.
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
  // An unreadable value there may be a price in another spelling, unless few records have one: no other field stands
  // for it.
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
 * The form that the entries of one answer have. In: the entries, the fields that may hold the price, and the form of
 * earlier answers (`known`), which counts while any entry has it. Otherwise it is the form in which most entries have a
 * price; of several such fields the first, and a field rather than bare numbers; without any price, the first field
 * that is there. Null if there is none, or only one that is emptied.
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
 * The form in which records without any entry of `form` have prices; null: there are none. One of the two forms is a
 * field and the other bare numbers, because beside a field another field may count something if there is no offer.
 * `known`, the other form of earlier answers, counts while any of these entries has it.
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

/** The form of a record's entries: `also` where some have that and none has `form`. */
export function formOfRecord(
  entries: readonly unknown[],
  form: EntryForm | null,
  also: EntryForm | null,
): EntryForm | null {
  const has = (one: EntryForm | null) => one !== null && entries.some((entry) => isOfForm(entry, one));
  return !has(form) && has(also) ? also : form;
}

/** What serialisers write where there is nothing: null, zero, and what is empty. */
export function isBlank(value: unknown): boolean {
  if (value === undefined || value === null || value === false || asNumber(value) === 0) return true;
  if (typeof value === 'string') return value.trim() === '';
  return typeof value === 'object' && Object.values(value).every(isBlank);
}

/** Whether an entry says that there is no offer: it is blank, or its price is. */
function isWithoutOffer(entry: unknown, form: EntryForm | null): boolean {
  const field = form?.isEmptied === true ? null : (form?.field ?? null);
  return isObject(entry) && field !== null && Object.hasOwn(entry, field)
    ? isBlank(entry[field])
    : isBlank(entry);
}

/**
 * Price of one `size_map` entry (undocumented structure, partner rules 2.4; whole baht, 1.7). In: the entry as it
 * came (number, numeric text, object, anything), and the form of entries. Out: the price where it is a whole int4
 * number of baht and no lower than the lowest ask, else null; and the entry, null where it was nothing but that
 * price. Without a price it is `unreadable`, unless it says that there is no offer.
 */
export function readSizeEntry(entry: unknown, form: EntryForm | null): SizeEntry {
  const amount = form === null ? undefined : readAmount(entry, form);
  if (isPrice(amount)) return { price: amount, entry: typeof entry === 'number' ? null : entry };
  return { price: null, entry, ...(isWithoutOffer(entry, form) ? {} : { unreadable: true }) };
}

/** Members of a `size_map` that are documented, and are no sizes. */
const NOT_SIZES: ReadonlySet<string> = new Set<string>(
  Object.values(METADATA).flatMap(([part, member]) => (part === 'size_map' ? [member] : [])),
);

/** A member of `size_map` that is not documented, and has stood beside prices as no size does. */
export interface OtherMember {
  readonly name: string;
  /** Records in which it has: from `ENOUGH` on it is no size. */
  readonly records: number;
  /** As a number: that is no price, from the first record on. */
  readonly isNumber: boolean;
  /** Records with bare prices beside which it is an object with a price field: from `ENOUGH` on it is no size. */
  readonly objects: number;
  /** It has been a size since; only many records of one answer show it to be none after all. */
  readonly isSize: boolean;
}

export const ENOUGH = 20;

/** Names and values of a record's `size_map` as they came, without those that are documented to be no sizes. */
export function membersOf(record: unknown): (readonly [name: string, value: unknown])[] {
  const sizeMap = isObject(record) ? record['size_map'] : null;
  if (!isObject(sizeMap)) return [];
  return Object.entries(sizeMap).filter(([name]) => !NOT_SIZES.has(name));
}

/** Whether a value has a member that may hold a price, with or without one in it. */
export const hasField = (value: unknown, priceFields: readonly string[]): boolean =>
  isObject(value) && priceFields.some((field) => Object.hasOwn(value, field));

/** What is no size in records, as it is known of their members. */
export interface NoSizes {
  /** Whether a member is left out. */
  readonly isNone: (name: string, value: unknown) => boolean;
  /** Whether it has a number, or an object with one, that is no price, though it may be a size. */
  readonly isNoPrice: (name: string, value: unknown) => boolean;
}

/** Whether all prices are known to be bare numbers: then a few that stand beside objects are prices, too. */
export const isBareAlone = (held: EntryForm | null, also: EntryForm | null): boolean =>
  held !== null && held.field === null && also === null;

/**
 * Tells which members are no sizes, by what is known of them. `prices`: that all are bare numbers, that they may
 * be elsewhere, or nothing yet. A value with a price field is always kept, and one that may be a price unless the
 * member is known for its numbers: a name mistaken for no size costs no price, and lets no SKU sell out. Pure.
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

/** Entries of a record's `size_map` by which it can be told in which form its prices are. */
export function entriesOf(record: unknown, { isNone, isNoPrice }: NoSizes): unknown[] {
  return membersOf(record).flatMap(([name, value]) =>
    isNone(name, value) || isNoPrice(name, value) ? [] : [value],
  );
}

/** Whether nothing in a record says anything but its numbers that are no prices. */
export const saysNothingElse = (entries: readonly unknown[]): boolean => entries.every(isBlank);
