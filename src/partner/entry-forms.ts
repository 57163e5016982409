import type { EntryForm } from './size-map.ts';

/** Answers in a row that have to agree before a form is held. */
const ALIKE = 3;
/** A form that no entry has any longer is let go after this long. */
const HELD_MS = 3_600_000;

/** What an answer has shown of the form that is held: no entry has it any longer, or has had it for an hour. */
export interface FormNews {
  readonly kind: 'missing' | 'let-go';
  /** The field that is held, and the one that entries have instead; null: bare numbers. */
  readonly field: string | null;
  readonly instead: string | null;
}

/**
 * Holds the form by which the entries of size_map are read, so that a new member of theirs does not become the price:
 * a count, or what a shop once charged. Where all entries have changed, the old form is held for an hour, in which
 * their records are unreadable; then that of most entries takes its place.
 */
export class EntryForms {
  readonly #now: () => number;
  #held: EntryForm | null = null;
  #next: EntryForm | null = null;
  #alike = 0;
  #missingSince: number | null = null;

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The form by which entries are read; null: that of most entries in an answer. */
  get held(): EntryForm | null {
    return this.#held;
  }

  /** Takes in the form of an answer's entries. Out: what is to be said of it; null: nothing. */
  note(form: EntryForm | null): FormNews | null {
    if (form === null) return null;
    if (this.#held === null) {
      this.#alike = this.#next?.field === form.field ? this.#alike + 1 : 1;
      this.#next = form;
      if (this.#alike >= ALIKE) this.#held = form;
      return null;
    }
    if (form.field === this.#held.field) {
      this.#missingSince = null;
      return null;
    }
    const news = { field: this.#held.field, instead: form.field };
    this.#missingSince ??= this.#now();
    if (this.#now() - this.#missingSince < HELD_MS) return { kind: 'missing', ...news };
    [this.#held, this.#next, this.#alike, this.#missingSince] = [null, null, 0, null];
    return { kind: 'let-go', ...news };
  }
}
