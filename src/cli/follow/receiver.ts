import type { WebhookConfig } from '../../config/config.ts';
import { createWebhook, webhookProblem } from '../../follow/webhook.ts';
import { systemClock } from '../../lib/clock.ts';
import { VERSION } from '../../version.ts';
import { type Arguments, UsageError } from '../command.ts';

/** Bytes of a post, less than the 100 kB that Express takes, and of those the part for what is around the changes. */
const POST_BYTES = 96 * 1024;
const ENVELOPE_BYTES = 1024;
export const BATCH_BYTES = POST_BYTES - ENVELOPE_BYTES;

/** What is wrong with the URL of `--webhook`, whatever the configuration allows. Pure. */
export function webhookProblems({ values: { webhook } }: Pick<Arguments, 'values'>): string[] {
  const problem = webhook === undefined ? null : webhookProblem(URL.parse(String(webhook)), true);
  return problem === null ? [] : [`--webhook: ${problem}`];
}

/**
 * The receiver at a URL, as the configuration says that it may be called.
 *
 * @throws UsageError where it cannot be
 */
export function receiverOf(
  { webhook, partner }: Pick<WebhookConfig, 'webhook' | 'partner'>,
  follower: string,
  text: string,
  changes: number,
): ReturnType<typeof createWebhook> {
  const url = URL.parse(text);
  const problem = webhookProblem(url, webhook.allowPrivate);
  const { secret, previousSecret } = webhook;
  const problems = [
    ...(problem === null ? [] : [`--webhook: ${problem}`]),
    ...(secret === null
      ? [
          'WEBHOOK_SECRET: not set; --webhook needs it (or a file in WEBHOOK_SECRET_FILE), for the receiver to know who sends',
        ]
      : []),
  ];
  if (url === null || secret === null || problems.length > 0) throw new UsageError(problems);
  const sources = previousSecret === null ? [secret] : [secret, previousSecret];
  return createWebhook({
    url,
    follower,
    limits: { changes, bytes: BATCH_BYTES },
    secrets() {
      for (const source of sources) source.refresh();
      return sources.map((source) => source.read());
    },
    allowPrivate: webhook.allowPrivate,
    timeoutMs: webhook.timeoutMs,
    userAgent: `catalog-mirror/${VERSION}`,
    proxy: partner.proxy,
    clock: systemClock,
  });
}
