import { type Answer, type Call, invalid, refused } from '../answer.ts';
import { notFound, unauthorized } from '../orders/owned.ts';
import { bytesReply, fileErrorReply, type Reply } from '../respond.ts';
import type { PlainCall } from '../routing.ts';
import type { Services } from '../services.ts';
import { labelPdf, orderOf } from './labels.ts';

/** A label's URL works this long at most (partner rule 8.label-url). */
const LONGEST_MS = 3_600_000;

/** GET /partner/label/{orderId} (partner rules 4.3). The name `url` is the sandbox's choice (partner rule 4.3.open). */
export function answerLabel({ settings, orders, labels, base }: Services, { params }: Call): Answer {
  const id = params['orderId'] ?? '';
  const order = orders.find(id);
  if (order === undefined) return invalid(notFound(id));
  if (!order.own) return refused(403, unauthorized(id));
  const expiresAt = settings.now() + Math.min(settings.urlTtlMs, LONGEST_MS);
  return { status: 200, body: { url: base + labels.sign(order.id, expiresAt) } };
}

/** GET of a presigned label URL. */
export function labelFile({ settings, orders, labels }: Services, { path, query }: PlainCall): Reply {
  const now = settings.now();
  const refusal = labels.check(path, query, now);
  if (refusal !== null) return fileErrorReply(refusal, now);
  const order = orders.find(orderOf(path) ?? '');
  if (order === undefined) return fileErrorReply('freed', now);
  return bytesReply('application/pdf', labelPdf(settings.seed, order), now);
}
