import { inspect } from 'node:util';
import { expect } from 'vitest';
import { PartnerError, type PartnerErrorKind } from '../../src/partner/errors.ts';
import {
  readManifestFile,
  type ManifestBatch,
  type ManifestFileOptions,
} from '../../src/partner/manifest-file.ts';
import type { ManifestLine, RejectedLine } from '../../src/partner/manifest-lines.ts';
import { SecretUrl } from '../../src/partner/secret-url.ts';
import { PATIENCE_MS } from '../support/eventually.ts';
import { serve, type Listener } from './server.ts';

/** A base URL on loopback, so that a files origin on loopback is allowed. */
export const LOOPBACK = new URL('http://127.0.0.1:1');

/** Returns one valid snapshot line. */
export function lineText(index: number): string {
  return JSON.stringify({
    sku: `SKU-${index}`,
    sizes: 1,
    hash: `h${index}`,
    price_source: 'snapshot',
    updated_at: null,
  });
}

/** Returns a plain manifest of `count` lines. */
export function fileOf(count: number): Buffer {
  return Buffer.from(Array.from({ length: count }, (_, index) => `${lineText(index)}\n`).join(''));
}

/** Reads the manifest from a server of the test, by a URL with a canary signature. */
export function fileAt(
  base: URL,
  overrides: Partial<ManifestFileOptions> = {},
): AsyncGenerator<ManifestBatch> {
  const url = new SecretUrl(new URL('/m.gz?X-Amz-Signature=canary', base));
  return readManifestFile({ url, baseUrl: LOOPBACK, timeoutMs: PATIENCE_MS, ...overrides });
}

/** Collects everything in the batches, and their sizes. */
export async function all(batches: AsyncIterable<ManifestBatch>) {
  const lines: ManifestLine[] = [];
  const rejected: RejectedLine[] = [];
  const sizes: number[] = [];
  let last: ManifestBatch | undefined;
  for await (const batch of batches) {
    lines.push(...batch.lines);
    rejected.push(...batch.rejected);
    sizes.push(batch.lines.length + batch.rejected.length);
    last = batch;
  }
  return { lines, rejected, sizes, last };
}

/** Returns the PartnerError that ends the batches. Fails if it shows the canary. */
export async function failure(batches: AsyncIterable<ManifestBatch>): Promise<PartnerError> {
  const error = await all(batches).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof PartnerError)) throw new Error('no PartnerError', { cause: error });
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('canary');
  expect(error.route).toBe('manifest-file');
  return error;
}

/** Returns the kind of error that a server answering this way causes. */
export async function kindAt(
  listener: Listener,
  overrides: Partial<ManifestFileOptions> = {},
): Promise<PartnerErrorKind> {
  return (await failure(fileAt(await serve(listener), overrides))).kind;
}
