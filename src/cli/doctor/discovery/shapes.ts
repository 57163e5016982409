import { isObject } from '../../../lib/json.ts';
import { DELTA_LISTS } from '../../../partner/delta-answer.ts';
import {
  type EntryForm,
  formOf,
  formOfRecord,
  MIN_PRICE,
  otherFormOf,
  readAmount,
  readSizeEntry,
} from '../../../partner/size-map.ts';

/*
 * What the shape of an answer shows of the names that the partner does not document (partner rules 2.4.open, 2.5.open).
 * Pure: bodies come in as the partner sent them, field names go out, and never a value.
 */

const LISTS = ['not_found', 'deferred', 'errors'] as const;

/** Common names of such a list; the configured one comes before them. */
const BODY_KEYS = [
  'skus',
  'sku',
  'items',
  'sku_list',
  'skuList',
  'list',
  'products',
  'product_skus',
  'productSkus',
  'ids',
  'sku_ids',
  'skuIds',
  'product_ids',
  'productIds',
  'codes',
  'sku_codes',
  'skuCodes',
  'product_codes',
  'styles',
  'style_ids',
  'styleIds',
  'models',
  'keys',
  'values',
  'data',
  'query',
];

/**
 * A SKU that no catalog has: the place where the answer names it shows which name was read, and how lists are spelled.
 */
export const unknownSku = (index: number): string => `catalog-mirror-doctor-${index}`;

/**
 * The body that asks under many names at once: unknown top-level keys are ignored (partner rules 4.1), and each name
 * carries a SKU of its own, so that the answer tells which one was read. The configured name carries the sample.
 */
export function manyNames(
  configured: string,
  sample: readonly string[],
  more: readonly string[],
): Map<string, readonly string[]> {
  const names = [...new Set([configured, ...BODY_KEYS])];
  return new Map(
    names.map((name, i) => {
      const own = i === 0 ? sample : more.slice(2 * i - 2, 2 * i);
      return [name, [...own, unknownSku(i)]];
    }),
  );
}

/** Every string in a part of an answer, as a value or a key. */
function textsIn(value: unknown, found: Set<string>): void {
  if (typeof value === 'string') found.add(value);
  else if (Array.isArray(value)) for (const item of value) textsIn(item, found);
  else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      found.add(key);
      textsIn(item, found);
    }
  }
}

/** The names whose SKUs occur in a bulk answer, in the order in which they were sent. */
export function namesRead(sent: ReadonlyMap<string, readonly string[]>, body: unknown): string[] {
  if (!isObject(body)) return [];
  const texts = new Set(isObject(body['results']) ? Object.keys(body['results']) : []);
  for (const list of LISTS) textsIn(body[list], texts);
  return [...sent].filter(([, skus]) => skus.some((sku) => texts.has(sku))).map(([name]) => name);
}

