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

/** So many are remembered, with names of this length at most. */
const MOST = 60;
const MAX_NAME = 64;

type Member = readonly [name: string, value: unknown];

/** What the answers before this one have shown, and the names that may hold a price. */
export interface FormsKnown {
  readonly priceFields: readonly string[];
  readonly held: EntryForm | null;
  readonly also: EntryForm | null;
}

/** A record beside whose entries others can be told: with a price in a field, or as a number. */
type Kind = 'field' | 'bare';

/** The values of one name in an answer. */
interface Tally {
  /** Records with a price beside it. */
  beside: number;
  /** Values that are as those of sizes, with a price or with none. */
  formed: number;
  /** Values that say something else, in those records; of these what else would be a price, beside objects. */
  others: number;
  besideObjects: number;
}

/** Whether all that is said is an entry with a field, or all are numbers: nearly always, and this is all it costs. */
function isPlain(values: readonly unknown[], priceFields: readonly string[]): boolean {
  const said = values.filter((value) => !isBlank(value));
  return (
    said.every((value) => hasField(value, priceFields)) ||
    said.every((value) => !isObject(value) && mayBePrice(value))
  );
}

/**
 * Names whose numbers are no prices, as they stand beside objects with one: unless these have fewer names than the
 * numbers, and may be a summary of them. Where prices are known to be bare numbers, a few records do not tell.
 */
function numbersBeside(
  records: readonly (readonly Member[])[],
  others: readonly OtherMember[],
  { priceFields, held, also }: FormsKnown,
): ReadonlySet<string> {
  const isPriced = ([, value]: Member) => hasFieldPrice(value, priceFields);
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

function kindOf(
  members: readonly Member[],
  priceFields: readonly string[],
  numbers: ReadonlySet<string>,
): Kind | null {
  const isBare = members.some(([name, value]) => !isObject(value) && mayBePrice(value) && !numbers.has(name));
  if (isBare) return 'bare';
  return members.some(([, value]) => hasFieldPrice(value, priceFields)) ? 'field' : null;
}

function tallyOf(
  records: readonly (readonly Member[])[],
  priceFields: readonly string[],
  numbers: ReadonlySet<string>,
): ReadonlyMap<string, Tally> {
  const tallies = new Map<string, Tally>();
  for (const members of records) {
    const kind = kindOf(members, priceFields, numbers);
    for (const [name, value] of members) {
      const isNumber = !isObject(value) && saysNumber(value);
      // Beside bare numbers it says nothing: it was told beside objects, or was not.
      if (kind === 'bare' && isNumber && numbers.has(name)) continue;
      const tally = tallies.get(name) ?? { beside: 0, formed: 0, others: 0, besideObjects: 0 };
      tallies.set(name, tally);
      if (kind !== null) tally.beside += 1;
      if (hasField(value, priceFields) || (kind === 'bare' && mayBePrice(value))) tally.formed += 1;
      else if (kind !== null && !isBlank(value)) {
        tally.others += 1;
        // A number that is no price, such as -1 where a size is sold out, says nothing of those that are.
        if (isNumber && kind === 'field' && mayBePrice(value)) tally.besideObjects += 1;
      }
    }
  }
  return tallies;
}

/** What is known of a name after an answer; null: nothing. */
function noted(
  name: string,
  before: OtherMember | null,
  { beside, formed, others, besideObjects }: Tally,
): OtherMember | null {
  if (formed > 0) return before === null || before.isSize ? before : { ...before, records: 0, isSize: true };
  const isNone = others > 0 && others >= beside / 2;
  if (before?.isSize === true && !(isNone && others >= ENOUGH)) return before;
  const known = before === null || before.isSize ? { records: 0, isNumber: false } : before;
  const records = Math.min(ENOUGH, known.records + (isNone ? others : 0));
  const isNumber = known.isNumber || besideObjects > 0;
  return records === 0 && !isNumber ? before : { name, records, isNumber, isSize: false };
}

const isSame = (a: OtherMember | undefined, b: OtherMember): boolean =>
  a !== undefined && a.records === b.records && a.isNumber === b.isNumber && a.isSize === b.isSize;

/** The first that are known to be none go last, where there are too many. */
const worth = ({ records, isNumber, isSize }: OtherMember): number =>
  isSize ? -1 : records + (isNumber ? ENOUGH : 0);

/**
 * Takes in what an answer shows of members of `size_map` that are no sizes: those that stand beside prices, say
 * something in most of these records, and never anything as sizes do. Out: what is known then, the same
 * object where nothing has changed. Pure.
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
  const numbers = numbersBeside(all, others, known);
  const tallies = tallyOf(all, priceFields, numbers);
  const byName = new Map(others.map((member) => [member.name, member]));
  const after = new Map(byName);
  for (const [name, tally] of tallies) {
    const note = noted(name, byName.get(name) ?? null, tally);
    if (note !== null && name.length <= MAX_NAME && isReadableSize(name)) after.set(name, note);
  }
  if (after.size === byName.size && [...after.values()].every((note) => isSame(byName.get(note.name), note)))
    return others;
  return [...after.values()].toSorted((a, b) => worth(b) - worth(a)).slice(0, MOST);
}

/** Names of those that are left out in these records. */
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
