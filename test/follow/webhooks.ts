import { onTestFinished } from 'vitest';
import { cut } from '../../src/follow/batch.ts';
import { createWebhook, type WebhookOptions } from '../../src/follow/webhook.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { changeAt } from './changes.ts';

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
/** A signal that is never aborted. */
export const NEVER = new AbortController().signal;
export const [BATCH] = cut(
  { changes: [changeAt(3n), changeAt(5n)], readTo: 5n, copiedTo: null },
  { changes: 9, bytes: 9999 },
);

/** Creates a webhook to `url` that is closed after the test. */
export function webhook(url: URL, more: Partial<WebhookOptions> = {}) {
  const made = createWebhook({
    url,
    follower: 'shop',
    limits: { changes: 500, bytes: 9999 },
    secrets: () => [SECRET],
    allowPrivate: true,
    // For busy machines; a test about the timeout sets its own.
    timeoutMs: 60_000,
    userAgent: 'catalog-mirror/test',
    clock: systemClock,
    ...more,
  });
  onTestFinished(() => made.close());
  return made;
}
