import { expect } from 'vitest';
import type { LowestRecord, UnreadableRecord } from '../../src/partner/answers.ts';
import { readBulk } from '../../src/partner/bulk-answer.ts';
import { EntryForms, heldAlso, heldForm } from '../../src/partner/entry-forms.ts';
import type { EntryForm } from '../../src/partner/size-map.ts';
import { keptForAll } from './kept-forms.ts';

/*
 * A partner with two kinds of SKUs (for example live ones and others). Each kind has its price in a field of an
 * entry or in the entry itself, and the price sometimes moves to another place. Two processes with a shared memory
 * read it and are restarted. Every number shows which place it is in.
 */
export const FIELDS = ['price', 'lowest_price', 'lowest_ask', 'amount'] as const;
export type Field = (typeof FIELDS)[number] | null;
export const FORMS: readonly Field[] = [...FIELDS, null];
export const HOUR = 3_600_000;

/** offered: with a price; sold: null in its place; empty: no entry. */
export const KINDS = ['offered', 'offered', 'offered', 'sold', 'empty'] as const;

/** A record of a SKU of the first or the second kind. */
export interface Drawn {
  readonly kind: 0 | 1;
  readonly sizes: readonly (typeof KINDS)[number][];
}

export type Step =
  | { readonly does: 'answer'; readonly by: number; readonly records: readonly Drawn[] }
  | { readonly does: 'renames'; readonly kind: 0 | 1; readonly to: Field }
  | { readonly does: 'restart'; readonly which: number }
  | { readonly does: 'time'; readonly minutes: number };

const placeOf = (price: number): Field => FORMS[Math.floor(price / 100_000) - 1] ?? null;

const fieldOf = (form: EntryForm | null): Field | undefined =>
  form === null ? undefined : (form.field as Field);

export interface Read {
  readonly records: readonly {
    readonly place: Field;
    readonly sizes: Drawn['sizes'];
    readonly said: unknown;
  }[];
  /** The places that are read after the answer. Undefined: none is held. */
  readonly held: Field | undefined;
  readonly also: Field | undefined;
}

export class TwoForms {
  now = 0;
  readonly #kept = keptForAll();
  #numbers = 0;
  readonly #processes = [0, 1].map(() => this.#start());
  readonly #places: [Field, Field];

  constructor(first: Field, second: Field) {
    this.#places = [first, second];
  }

  #start() {
    const keeper = this.#kept.reader();
    return { keeper, forms: new EntryForms(FIELDS, () => this.now, keeper) };
  }

  move(kind: 0 | 1, to: Field): void {
    this.#places[kind] = to;
  }

  async step(step: Step): Promise<Read | null> {
    if (step.does === 'answer') return await this.answer(step.by, step.records);
    if (step.does === 'renames') this.move(step.kind, step.to);
    if (step.does === 'restart') this.#processes[step.which] = this.#start();
    if (step.does === 'time') this.pass(step.minutes * 60_000);
    return null;
  }

  /** Lets processes hear what others have learned, which takes seconds. */
  pass(ms: number): void {
    this.now += ms;
    for (const { keeper } of this.#processes) keeper.hear();
  }

  #entry(place: Field, size: Drawn['sizes'][number]): unknown {
    if (size === 'empty') return null;
    this.#numbers += 1;
    const price = size === 'sold' ? null : (FORMS.indexOf(place) + 1) * 100_000 + (this.#numbers % 90_000);
    return place === null ? price : { [place]: price, listings: 3 };
  }

  async answer(by: number, drawn: readonly Drawn[]): Promise<Read> {
    const { forms } = this.#processes[by] ?? this.#start();
    const results = drawn.map(({ kind, sizes }, nth): [string, unknown] => {
      const entries = sizes.map((size, n) => [`S${n}`, this.#entry(this.#places[kind], size)]);
      return [`SKU-${nth}`, { code: '0000', size_map: Object.fromEntries(entries) as unknown }];
    });
    const { answer } = await forms.read((entryForm, alsoForm) => {
      const body = { results: Object.fromEntries(results) };
      const reading = readBulk(body, { priceFields: FIELDS, skuField: 'sku', entryForm, alsoForm });
      if (!reading.ok) throw new Error(reading.problem);
      return reading.value;
    });
    const records = drawn.map(({ kind, sizes }, nth) => ({
      place: this.#places[kind],
      sizes,
      said: saidOf(answer.results.get(`SKU-${nth}`)),
    }));
    const { memory } = this.#kept;
    return { records, held: fieldOf(heldForm(memory, FIELDS)), also: fieldOf(heldAlso(memory, FIELDS)) };
  }
}

/** Returns what a record is read as: the places of its prices, or unreadable. */
function saidOf(record: LowestRecord | UnreadableRecord | undefined): unknown {
  if (record === undefined || 'unreadable' in record) return 'unreadable';
  return [...record.sizes.values()].map(({ price }) => (price === null ? 'none' : placeOf(price)));
}

/** Checks that a record is read correctly, or is unreadable if an entry has content. No price is invented or lost. */
export function expectSound({ records }: Read): void {
  for (const { place, sizes, said } of records) {
    const truth = sizes.map((size) => (size === 'offered' ? place : 'none'));
    if (said !== 'unreadable') expect(said).toEqual(truth);
    else
      expect(sizes.filter((size) => size === 'offered' || (size === 'sold' && place !== null))).not.toEqual(
        [],
      );
  }
}

/** Checks that all of it is read correctly. */
export function expectRead(read: Read): void {
  for (const { said } of read.records) expect(said).not.toBe('unreadable');
  expectSound(read);
}
