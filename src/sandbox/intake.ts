import { type Answer, type Call, invalid, readFields, readObject } from './answer.ts';
import type { World } from './world.ts';

/** One warehouse intake record exactly as sent (partner rules 4.4). Undefined if not sent. */
export interface IntakeRecord {
  readonly sku: string;
  readonly size: unknown;
  readonly price: unknown;
  readonly quantity: unknown;
}

export class Intake {
  readonly #records: IntakeRecord[] = [];

  [Symbol.iterator](): Iterator<IntakeRecord> {
    return this.#records.values();
  }

  add(records: readonly IntakeRecord[]): void {
    this.#records.push(...records);
  }
}

// The partner documents the body of a rejection (partner rule 7.2.r2s). The sandbox chose the names in the request
// and the success, the status 400, and that a call with a rejected SKU stores nothing.
const ITEMS = 'items';

/** Answers POST /partner/batch/r2s (partner rules 4.4): only the SKU is checked. */
export function answerIntake(
  { world, intake }: { readonly world: World; readonly intake: Intake },
  { text }: Call,
): Answer {
  const body = readObject(text);
  if (typeof body === 'string') return invalid(body);
  const items: unknown = body[ITEMS];
  if (!Array.isArray(items)) return invalid(`${ITEMS} must be an array`);
  const records: IntakeRecord[] = [];
  for (const item of items as unknown[]) {
    const fields = readFields(item, { sku: 'text' });
    if (typeof fields === 'string') return rejected(fields);
    if (!world.knows(fields.sku)) return rejected(`unknown sku: ${fields.sku}`);
    const { size, price, quantity } = item as Partial<IntakeRecord>;
    records.push({ sku: fields.sku, size, price, quantity });
  }
  intake.add(records);
  return { status: 200, body: { message: 'success', count: records.length } };
}

function rejected(message: string): Answer {
  return { status: 400, body: { success: false, message } };
}
