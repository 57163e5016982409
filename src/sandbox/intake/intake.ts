/** One warehouse intake record: what was sent, whatever it was (partner rules 4.4). Undefined = not sent. */
export interface IntakeRecord {
  readonly sku: string;
  readonly size: unknown;
  readonly price: unknown;
  readonly quantity: unknown;
}

/** The warehouse intake records, oldest first. */
export class Intake {
  readonly #records: IntakeRecord[] = [];

  [Symbol.iterator](): Iterator<IntakeRecord> {
    return this.#records.values();
  }

  add(records: readonly IntakeRecord[]): void {
    this.#records.push(...records);
  }
}
