import { expect } from 'vitest';
import { keptForAll } from './kept-forms.ts';
import { mapReader, type SizeMap, type SizesRead } from './map-reader.ts';

/*
 * A partner that puts members of its own between the sizes of `size_map`, in all records of a back end, including
 * sold-out SKUs. It has one back end or two, each with its prices in one form, and changes forms. Two processes
 * with a shared memory read it and are restarted. Prices are below 10,000, and no member's number is.
 */

/** A field of entries that holds the price, bare numbers, or bare numbers as text. */
export type Form = 'price' | 'lowest_ask' | 'bare' | 'text';
export const FORMS: readonly Form[] = ['price', 'lowest_ask', 'bare', 'text'];
export const isBare = (form: Form): boolean => form === 'bare' || form === 'text';

export const MEMBERS = [
  'word',
  'time',
  'flag',
  'object',
  'list',
  'null',
  'small',
  'number',
  'digits',
  'priced',
] as const;
export type MemberKind = (typeof MEMBERS)[number];
/** Beside bare numbers, nothing shows that they are no prices. */
export const isNumber = (kind: MemberKind): boolean => kind === 'number' || kind === 'digits';

/** Beside objects with a price, nothing shows that it is no price. */
export const isPriced = (kind: MemberKind): boolean => kind === 'priced';

export interface BackEnd {
  readonly form: Form;
  readonly members: readonly MemberKind[];
}

/** A record of one of the back ends, with a price for each of these sizes. */
export interface Drawn {
  readonly by: 0 | 1;
  readonly sizes: readonly number[];
  /** Whether sizes without an offer are present, as null. */
  readonly hasNulls: boolean;
}

export type Step =
  | { readonly does: 'answer'; readonly process: 0 | 1; readonly records: readonly Drawn[] }
  | { readonly does: 'changes'; readonly by: 0 | 1; readonly to: Form }
  | { readonly does: 'restart'; readonly process: 0 | 1 }
  | { readonly does: 'time'; readonly minutes: number };

export class SizeMaps {
  now = 0;
  readonly #kept = keptForAll();
  readonly #processes = [0, 1].map(() => this.#start());
  readonly #backEnds: BackEnd[];
  #numbers = 0;

  constructor(backEnds: readonly BackEnd[]) {
    this.#backEnds = [...backEnds];
  }

  #start() {
    const started = mapReader(this.#kept);
    started.clock.now = this.now;
    return started;
  }

  change(by: 0 | 1, form: Form): void {
    const own = this.#backEnds[by] ?? { form, members: [] };
    const members = own.members.filter((member) => !isPriced(member));
    if (by < this.#backEnds.length) this.#backEnds[by] = { members, form };
  }

  pass(minutes: number): void {
    this.now += minutes * 60_000;
    for (const { clock, hear } of this.#processes) {
      clock.now = this.now;
      hear();
    }
  }

  async step(step: Step): Promise<void> {
    if (step.does === 'answer') expectSound(await this.answer(step.process, step.records));
    if (step.does === 'changes') this.change(step.by, step.to);
    if (step.does === 'restart') this.#processes[step.process] = this.#start();
    if (step.does === 'time') this.pass(step.minutes);
  }

  #member(kind: MemberKind): unknown {
    this.#numbers += 1;
    const number = 500_000 + (this.#numbers % 300_000);
    const values: Readonly<Record<MemberKind, unknown>> = {
      word: 'THB',
      time: new Date(Date.UTC(2026, 0, 1) + this.#numbers * 1000).toISOString(),
      flag: true,
      object: { id: number },
      list: ['new', number],
      null: null,
      small: 4.5,
      number,
      digits: `${number}`,
      priced: { lowest_ask: number },
    };
    return values[kind];
  }

  #entry(form: Form): readonly [number, unknown] {
    this.#numbers += 1;
    const price = 1000 + (this.#numbers % 9000);
    return [price, form === 'bare' ? price : form === 'text' ? `${price}` : { [form]: price, listings: 3 }];
  }

  async answer(process: 0 | 1, records: readonly Drawn[]): Promise<readonly Said[]> {
    const made = records.map(({ by, sizes, hasNulls }) => {
      const { form, members } = this.#backEnds[by] ?? this.#backEnds[0] ?? { form: 'bare', members: [] };
      const offers = new Map(sizes.map((size) => [`s${size}`, this.#entry(form)]));
      const unoffered = hasNulls ? [['s98', null] as const] : [];
      const map: SizeMap = Object.fromEntries([
        ['size_type', 'US'],
        ...members.map((kind, n) => [`${kind}-${n}`, this.#member(kind)] as const),
        ...[...offers].map(([size, [, entry]]) => [size, entry] as const),
        ...unoffered,
      ]);
      return { map, truth: Object.fromEntries([...offers].map(([size, [price]]) => [size, price])) };
    });
    const { read } = this.#processes[process] ?? this.#start();
    const { sizes } = await read(...made.map(({ map }) => map));
    return made.map(({ truth }, n) => ({ truth, read: sizes[n] ?? 'unreadable' }));
  }
}

export interface Said {
  readonly truth: Readonly<Record<string, number>>;
  readonly read: SizesRead;
}

/** Checks that each record is read correctly, or is unreadable. */
function expectSound(said: readonly Said[]): void {
  for (const { truth, read } of said) if (read !== 'unreadable') expect(pricesOf(read)).toEqual(truth);
}

/** Checks that each record is read correctly: one without an offer as a withdrawal. */
export function expectRead(said: readonly Said[]): void {
  for (const { read } of said) expect(read).not.toBe('unreadable');
  expectSound(said);
}

const pricesOf = (read: Readonly<Record<string, number | null>>) =>
  Object.fromEntries(Object.entries(read).filter(([, price]) => price !== null));
