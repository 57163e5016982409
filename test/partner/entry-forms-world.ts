import { expect } from 'vitest';
import type { LowestRecord, UnreadableRecord } from '../../src/partner/answers.ts';
import { readBulk } from '../../src/partner/bulk-answer.ts';
import { EntryForms, heldForm } from '../../src/partner/entry-forms.ts';
import type { EntryForm } from '../../src/partner/size-map.ts';
import { keptForAll } from './kept-forms.ts';

/*
 * A partner that has its price in one field of an entry, or in the entry itself. Its entries gain and lose other
 * members, are sold out, are left empty or come in another form. Two processes with a shared memory read it and
 * are restarted. Every number shows which member it belongs to.
 */
export const FIELDS = ['price', 'lowest_price', 'lowest_ask', 'amount'] as const;
export type Field = (typeof FIELDS)[number] | null;
export const FORMS: readonly Field[] = [...FIELDS, null];
const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

const memberOf = (price: number): Field => FORMS[Math.floor(price / 100_000) - 1] ?? null;

/** offered: with a price; sold: null or 0 in its place; bare: without the field; odd: nothing that is a price. */
export const KINDS = ['offered', 'offered', 'offered', 'sold', 'zero', 'empty', 'lacking', 'odd'] as const;
type Kind = (typeof KINDS)[number];

export type Step =
  | {
      readonly does: 'answer';
      readonly by: number;
      readonly entries: readonly Kind[];
      /** Records that are the same. */
      readonly records: number;
    }
  | { readonly does: 'member'; readonly field: (typeof FIELDS)[number] }
  /** `keeps`: entries have null in the field that held the price so far. */
  | { readonly does: 'renames'; readonly to: Field; readonly keeps: boolean }
  | { readonly does: 'restart'; readonly which: number }
  | { readonly does: 'time'; readonly minutes: number };

/** Returns what an entry contains in a form: a price, something else, or nothing on offer. */
function saysIn(entry: unknown, { field }: EntryForm): 'price' | 'nothing' | 'other' {
  const isObject = typeof entry === 'object' && entry !== null;
  const isThere = isObject ? field !== null && Object.hasOwn(entry, field) : field === null;
  const value: unknown = isThere && isObject ? (entry as Record<string, unknown>)[field ?? ''] : entry;
  if (isThere && typeof value === 'number' && value > 0) return 'price';
  const values = typeof value === 'object' && value !== null ? Object.values(value) : [value];
  return values.every((one) => one === null || one === 0) ? 'nothing' : 'other';
}

const NOWHERE: EntryForm = { field: 'no field' };

/** Decides whether any entry has the field at all, or is a bare value. */
const has = (entries: readonly unknown[], { field }: EntryForm): boolean =>
  entries.some((entry) =>
    typeof entry === 'object' && entry !== null
      ? field !== null && Object.hasOwn(entry, field)
      : field === null && entry !== null && entry !== 0,
  );

export class World {
  now = 0;
  field: Field;
  readonly #members = new Set<string>();
  readonly #emptied = new Set<string>();
  readonly #kept = keptForAll();
  #numbers = 0;
  /** When an answer last had the held form. */
  #had = 0;
  readonly #processes = [0, 1].map(() => this.#start());

  constructor(field: Field) {
    this.field = field;
  }

