import type { SizeEntry } from './answers.ts';
import { isObject } from './text.ts';

const INT4_MAX = 2_147_483_647;

/** Number of an entry's price as it came, or undefined where the value is neither a number nor numeric text. */
function asNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  return /^-?\d{1,20}(\.\d{1,20})?$/.test(text) ? Number(text) : undefined;
}

/**
 * The partner stores no lower ask (partner rule 8.create-floor): less says that there is no price, whatever it is
 * meant to say.
 */
export const MIN_PRICE = 50;

/**
 * The number in a `size_map` entry, whatever it counts: the entry itself, or the first of the fields that is there as
 * one.
 */
export function readAmount(entry: unknown, priceFields: readonly string[]): number | undefined {
  if (!isObject(entry)) return asNumber(entry);
  const field = priceFields.find((name) => Object.hasOwn(entry, name) && asNumber(entry[name]) !== undefined);
  return field === undefined ? undefined : asNumber(entry[field]);
}

/** What serialisers write where there is nothing: null, zero, and what is empty. */
function isBlank(value: unknown): boolean {
  if (value === undefined || value === null || value === false || asNumber(value) === 0) return true;
  if (typeof value === 'string') return value.trim() === '';
  return typeof value === 'object' && Object.values(value).every(isBlank);
}

/** Whether an entry says that there is no offer: it is blank, or what it has of the price fields is. */
function isWithoutOffer(entry: unknown, priceFields: readonly string[]): boolean {
  if (!isObject(entry)) return isBlank(entry);
  const values = priceFields.filter((name) => Object.hasOwn(entry, name)).map((name) => entry[name]);
  return values.length > 0 ? values.every(isBlank) : isBlank(entry);
}

/**
 * Price of one `size_map` entry (undocumented structure, partner rules 2.4; whole baht, 1.7).
 * In: the entry as it came (number, numeric text, object, anything). Out: the price where it is a whole int4 number of
 * baht and no lower than the lowest ask, else null; and the entry, null where it was nothing but that price. Without a
 * price it is `unreadable`, unless it says that there is no offer.
 */
export function readSizeEntry(entry: unknown, priceFields: readonly string[]): SizeEntry {
  const amount = readAmount(entry, priceFields);
  const isPrice =
    amount !== undefined && Number.isInteger(amount) && amount >= MIN_PRICE && amount <= INT4_MAX;
  if (isPrice) return { price: amount, entry: typeof entry === 'number' ? null : entry };
  return { price: null, entry, ...(isWithoutOffer(entry, priceFields) ? {} : { unreadable: true }) };
}
