import { type Answer, type Call, invalid, type PlainCall, refused } from './answer.ts';
import type { FileRefusal, Signatures } from './files.ts';
import type { Settings } from './options.ts';
import { notFound, type Order, unauthorized } from './orders/order.ts';
import type { Orders } from './orders/orders.ts';
import { bytesReply, fileErrorReply, type Reply } from './respond.ts';
import { createRng, mix } from './rng.ts';

const PREFIX = '/files/labels/';

type List = readonly [string, ...string[]];
const FIRST: List = ['Somying', 'Anong', 'Kittipong', 'Malee', 'Prasert', 'Ratana', 'Wichai', 'Duangjai'];
const LAST: List = ['Example', 'Sample', 'Placeholder', 'Invented', 'Specimen'];
const ROADS: List = ['Sandbox Road', 'Test Lane', 'Mock Street', 'Fixture Alley'];

/** Makes and checks the presigned URLs of labels. Any holder may download until it expires (partner rules 4.3). */
export class Labels {
  readonly #signatures: Signatures;

  constructor(signatures: Signatures) {
    this.#signatures = signatures;
  }

  /** Returns the path and query that download an order's label until `expiresAt` (epoch milliseconds). */
  sign(orderId: string, expiresAt: number): string {
    const path = `${PREFIX}${encodeURIComponent(orderId)}.pdf`;
    return `${path}?expires=${expiresAt}&signature=${this.#signatures.of(path, String(expiresAt))}`;
  }

  /** Checks a request; returns null if it is let through. */
  check(path: string, query: URLSearchParams, now: number): FileRefusal | null {
    const expires = query.get('expires') ?? '';
    if (query.get('signature') !== this.#signatures.of(path, expires)) return 'bad_signature';
    return now >= Number(expires) ? 'expired' : null;
  }
}

function orderOf(path: string): string | null {
  return /^\/files\/labels\/([^/]+)\.pdf$/.exec(path)?.[1] ?? null;
}

/** Creates the label of an order for a fictitious buyer; the same for the same seed and order. */
function labelPdf(seed: number, order: Order): Buffer {
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

/** Creates a one-page PDF (A6) of text lines. Non-ASCII characters become question marks. */
function textPdf(lines: readonly string[]): Buffer {
  const shown = lines.map((line) => `(${escape(line)}) Tj T*`).join('\n');
  const content = `BT\n/F1 10 Tf\n16 TL\n24 380 Td\n${shown}\nET`;
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 298 420] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ];
  let text = '%PDF-1.4\n';
  const offsets: number[] = [];
  for (const [index, object] of objects.entries()) {
    offsets.push(text.length);
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
  }
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  const size = objects.length + 1;
  const trailer = `trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`;
  return Buffer.from(`${text}xref\n0 ${size}\n0000000000 65535 f \n${table}${trailer}`, 'latin1');
}

function escape(line: string): string {
  return line.replaceAll(/[^\x20-\x7e]/g, '?').replaceAll(/[\\()]/g, String.raw`\$&`);
}

/** A label's URL works at most this long (partner rule 8.label-url). */
const LONGEST_MS = 3_600_000;

interface LabelServices {
  readonly settings: Settings;
  readonly orders: Orders;
  readonly labels: Labels;
  readonly base: string;
}

/**
 * Answers GET /partner/label/{orderId} (partner rules 4.3). The sandbox chose the name `url` (partner rule
 * 4.3.open).
 */
export function answerLabel({ settings, orders, labels, base }: LabelServices, { params }: Call): Answer {
  const id = params['orderId'] ?? '';
  const order = orders.find(id);
  if (order === undefined) return invalid(notFound(id));
  if (!order.own) return refused(403, unauthorized(id));
  const expiresAt = settings.now() + Math.min(settings.urlTtlMs, LONGEST_MS);
  return { status: 200, body: { url: base + labels.sign(order.id, expiresAt) } };
}

export function labelFile({ settings, orders, labels }: LabelServices, { path, query }: PlainCall): Reply {
  const now = settings.now();
  const refusal = labels.check(path, query, now);
  if (refusal !== null) return fileErrorReply(refusal, now);
  const order = orders.find(orderOf(path) ?? '');
  if (order === undefined) return fileErrorReply('freed', now);
  return bytesReply('application/pdf', labelPdf(settings.seed, order), now);
}