  #start() {
    const keeper = this.#kept.reader();
    return { keeper, forms: new EntryForms(FIELDS, () => this.now, keeper) };
  }

  get held(): EntryForm | null {
    return heldForm(this.#kept.memory, FIELDS);
  }

  /** Takes a step. Returns the answer if there is one. */
  async step(step: Step): Promise<Answered | null> {
    if (step.does === 'answer') return await this.answer(step.by, step.entries, step.records);
    if (step.does === 'member' && !this.#members.delete(step.field)) this.#members.add(step.field);
    if (step.does === 'renames') {
      if (step.keeps && this.field !== null) this.#emptied.add(this.field);
      this.field = step.to;
    }
    if (step.does === 'restart') this.#processes[step.which] = this.#start();
    if (step.does === 'time') this.pass(step.minutes * MINUTE);
    return null;
  }

  /** Lets processes hear what others have learned, which takes seconds. */
  pass(ms: number): void {
    this.now += ms;
    for (const { keeper } of this.#processes) keeper.hear();
  }

  forgetMembers(): void {
    this.#members.clear();
  }

  #number(field: Field): number {
    this.#numbers += 1;
    return (FORMS.indexOf(field) + 1) * 100_000 + (this.#numbers % 90_000);
  }

  #entry(kind: Kind): unknown {
    const own = { offered: this.#number(this.field), sold: null, zero: 0, odd: 'on request' };
    if (kind === 'empty') return null;
    if (this.field === null && kind !== 'lacking') return own[kind];
    const others = [...this.#members].filter((field) => field !== this.field);
    const members = Object.fromEntries([
      ...[...this.#emptied].filter((field) => field !== this.field).map((field) => [field, null] as const),
      ...others.map((field) => [field, this.#number(field as Field)] as const),
    ]);
    return kind === 'lacking' ? members : { ...members, [this.field ?? '']: own[kind] };
  }

  async answer(by: number, kinds: readonly Kind[], records = 1): Promise<Answered> {
    const { forms } = this.#processes[by] ?? this.#start();
    const entries = kinds.map((kind) => this.#entry(kind));
    // Each record has sizes of its own: a name that nearly all records share, and that is never like a price, is
    // no size.
    const recordOf = (sku: string) => ({
      code: '0000',
      size_map: Object.fromEntries(entries.map((entry, n) => [`${sku}-${n}`, entry])),
    });
    const skus = Array.from({ length: records }, (_, n) => `S${n}`);
    const before = this.held;
    const wasMissing = this.#kept.memory.missingSince !== null;
    const view = forms.held;
    let used: EntryForm | null = null;
    const { answer } = await forms.read((entryForm) => {
      used = entryForm;
      const reading = readBulk(
        { results: Object.fromEntries(skus.map((sku) => [sku, recordOf(sku)])) },
        { priceFields: FIELDS, skuField: 'sku', entryForm },
      );
      if (!reading.ok) throw new Error(reading.problem);
      return reading.value;
    });
    const { held: after } = this;
    const withoutMs = this.now - this.#had;
    // Null in a missing field does not bring it back.
    const isThere = (one: EntryForm) =>
      wasMissing ? entries.some((entry) => saysIn(entry, one) === 'price') : has(entries, one);
    if (after !== null && (before === null || isThere(after))) this.#had = this.now;
    const form = used ?? answer.form ?? null;
    return { entries, records, record: answer.results.get('S0'), form, before, after, view, withoutMs };
  }
}

/** One answer, and what happened to the held form. */
export interface Answered {
  readonly entries: readonly unknown[];
  readonly records: number;
  readonly record: LowestRecord | UnreadableRecord | undefined;
  /** The form by which it was read. Null: no entry has any. */
  readonly form: EntryForm | null;
  /** The form held for all, before and after the answer, and what the reading process knew so far. */
  readonly before: EntryForm | null;
  readonly after: EntryForm | null;
  readonly view: EntryForm | null;
  /** For how long no answer had contained the held form. */
  readonly withoutMs: number;
}

/** Checks that only the held form is read, which changes only if no answer has had it for an hour. */
export function expectSound(answered: Answered): void {
  const { form, before, after, view, withoutMs } = answered;
  // A process that has not heard yet that another has let its form go.
  const isBehind = view !== null && view.field !== before?.field;
  if (before !== null && form !== null && !isBehind) expect(form.field).toEqual(before.field);
  if (form !== null) expectRead(answered, form);
  if (before === null || after?.field === before.field) return;
  expect(after).toBeNull();
  expect(withoutMs).toBeGreaterThanOrEqual(HOUR);
}

function expectRead({ record, entries, records }: Answered, form: EntryForm): void {
  const isThere = entries.some((entry) => saysIn(entry, form) === 'price');
  const isElsewhere = FIELDS.some((field) => entries.some((entry) => saysIn(entry, { field }) === 'price'));
  // A null in a missing field means nothing, nor does it if many records have another field instead.
  const isEmptied = !isThere && (form.isMissing === true || (records >= 20 && isElsewhere));
  const place = isEmptied && form.field !== null ? NOWHERE : form;
  const said = entries.map((entry) => saysIn(entry, place));
  if (record === undefined || 'unreadable' in record) {
    expect(said, 'what has a price can be read').not.toContain('price');
    expect(said, 'what says that there is no offer can be read').toContain('other');
    return;
  }
  for (const [n, { price, unreadable }] of [...record.sizes.values()].entries()) {
    expect(price === null ? 'none' : memberOf(price)).toBe(said[n] === 'price' ? form.field : 'none');
    expect(unreadable ?? false, 'what cannot be read is not sold out').toBe(said[n] === 'other');
  }
  if (said.includes('other')) expect(said, 'a record without a price').toContain('price');
}
