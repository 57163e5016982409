import { METADATA } from '../declared/metadata.ts';
import { isObject } from '../lib/json.ts';
import { type EntryForm, readAmount, readSizeEntry } from './size-map.ts';

/** Members of a `size_map` that are documented, and are no sizes. */
export const NOT_SIZES: ReadonlySet<string> = new Set<string>(
  Object.values(METADATA).flatMap(([part, member]) => (part === 'size_map' ? [member] : [])),
);

/** Of so many records a size has a price in some. */
const LEAST_RECORDS = 20;
const NEARLY_ALL = 0.9;

const sizeMapOf = (record: unknown): Readonly<Record<string, unknown>> => {
  const sizeMap = isObject(record) ? record['size_map'] : null;
  return isObject(sizeMap) ? sizeMap : {};
};

/** Entries of a record's `size_map`, as they came, without those of `notSizes`. */
export function entriesOf(record: unknown, notSizes = NOT_SIZES): unknown[] {
  return Object.entries(sizeMapOf(record)).flatMap(([size, entry]) => (notSizes.has(size) ? [] : [entry]));
}

/** Whether an entry says something, and as none of this form does: as a word, or as text or number beside objects. */
function isOther(entry: unknown, form: EntryForm): boolean {
  if (typeof entry === 'object') return false;
  if (form.field === null && (typeof entry !== 'string' || /\d/.test(entry))) return false;
  return readSizeEntry(entry, form).unreadable === true;
}

/** Whether a value says nothing, neither as a size nor as anything else. */
const isSilent = (value: unknown, form: EntryForm): boolean =>
  (typeof value !== 'object' || value === null) &&
  readAmount(value, form) === undefined &&
  readSizeEntry(value, form).unreadable !== true;

/**
 * Members of `size_map` that are no sizes, beside those that are documented: they are in nearly all of many records of
 * an answer, say something in most of them, and never anything in the form of entries, which most of these records
 * have beside them. `entries`: those of all records. Pure.
 */
export function foundNoSizes(
  records: readonly (readonly [sku: string, record: unknown])[],
  entries: readonly unknown[],
  form: EntryForm | null,
): readonly string[] {
  // Nearly always there is none: this is all that it may cost then.
  if (form === null || records.length < LEAST_RECORDS) return [];
  if (!entries.some((entry) => isOther(entry, form))) return [];
  const members = records
    .map(([, record]) => Object.entries(sizeMapOf(record)))
    .filter((all) => all.length > 0);
  const ofForm = members.filter((all) => all.some(([, entry]) => readAmount(entry, form) !== undefined));
  if (members.length < LEAST_RECORDS || ofForm.length < members.length / 2) return [];
  const byName = new Map<string, unknown[]>();
  for (const [name, value] of members.flat()) {
    const values = byName.get(name);
    if (values === undefined) byName.set(name, [value]);
    else values.push(value);
  }
  return [...byName].flatMap(([name, values]) => {
    const others = values.filter((value) => isOther(value, form)).length;
    const silent = values.filter((value) => isSilent(value, form)).length;
    const isNone = values.length >= NEARLY_ALL * members.length && others >= values.length / 2;
    return isNone && others + silent === values.length && !NOT_SIZES.has(name) ? [name] : [];
  });
}
