import { METADATA } from '../declared/metadata.ts';
import { isObject } from '../lib/json.ts';
import { type EntryForm, isBlank, mayBePrice } from './size-map.ts';

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
  /** Whether it has a number that is no price, though it may be a size. */
  readonly isNoPrice: (name: string, value: unknown) => boolean;
}

/** Whether all prices are known to be bare numbers: then a few that stand beside objects are prices, too. */
export const isBareAlone = (held: EntryForm | null, also: EntryForm | null): boolean =>
  held !== null && held.field === null && also === null;

/**
 * What is no size by these members, `ofBare` where all prices are bare numbers. Whatever its name is, what may be a
 * price is left in: a name that was taken for none by mistake costs no price, and lets no SKU sell out. Pure.
 */
export function noSizes(
  others: readonly OtherMember[],
  priceFields: readonly string[],
  ofBare = false,
): NoSizes {
  const known = new Map(others.filter(({ isSize }) => !isSize).map((member) => [member.name, member]));
  return {
    isNone: (name, value) => {
      if (NOT_SIZES.has(name)) return true;
      const member = known.get(name);
      if (member === undefined || member.records < ENOUGH || hasField(value, priceFields)) return false;
      return member.isNumber || !mayBePrice(value);
    },
    isNoPrice: (name, value) => !ofBare && !isObject(value) && known.get(name)?.isNumber === true,
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
