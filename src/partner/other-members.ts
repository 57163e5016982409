import { isObject } from '../lib/json.ts';
import {
  ENOUGH,
  hasField,
  isBareAlone,
  membersOf,
  noSizes,
  type OtherMember,
  type EntryForm,
  hasFieldPrice,
  isBlank,
  mayBePrice,
  saysNumber,
} from './size-map.ts';
import { isReadableSize } from './text.ts';

/** At most this many members are remembered, with names of at most `MAX_NAME` characters. */
const MOST = 60;
const MAX_NAME = 64;

type Member = readonly [name: string, value: unknown];

/** What earlier answers have shown. */
export interface FormsKnown {
  readonly priceFields: readonly string[];
  readonly held: EntryForm | null;
  readonly also: EntryForm | null;
}

/** Where a record has its prices: in a field, or as bare numbers. Other members are recognised only beside prices. */
type Kind = 'field' | 'bare';

/** While no form is held, fewer names of bare prices may be counters beside the first objects with a price. */
const LEAST_BARE = 3;

/** How often the values of one name were of each kind in an answer. */
interface Tally {
  /** Records that also contain a price. */
  beside: number;
  /** Values that look like those of sizes, with a price or without. */
  formed: number;
  /** Other values that say something, in those records; `besideObjects`: those like prices, beside objects. */
  others: number;
  besideObjects: number;
  /** Objects with a price field that are not sizes: beside bare prices, and beside other objects with a price. */
  besideBare: number;
  amongObjects: number;
}

const NOTHING_SAID: Tally = {
  beside: 0,
  formed: 0,
  others: 0,
  besideObjects: 0,
  besideBare: 0,
  amongObjects: 0,
};

/**
 * Returns whether all values that say anything are entries with a field, or all are numbers: usually so, and then
 * nothing is left to do.
 */
function isPlain(values: readonly unknown[], priceFields: readonly string[]): boolean {
  const said = values.filter((value) => !isBlank(value));
  return (
    said.every((value) => hasField(value, priceFields)) ||
    said.every((value) => !isObject(value) && mayBePrice(value))
  );
}

/**
 * Returns the names whose numbers are not prices, because they stand beside objects with a price. Finds no new names if
 * these objects have fewer names than the numbers, because the objects may be a summary of them, or if prices are known
 * to be bare numbers and only a few records contain such objects.
 */
function numbersBeside(
  records: readonly (readonly Member[])[],
  others: readonly OtherMember[],
  { priceFields, held, also }: FormsKnown,
  objects: ReadonlySet<string>,
): ReadonlySet<string> {
  const isPriced = ([name, value]: Member) => !objects.has(name) && hasFieldPrice(value, priceFields);
  const ofObjects = records.filter((members) => members.some(isPriced));
  const sizes = new Set(ofObjects.flatMap((members) => members.filter(isPriced).map(([name]) => name)));
  const known = others.filter(({ isNumber, isSize }) => isNumber && !isSize);
  const numbers = new Set(known.map(({ name }) => name));
  const beside = ofObjects
    .flat()
    .filter(([name, value]) => !isObject(value) && mayBePrice(value) && !sizes.has(name));
  const found = new Set(beside.map(([name]) => name).filter((name) => !numbers.has(name)));
  const isTold = found.size <= sizes.size && (!isBareAlone(held, also) || ofObjects.length >= ENOUGH);
  return isTold ? numbers.union(found) : numbers;
}

/**
 * Returns the names whose objects are not sizes although they have a price: they stand beside prices that are bare
 * numbers, and have fewer names than these. Finds no new ones if prices are known to be in a field.
 */
function objectsBeside(
  records: readonly (readonly Member[])[],
  others: readonly OtherMember[],
  { priceFields, held }: FormsKnown,
): ReadonlySet<string> {
  const told = others.filter(({ isSize }) => !isSize);
  const known = new Set(told.filter(({ objects }) => objects > 0).map(({ name }) => name));
  if (held !== null && held.field !== null) return known;
  const numbers = new Set(told.filter(({ isNumber }) => isNumber).map(({ name }) => name));
  const isBare = ([name, value]: Member) => !isObject(value) && mayBePrice(value) && !numbers.has(name);
  const ofBare = records.filter((members) => members.some(isBare));
  const isBeside = ([, value]: Member) => hasFieldPrice(value, priceFields);
  const ofBoth = ofBare.filter((members) => members.some(isBeside)).flat();
  const prices = new Set(ofBoth.filter(isBare).map(([name]) => name));
  const bare = new Set(
    ofBare
      .flat()
      .filter(isBare)
      .map(([name]) => name),
  );
  const found = new Set(ofBoth.filter(isBeside).map(([name]) => name)).difference(bare);
  const isTold = found.size < prices.size && (held !== null || prices.size >= LEAST_BARE);
  return isTold ? known.union(found) : known;
}

/** Names of numbers and of objects that read as prices but are not. */
interface NoPrices {
  readonly numbers: ReadonlySet<string>;
  readonly objects: ReadonlySet<string>;
}

function kindOf(
  members: readonly Member[],
  priceFields: readonly string[],
  { numbers, objects }: NoPrices,
): Kind | null {
  const isBare = members.some(([name, value]) => !isObject(value) && mayBePrice(value) && !numbers.has(name));
  if (isBare) return 'bare';
  const isOfField = members.some(([name, value]) => !objects.has(name) && hasFieldPrice(value, priceFields));
  return isOfField ? 'field' : null;
}

