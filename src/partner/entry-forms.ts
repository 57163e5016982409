import type { OtherMember, EntryForm } from './size-map.ts';

/** Consecutive answers that must agree before a form is held. */
const ALIKE = 3;
/** A held form is released once no entry has had it for this long. */
const HELD_MS = 3_600_000;
/** Attempts to read one answer while other readers change what is known; after each they know more. */
const READS = 6;

/** What the answers so far have shown about the form of entries. */
export interface FormMemory {
  /** The form of the latest answers; null before the first. */
  readonly form: EntryForm | null;
  /** Consecutive answers with this form; from `ALIKE` on it is held. */
  readonly answers: number;
  /** When the first answer without this form came in, on the reader's clock; null if the latest had it. */
  readonly missingSince: number | null;
  /** The form of records that have no entry of `form`; null if there were no such records. */
  readonly also: OtherForm | null;
  /** Members of `size_map` that are not sizes, whatever the form. */
  readonly others: readonly OtherMember[];
}

interface OtherForm {
  readonly form: EntryForm;
  /** Answers that contained both forms. */
  readonly answers: number;
  /** When those records first had another form instead; null if the latest answer had this one. */
  readonly missingSince: number | null;
}

export const NOTHING_LEARNED: FormMemory = {
  form: null,
  answers: 0,
  missingSince: null,
  also: null,
  others: [],
};

/**
 * What an answer has shown about a held form, or about the one held beside it. `missing`: no entry has it any
 * longer. `let-go`: no entry has had it for an hour.
 */
export interface FormNews {
  readonly kind: 'missing' | 'let-go';
  /** The held field, and the field that entries have instead; null stands for bare numbers. */
  readonly field: string | null;
  readonly instead: string | null;
}

/**
 * Returns the form by which entries are read. Null if none is held, in which case each answer's most frequent form
 * counts. A form whose field `priceFields` no longer contains is not held.
 */
export function heldForm({ form, answers }: FormMemory, priceFields: readonly string[]): EntryForm | null {
  return form !== null && answers >= ALIKE && isAmong(form, priceFields) ? form : null;
}

/** Returns the form of records that have no entry of the held form; null if such records are unreadable. */
export function heldAlso(known: FormMemory, priceFields: readonly string[]): EntryForm | null {
  if (heldForm(known, priceFields) === null || known.also === null) return null;
  const { form, answers } = known.also;
  return answers >= ALIKE && isAmong(form, priceFields) ? form : null;
}

/** Returns both forms as the next answer must be read by them. */
function heldForms(known: FormMemory, priceFields: readonly string[]) {
  const shown = (form: EntryForm | null, missingSince: number | null | undefined) =>
    form === null || (missingSince ?? null) === null ? form : { ...form, isMissing: true };
  return {
    held: shown(heldForm(known, priceFields), known.missingSince),
    also: shown(heldAlso(known, priceFields), known.also?.missingSince),
  };
}

const isAmong = ({ field }: EntryForm, priceFields: readonly string[]): boolean =>
  field === null || priceFields.includes(field);

/** The forms of an answer's entries and the members that are not sizes, as readBulk finds them. */
export interface FormsFound {
  readonly form?: EntryForm | null;
  readonly also?: EntryForm | null;
  /** The list known before, if the answer shows nothing new. */
  readonly others?: readonly OtherMember[];
}

/**
 * Updates what is known from the forms of an answer's entries (`form` is null if none has a price). Returns the new
 * memory, which is the same object if nothing has changed, and what to report (null: nothing). `now` is in
 * milliseconds. Pure.
 */
function noteForm(
  before: FormMemory,
  { form = null, also = null, others = before.others }: FormsFound,
  priceFields: readonly string[],
  now: number,
): { readonly memory: FormMemory; readonly news: FormNews | null } {
  const known = others === before.others ? before : { ...before, others };
  if (form === null) return { memory: known, news: null };
  const held = heldForm(known, priceFields);
  if (held === null) {
    const isSame = known.form?.field === form.field;
    const { beside } = besideIt(isSame ? known.also : null, also, priceFields, now);
    const answers = isSame ? known.answers + 1 : 1;
    return { memory: { form, answers, missingSince: null, also: beside, others }, news: null };
  }
  const { missingSince } = known;
  if (form.field === held.field) {
    const { beside, news } = besideIt(known.also, also, priceFields, now);
    const isKnown = missingSince === null && beside === known.also;
    return { memory: isKnown ? known : { ...known, missingSince: null, also: beside }, news };
  }
  // If all records have the other form, perhaps no SKU with the held form was asked for, unless some have a third
  // form.
  const isOther = heldAlso(known, priceFields)?.field === form.field;
  if (isOther && also === null) return { memory: known, news: null };
  const news = { field: held.field, instead: isOther && also !== null ? also.field : form.field };
  if (missingSince !== null && now - missingSince >= HELD_MS)
    return { memory: { ...NOTHING_LEARNED, others }, news: { kind: 'let-go', ...news } };
  const memory = missingSince === null ? { ...known, missingSince: now } : known;
  return { memory, news: { kind: 'missing', ...news } };
}

