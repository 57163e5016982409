import { type FileRefusal, Signatures } from '../files.ts';
import type { Order } from '../orders/order.ts';
import { createRng, mix } from '../rng.ts';
import { textPdf } from './pdf.ts';

const PREFIX = '/files/labels/';

type List = readonly [string, ...string[]];
const FIRST: List = ['Somying', 'Anong', 'Kittipong', 'Malee', 'Prasert', 'Ratana', 'Wichai', 'Duangjai'];
const LAST: List = ['Example', 'Sample', 'Placeholder', 'Invented', 'Specimen'];
const ROADS: List = ['Sandbox Road', 'Test Lane', 'Mock Street', 'Fixture Alley'];

/** Makes and checks the presigned URLs of labels: whoever holds one may download until it expires (partner rules 4.3). */
export class Labels {
  readonly #signatures = new Signatures();

  /** The path and query that downloads an order's label until `expiresAt` (epoch milliseconds). */
  sign(orderId: string, expiresAt: number): string {
    const path = `${PREFIX}${encodeURIComponent(orderId)}.pdf`;
    return `${path}?expires=${expiresAt}&signature=${this.#signatures.of(path, String(expiresAt))}`;
  }

  /** Checks a request; null = let through. */
  check(path: string, query: URLSearchParams, now: number): FileRefusal | null {
    const expires = query.get('expires') ?? '';
    if (query.get('signature') !== this.#signatures.of(path, expires)) return 'bad_signature';
    return now >= Number(expires) ? 'expired' : null;
  }
}

/** The order that a label's path names, or null. */
export function orderOf(path: string): string | null {
  return /^\/files\/labels\/([^/]+)\.pdf$/.exec(path)?.[1] ?? null;
}

/** The label of an order, addressed to a buyer who does not exist: the same for the same seed and order. */
export function labelPdf(seed: number, order: Order): Buffer {
  const rng = createRng(mix(mix(seed, 31), order.seq));
  return textPdf([
    'SHIPPING LABEL',
    'of a sandbox: nobody lives there',
    '',
    `Order ${order.id}`,
    `${order.sku}, size ${order.size}`,
    '',
    `Buyer: ${rng.pick(FIRST)} ${rng.pick(LAST)}`,
    `Address: ${1 + rng.int(999)}/${1 + rng.int(99)} ${rng.pick(ROADS)}, Bangkok 00000`,
    `Phone: 000-000-${String(rng.int(10_000)).padStart(4, '0')}`,
  ]);
}
