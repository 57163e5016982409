import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createPartnerClient, type PartnerClientOptions } from '../../src/partner/client.ts';
import { PATIENCE_MS } from '../support/eventually.ts';

/** A permit that counts nothing. */
export const permit = { settle: async () => Promise.resolve() };

/** Creates a client with the usual names, except for `options`, for the length of one test. */
export function clientOf(baseUrl: URL, options: Partial<PartnerClientOptions> = {}) {
  const client = createPartnerClient({
    baseUrl,
    credentials: () => ({ apiKey: 'key', secret: 'secret' }),
    timeoutMs: PATIENCE_MS,
    bodyKey: 'skus',
    priceFields: ['price'],
    skuField: 'sku',
    allowInsecure: false,
    userAgent: 'catalog-mirror/test',
    clock: systemClock,
    ...options,
  });
  onTestFinished(() => client.close());
  return client;
}
