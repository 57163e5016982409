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
 * What the shape of an answer reveals about names that the partner does not document (partner rules 2.4.open,
 * 2.5.open). Pure: takes bodies as the partner sent them, and returns field names, never a value.
 */

const LISTS = ['not_found', 'deferred', 'errors'] as const;

/** Common names of such a list; the configured one is put before them. */
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

/** Returns a SKU that no catalog has. Its place in the answer shows which name was read, and how lists are spelled. */
export const unknownSku = (index: number): string => `catalog-mirror-doctor-${index}`;

/**
 * Builds the body that asks under many names at once. Unknown top-level keys are ignored (partner rules 4.1), and each
 * name has a SKU of its own, so the answer shows which one was read. The configured name has the sample.
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

/** Collects every string in a part of an answer, whether value or key. */
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

/** Returns the names whose SKUs occur in a bulk answer, in the order in which they were sent. */
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

/** What the refusal of a body says about names: those that it asks for, and those that it does not want. */
export interface NamesRefused {
  readonly wanted: readonly string[];
  readonly unwanted: readonly string[];
}

/** Reads the message of a 400 (partner rules 7.2), or a list of messages. */
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

/** How the elements of lists contain their SKU: as text, in a member, or unclear (neither text nor objects). */
export interface ElementShape {
  readonly kind: 'text' | 'object' | 'unclear';
  /** The member that contains the SKU; null if elements are text, or if it cannot be determined. */
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

/** Returns how `not_found`, `deferred` and `errors` of a bulk answer spell their SKUs; `asked` are the SKUs sent. */
export function bulkElements(body: unknown, asked: ReadonlySet<string>): ElementShape | null {
  return elementShape(listed(body, LISTS), asked);
}

/** Returns how a delta's lists spell `known` SKUs, or null if none is listed. */
export function deltaElements(body: unknown, known: ReadonlySet<string>): ElementShape | null {
  return elementShape(listed(body, DELTA_LISTS), known);
}

/** One `size_map` entry, with the SKU that it belongs to. */
export interface SeenEntry {
  readonly sku: string;
  readonly entry: unknown;
}

/** Returns every `size_map` entry of a bulk answer's records. */
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
  /** Entries that the configured names can read (a bare number needs no name). */
  readonly read: number;
  /** Names to configure, in order; empty if entries are bare numbers; null if they cannot be determined. */
  readonly fields: readonly string[] | null;
  readonly candidates: readonly string[];
  /** Set if the configured names read something that is hardly a price. */
  readonly doubtful: boolean;
  /** SKUs whose price is in a field, and SKUs with bare numbers. */
  readonly skus: { readonly named: number; readonly plain: number };
}

/** The forms in which the entries of all answers are read. */
export interface FormsSeen {
  readonly form: EntryForm | null;
  /** The form of records without any entry of `form`; null: there are none. */
  readonly other: EntryForm | null;
  /** The form that the mirror holds; null: none. */
  readonly held: EntryForm | null;
  /** Whether entries have the form that the mirror holds. */
  readonly isHeld: boolean;
  /** Whether the mirror already reads the other form, rather than only after further answers. */
  readonly readsOther: boolean;
}

/** Groups the entries with any content by SKU. */
const recordsOf = (seen: readonly SeenEntry[]): unknown[][] =>
  [...Map.groupBy(seen, ({ sku }) => sku).values()].map((entries) =>
    entries.flatMap(({ entry }) => (entry === null ? [] : [entry])),
  );

/** Returns the forms by which the mirror reads these entries, or would after a few such answers. Pure. */
export function formsIn(
  seen: readonly SeenEntry[],
  configured: readonly string[],
  held: EntryForm | null = null,
  also: EntryForm | null = null,
): FormsSeen {
  const records = recordsOf(seen);
  const found = formOf(records.flat(), configured, held);
  // Answers that have only the other form do not change the form.
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
 * Returns where the entries have their price, and whether the configured names, or the forms that the mirror holds,
 * find it. Returns null if no entry has any content.
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
  // A number lower than any ask is a count or a rank.
  const isDear = (name: string) => amounts(name).some((amount) => amount >= MIN_PRICE);
  const names = [...new Set(objects.flatMap((object) => Object.keys(object)))];
  const numeric = names.filter((name) => amounts(name).length > 0);
  const likely = numeric.filter((name) => isDear(name) && !NOT_PRICE_WORDS.test(name));
  const worded = likely.filter((name) => PRICE_WORDS.test(name));
  const [only] = [worded, likely, numeric.filter(isDear)].find((tier) => tier.length === 1) ?? [];
  // The held name first: whoever pins the names in this order keeps the prices as they are read now.
  const inOrder = configured.toSorted((a, b) => Number(b === held?.field) - Number(a === held?.field));
  const used = inOrder.filter((name) => numeric.includes(name));
  // A price that is null where others have one means that the size has no offer at the moment.
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

/** Counts the entries with a price, reading each record by its own form, and the SKUs with theirs in a field or not. */
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