function tallyOf(
  records: readonly (readonly Member[])[],
  priceFields: readonly string[],
  { numbers, objects }: NoPrices,
): ReadonlyMap<string, Tally> {
  const tallies = new Map<string, Tally>();
  for (const members of records) {
    const kind = kindOf(members, priceFields, { numbers, objects });
    for (const [name, value] of members) {
      const isNumber = !isObject(value) && saysNumber(value);
      // Beside bare numbers nothing can be learned about this name.
      if (kind === 'bare' && isNumber && numbers.has(name)) continue;
      const tally = tallies.get(name) ?? { ...NOTHING_SAID };
      tallies.set(name, tally);
      if (objects.has(name) && hasField(value, priceFields)) {
        if (kind === 'bare') tally.besideBare += 1;
        if (kind === 'field') tally.amongObjects += 1;
        continue;
      }
      if (kind !== null) tally.beside += 1;
      if (hasField(value, priceFields) || (kind === 'bare' && mayBePrice(value))) tally.formed += 1;
      else if (kind !== null && !isBlank(value)) {
        tally.others += 1;
        // A number that cannot be a price, such as -1 for a sold-out size, says nothing about those that can.
        if (isNumber && kind === 'field' && mayBePrice(value)) tally.besideObjects += 1;
      }
    }
  }
  return tallies;
}

/** Upper bound of that count, so high that a few answers without bare prices do not make an object a size again. */
const MOST_OBJECTS = 3 * ENOUGH;

/**
 * Returns in how many records a name is known as an object beside bare prices, after an answer. An answer with this
 * name only among objects with a price takes one off, so that sizes that have become objects are sizes again. None
 * is taken off while bare prices are held, because such SKUs may just not have been asked for.
 */
function objectsAfter(
  before: number,
  { besideBare, amongObjects }: Tally,
  { held, also }: FormsKnown,
): number {
  if (besideBare > 0) return Math.min(MOST_OBJECTS, before + besideBare);
  const hasBare = [held, also].some(
    (form) => form !== null && form.field === null && form.isMissing !== true,
  );
  return amongObjects === 0 || hasBare ? before : Math.max(0, before - 1);
}

/** Returns what is known of a name after an answer; null if nothing. */
function noted(
  name: string,
  before: OtherMember | null,
  tally: Tally,
  forms: FormsKnown,
): OtherMember | null {
  const { beside, formed, others, besideObjects, besideBare } = tally;
  if (formed > 0)
    return before === null || before.isSize ? before : { ...before, records: 0, objects: 0, isSize: true };
  const isNone = others > 0 && others >= beside / 2;
  const isMany = (isNone && others >= ENOUGH) || besideBare >= ENOUGH;
  if (before?.isSize === true && !isMany) return before;
  const known = before === null || before.isSize ? { records: 0, isNumber: false, objects: 0 } : before;
  const records = Math.min(ENOUGH, known.records + (isNone ? others : 0));
  const objects = objectsAfter(known.objects, tally, forms);
  const isNumber = known.isNumber || besideObjects > 0;
  const isNothing = records === 0 && !isNumber && objects === 0;
  return isNothing && before === null ? null : { name, records, isNumber, objects, isSize: false };
}

const isSame = (a: OtherMember | undefined, b: OtherMember): boolean =>
  a !== undefined &&
  a.records === b.records &&
  a.isNumber === b.isNumber &&
  a.objects === b.objects &&
  a.isSize === b.isSize;

/** Rank by which members are kept if there are too many: those least certain not to be sizes are dropped first. */
const worth = ({ records, isNumber, objects, isSize }: OtherMember): number =>
  isSize ? -1 : records + objects + (isNumber ? ENOUGH : 0);

/**
 * Learns from an answer which members of `size_map` are not sizes: they stand beside prices, say something in most
 * of these records, and never have a value like those of sizes. Returns what is known then, the same object if
 * nothing has changed. Pure.
 */
export function noteOthers(
  others: readonly OtherMember[],
  records: readonly unknown[],
  known: FormsKnown,
): readonly OtherMember[] {
  const { priceFields } = known;
  const all = records.map(membersOf);
  if (
    others.length === 0 &&
    isPlain(
      all.flatMap((members) => members.map(([, value]) => value)),
      priceFields,
    )
  )
    return others;
  const objects = objectsBeside(all, others, known);
  const numbers = numbersBeside(all, others, known, objects);
  const tallies = tallyOf(all, priceFields, { numbers, objects });
  const byName = new Map(others.map((member) => [member.name, member]));
  const after = new Map(byName);
  for (const [name, tally] of tallies) {
    const note = noted(name, byName.get(name) ?? null, tally, known);
    if (note !== null && name.length <= MAX_NAME && isReadableSize(name)) after.set(name, note);
  }
  if (after.size === byName.size && [...after.values()].every((note) => isSame(byName.get(note.name), note)))
    return others;
  return [...after.values()].toSorted((a, b) => worth(b) - worth(a)).slice(0, MOST);
}

/** Returns the names of the members that are left out of these records. */
export function leftOut(
  records: readonly unknown[],
  others: readonly OtherMember[],
  priceFields: readonly string[],
): readonly string[] {
  if (others.length === 0) return [];
  const { isNone } = noSizes(others, priceFields);
  return [
    ...new Set(records.flatMap(membersOf).flatMap(([name, value]) => (isNone(name, value) ? [name] : []))),
  ];
}