const NAME = /^[A-Za-z_][\w.-]{0,63}$/;
const NOT_A_NAME = new Set(
  (
    'a an the body request value values each this that it field fields property key parameter message error ' +
    'validation at of invalid missing required is'
  ).split(' '),
);
const UNWANTED = /(?:property )?["'`]?([\w.-]+)["'`]? (?:should not exist|is not allowed)/g;
const WANTED = [
  /each value in ["'`]?([\w.-]+)/g,
  /required (?:property|field|key|parameter):? ["'`]?([\w.-]+)/g,
  /(?:missing|expected|needs?|requires?) (?:an? |the )?(?:array |list )?(?:field|key|property|parameter):? ["'`]?([\w.-]+)/g,
  /["'`]?([\w.-]+)["'`]? (?:must|should|is required|is missing|cannot be|may not be|has to|needs to)/g,
];

/** What a refusal of a body says of names: those it asks for, and those that it does not want. */
export interface NamesRefused {
  readonly wanted: readonly string[];
  readonly unwanted: readonly string[];
}

/** Reads the message of a 400 (partner rules 7.2), or the messages of a list of them. */
export function namesRefused(body: unknown): NamesRefused {
  const texts = new Set<string>();
  textsIn(body, texts);
  const wanted = new Set<string>();
  const unwanted = new Set<string>();
  const add = (to: Set<string>, pattern: RegExp, text: string) => {
    for (const [, name = ''] of text.matchAll(pattern))
      if (NAME.test(name) && !NOT_A_NAME.has(name.toLowerCase())) to.add(name);
  };
  for (const text of texts) {
    if (text.length > 2000) continue;
    add(unwanted, UNWANTED, text);
    for (const pattern of WANTED) add(wanted, pattern, text.replaceAll(UNWANTED, ''));
  }
  return { wanted: [...wanted].filter((name) => !unwanted.has(name)), unwanted: [...unwanted] };
}

/**
 * How the elements of lists carry their SKU: as themselves, in a member, or both ways; null where no element was seen.
 */
export interface ElementShape {
  readonly kind: 'text' | 'object' | 'unclear';
  /** Member that carries the SKU; null where elements are text, or where it cannot be told. */
  readonly field: string | null;
  readonly members: readonly string[];
}

function elementShape(elements: readonly unknown[], known: ReadonlySet<string>): ElementShape | null {
  const objects = elements.filter(isObject);
  if (elements.length === 0) return null;
  if (objects.length === 0)
    return {
      kind: elements.every((e) => typeof e === 'string') ? 'text' : 'unclear',
      field: null,
      members: [],
    };
  const members = [...new Set(objects.flatMap((object) => Object.keys(object)))];
  const times = (name: string, fits: (value: unknown) => boolean) =>
    objects.filter((object) => Object.hasOwn(object, name) && fits(object[name])).length;
  const byValue = members.filter((name) => times(name, (v) => typeof v === 'string' && known.has(v)) > 0);
  const texts = members.filter((name) => times(name, (v) => typeof v === 'string') === objects.length);
  const byName = texts.filter((name) => /sku/i.test(name));
  const [field] = [byValue, byName, texts].find((names) => names.length === 1) ?? [];
  return { kind: 'object', field: field ?? null, members };
}

const listed = (body: unknown, names: readonly string[]): unknown[] =>
  isObject(body)
    ? names.flatMap((name) => {
        const list: unknown = body[name];
        return Array.isArray(list) ? (list as unknown[]) : [];
      })
    : [];

/** How a bulk answer's `not_found`, `deferred` and `errors` spell their SKUs; `asked` are the SKUs that were sent. */
export function bulkElements(body: unknown, asked: ReadonlySet<string>): ElementShape | null {
  return elementShape(listed(body, LISTS), asked);
}

/** The form in which a delta's lists spell `known` SKUs; null where none is listed. */
export function deltaElements(body: unknown, known: ReadonlySet<string>): ElementShape | null {
  return elementShape(listed(body, DELTA_LISTS), known);
}

/** One `size_map` entry, with the SKU that it belongs to. */
export interface SeenEntry {
  readonly sku: string;
  readonly entry: unknown;
}

/** Every `size_map` entry of a bulk answer's records. */
export function entriesIn(body: unknown): SeenEntry[] {
  const results = isObject(body) && isObject(body['results']) ? body['results'] : {};
  return Object.entries(results).flatMap(([sku, record]) => {
    const sizes = isObject(record) && isObject(record['size_map']) ? record['size_map'] : {};
    return Object.entries(sizes)
      .filter(([size]) => size !== 'size_type')
      .map(([, entry]) => ({ sku, entry }));
  });
}

export interface PriceShape {
  readonly entries: number;
  /** Entries that the configured names read (a bare number is read without a name). */
  readonly read: number;
  /** Names to configure, in order; empty where entries are bare numbers; null where it cannot be told. */
  readonly fields: readonly string[] | null;
  readonly candidates: readonly string[];
  /** Set where the configured names read something that is hardly a price. */
  readonly doubtful: boolean;
  /** SKUs whose price is read from a field, and from bare numbers. */
  readonly skus: { readonly named: number; readonly plain: number };
}

/** The forms by which the entries of all answers are read. */
export interface FormsSeen {
  readonly form: EntryForm | null;
  /** That of records without any entry of it; null: there are none. */
  readonly other: EntryForm | null;
  /** The form that the mirror holds; null: none. */
  readonly held: EntryForm | null;
  /** Whether entries have what the mirror holds. */
  readonly isHeld: boolean;
  /** Whether it reads the other form already, and not only after further answers. */
  readonly readsOther: boolean;
}

/** The records' entries that have any content, by SKU. */
const recordsOf = (seen: readonly SeenEntry[]): unknown[][] =>
  [...Map.groupBy(seen, ({ sku }) => sku).values()].map((entries) =>
    entries.flatMap(({ entry }) => (entry === null ? [] : [entry])),
  );

/** By which forms the mirror reads these entries, or would after a few such answers. Pure. */
export function formsIn(
  seen: readonly SeenEntry[],
  configured: readonly string[],
  held: EntryForm | null = null,
  also: EntryForm | null = null,
): FormsSeen {
  const records = recordsOf(seen);
  const found = formOf(records.flat(), configured, held);
  // Answers that have the other form alone are no change of form.
  const isOther = found !== null && also !== null && found.field === also.field;
  const isHeld = held !== null && (found === held || isOther);
  const form = isHeld ? held : found;
  const readsOther = isHeld && also !== null;
  return {
    form,
    other: readsOther ? also : otherFormOf(records, configured, form),
    held,
    isHeld,
    readsOther,
  };
}

const PRICE_WORDS = /price|lowest|ask|amount|baht|thb|cost|value/i;
const NOT_PRICE_WORDS =
  /count|qty|quantity|stock|listing|size|rank|id$|_at$|time|date|rate|percent|fee|number|age|total_?items/i;

/**
 * Where the entries carry their price, and whether the configured names find it, or the forms that the mirror holds;
 * null where no entry has any content.
 */
export function priceShape(
  seen: readonly SeenEntry[],
  configured: readonly string[],
  forms: FormsSeen = formsIn(seen, configured),
): PriceShape | null {
  const all = seen.map(({ entry }) => entry).filter((entry) => entry !== null);
  const objects = all.filter(isObject);
  const { held } = forms;
  const amounts = (name: string) =>
    objects.map((object) => readAmount(object, { field: name })).filter((amount) => amount !== undefined);
  // What is lower than any ask is a count or a rank.
  const isDear = (name: string) => amounts(name).some((amount) => amount >= MIN_PRICE);
  const names = [...new Set(objects.flatMap((object) => Object.keys(object)))];
  const numeric = names.filter((name) => amounts(name).length > 0);
  const likely = numeric.filter((name) => isDear(name) && !NOT_PRICE_WORDS.test(name));
  const worded = likely.filter((name) => PRICE_WORDS.test(name));
  const [only] = [worded, likely, numeric.filter(isDear)].find((tier) => tier.length === 1) ?? [];
  // The one that is held first: whoever pins the names in this order has prices read as they are now.
  const inOrder = configured.toSorted((a, b) => Number(b === held?.field) - Number(a === held?.field));
  const used = inOrder.filter((name) => numeric.includes(name));
  // A price that is null where others have one: the size has no offer at the moment.
  const isBlank = (entry: unknown) =>
    isObject(entry) && [...used, ...(only === undefined ? [] : [only])].some((name) => entry[name] === null);
  const entries = all.filter((entry) => !isBlank(entry));
  if (entries.length === 0) return null;
  const { read, ...skus } = readBy(forms, seen);
  const doubtful = used.length > 0 && !used.some(isDear) && likely.length > 0;
  const shape = { entries: entries.length, read, candidates: numeric, doubtful, skus };
  if (objects.length === 0) return { ...shape, fields: read > 0 ? [] : null };
  if (read > 0 && !doubtful) return { ...shape, fields: used };
  return { ...shape, fields: only === undefined ? null : [only] };
}

/** Entries that have a price, each record read by its own form, and how many SKUs have theirs in a field and not. */
function readBy(
  { form, other }: FormsSeen,
  seen: readonly SeenEntry[],
): PriceShape['skus'] & { read: number } {
  const prices = recordsOf(seen).map((entries) => {
    const own = formOfRecord(entries, form, other);
    return {
      field: own?.field,
      read: entries.filter((entry) => readSizeEntry(entry, own).price !== null).length,
    };
  });
  const priced = prices.filter(({ read }) => read > 0);
  const plain = priced.filter(({ field }) => field === null).length;
  return { read: prices.reduce((sum, { read }) => sum + read, 0), named: priced.length - plain, plain };
}