/**
 * Returns what is known of the other form after an answer. `found` is the form of its records without the held one;
 * null if there are none. Like the held form, the other one is released once another has replaced it for an hour.
 */
function besideIt(
  known: OtherForm | null,
  found: EntryForm | null,
  priceFields: readonly string[],
  now: number,
): { readonly beside: OtherForm | null; readonly news: FormNews | null } {
  if (found === null) return { beside: known, news: null };
  const isSame = known !== null && known.form.field === found.field;
  if (known === null || known.answers < ALIKE || !isAmong(known.form, priceFields)) {
    return {
      beside: { form: found, answers: isSame ? known.answers + 1 : 1, missingSince: null },
      news: null,
    };
  }
  const { missingSince } = known;
  if (isSame) return { beside: missingSince === null ? known : { ...known, missingSince: null }, news: null };
  const news = { field: known.form.field, instead: found.field };
  if (missingSince === null)
    return { beside: { ...known, missingSince: now }, news: { kind: 'missing', ...news } };
  const isOver = now - missingSince >= HELD_MS;
  return { beside: isOver ? null : known, news: { kind: isOver ? 'let-go' : 'missing', ...news } };
}

/** Stores what is known of the form, for this process only or for all readers of the same partner. */
export interface FormKeeper {
  /** What this process knows at present. */
  known(): FormMemory;
  /**
   * Replaces `before` by `by`. Returns false and replaces nothing if `before` is no longer current; `known` then
   * returns the current memory. Rejects if the memory cannot be stored.
   */
  replace(before: FormMemory, by: FormMemory): Promise<boolean>;
}

/** Returns a keeper that lasts as long as the process. */
function ownKeeper(): FormKeeper {
  let memory = NOTHING_LEARNED;
  return {
    known: () => memory,
    async replace(before, by) {
      if (memory !== before) return false;
      memory = by;
      return true;
    },
  };
}

/**
 * Holds the form by which the entries of size_map are read, so that a new member of entries (a count, a former
 * price) does not become the price. If all entries have changed, or have null in the old field and their prices in
 * another, the old form is held for an hour, during which such records are unreadable; then the form of most
 * entries replaces it. Records of another form beside it (such as live SKUs) are read once a few answers have
 * contained both.
 */
export class EntryForms {
  readonly #priceFields: readonly string[];
  readonly #now: () => number;
  readonly #keeper: FormKeeper;

  /** `now`: a monotonic clock in milliseconds, the one that the keeper's times are from. */
  constructor(priceFields: readonly string[], now: () => number, keeper: FormKeeper = ownKeeper()) {
    this.#priceFields = priceFields;
    this.#now = now;
    this.#keeper = keeper;
  }

  get held(): EntryForm | null {
    return heldForms(this.#keeper.known(), this.#priceFields).held;
  }

  get also(): EntryForm | null {
    return heldForms(this.#keeper.known(), this.#priceFields).also;
  }

  get others(): readonly OtherMember[] {
    return this.#keeper.known().others;
  }

  /**
   * Reads an answer by the held form and learns the form of its entries. Reads it again if another reader has
   * learned something in the meantime, because a number read before a form was held may be another member's. If the
   * lesson of this answer cannot be stored, the next answer teaches it again.
   */
  async read<Answer extends FormsFound>(
    by: (held: EntryForm | null, also: EntryForm | null, others: readonly OtherMember[]) => Answer,
  ): Promise<{ readonly answer: Answer; readonly news: FormNews | null }> {
    for (let reads = 1; reads < READS; reads += 1) {
      const known = this.#keeper.known();
      const { held, also } = heldForms(known, this.#priceFields);
      const answer = by(held, also, known.others);
      const { memory, news } = noteForm(known, answer, this.#priceFields, this.#now());
      if (memory === known) return { answer, news };
      const kept = await this.#keeper.replace(known, memory).catch(() => null);
      if (kept === true) return { answer, news };
      if (kept === null) return { answer, news: null };
    }
    return { answer: by(this.held, this.also, this.others), news: null };
  }
}
