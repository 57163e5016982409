import type { OtherMember, EntryForm } from './size-map.ts';

/** Answers in a row that have to agree before a form is held. */
const ALIKE = 3;
/** A form that no entry has any longer is let go after this long. */
const HELD_MS = 3_600_000;
/** Reads of one answer, where others change meanwhile what is known: each has then learned something. */
const READS = 6;

/** What answers so far have shown of the form of entries. */
export interface FormMemory {
  /** That of the last answers; null: there was none. */
  readonly form: EntryForm | null;
  /** Answers in a row that had it: from `ALIKE` on it is held. */
  readonly answers: number;
  /** When the first answer came in which no entry had it any longer, on the reader's clock; null: the last had it. */
  readonly missingSince: number | null;
  /** That of records beside it that have no entry of it; null: there was none. */
  readonly also: OtherForm | null;
  /** Members of `size_map` that are no sizes, whatever the form. */
  readonly others: readonly OtherMember[];
}

interface OtherForm {
  readonly form: EntryForm;
  /** Answers that have had both. */
  readonly answers: number;
  /** When the first answer came in which those records had another form instead; null: the last had it. */
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
 * What an answer has shown of a held form, or of the one held beside it. `missing`: no entry has it any longer;
 * `let-go`: none has had it for an hour.
 */
export interface FormNews {
  readonly kind: 'missing' | 'let-go';
  /** The field that is held, and the one that entries have instead; null: bare numbers. */
  readonly field: string | null;
  readonly instead: string | null;
}

/**
 * The form by which entries are read; null: none is held, and each answer's most frequent form counts. A form that
 * `priceFields` no longer names is not held.
 */
export function heldForm({ form, answers }: FormMemory, priceFields: readonly string[]): EntryForm | null {
  return form !== null && answers >= ALIKE && isAmong(form, priceFields) ? form : null;
}

/** The form of records without any entry of the held form; null: such records are unreadable. */
export function heldAlso(known: FormMemory, priceFields: readonly string[]): EntryForm | null {
  if (heldForm(known, priceFields) === null || known.also === null) return null;
  const { form, answers } = known.also;
  return answers >= ALIKE && isAmong(form, priceFields) ? form : null;
}

/** Both, as an answer is to be read by them. */
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

/** The forms of an answer's entries, and what is no size in it, as readBulk finds them. */
export interface FormsFound {
  readonly form?: EntryForm | null;
  readonly also?: EntryForm | null;
  /** As known before, where it shows nothing new. */
  readonly others?: readonly OtherMember[];
}

/**
 * Takes in the forms of an answer's entries (`form` null: none has a price). Returns what is known then, the same
 * object if nothing has changed, and what to report of it (null: nothing). `now` in milliseconds. Pure.
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
  // If all records have the other form, the held one may be that of records not asked for, unless some have a third
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
 * What is known of the other form after an answer. `found`: the form of its records without the held one; null: there
 * are none. Like the held form, the other one is let go once another has taken its place for an hour.
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

/** Where what is known of the form is kept: for this process alone, or for all that read the same partner. */
export interface FormKeeper {
  /** As it is known here at present. */
  known(): FormMemory;
  /**
   * Replaces `before` by `by`. Returns false, and replaces nothing, if `before` is no longer what is known; `known`
   * then gives what is. Rejects if it cannot be kept.
   */
  replace(before: FormMemory, by: FormMemory): Promise<boolean>;
}

/** Keeps it as long as the process lives. */
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
 * Holds the form by which the entries of size_map are read, so that a new member of entries (a count, or what a shop
 * once charged) does not become the price. If all entries have changed, or have null in the old field and their prices
 * in another, the old form is held for an hour, in which such records are unreadable; then the form of most entries
 * takes its place. Records of another form beside it (live SKUs, say) are read once a few answers have had both.
 */
export class EntryForms {
  readonly #priceFields: readonly string[];
  readonly #now: () => number;
  readonly #keeper: FormKeeper;

  /** `now`: a monotonic clock, in milliseconds, and that of the keeper's times. */
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
   * Reads an answer by the held form, and takes in the form of its entries. Reads it again if another reader has
   * learned something meanwhile, because a number read before a form was held may be another member's. If what the
   * answer shows cannot be kept, the next answer shows it again.
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
