import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { createGzip } from 'node:zlib';

/*
 * Two manifests of one catalog: as the mirror stands, and as it is offered next. Of a thousand SKUs 20 have another
 * hash, 5 are new, 3 are absent and 2 cross between the cohorts; of a hundred 5 are live.
 */

export type Edition = 'former' | 'next';

export interface ManifestLine {
  readonly sku: string;
  readonly sizes: number;
  readonly hash: string | null;
  readonly price_source: 'snapshot' | 'live';
  readonly updated_at: string;
}

/** A number of 0 to 999 that tells nothing of `n`: what changes lies scattered over the catalog. */
function placeOf(n: number): number {
  const mixed = Math.imul(n ^ (n >>> 15), 0x2c1b_3c6d);
  return ((mixed ^ (mixed >>> 12)) >>> 0) % 1000;
}

/** A prime, so that its multiples pass every SKU once, in an order that is not that of their names. */
const STRIDE = 15_485_863;

const BUILT = Date.parse('2026-10-01T00:00:00.000Z');
const REBUILT = Date.parse('2026-11-01T00:00:00.000Z');

/** The line of the nth SKU, or null where this edition does not list it. */
function lineOf(n: number, edition: Edition): ManifestLine | null {
  const place = placeOf(n);
  const isNew = place >= 500 && place < 505;
  const isAbsent = place >= 600 && place < 603;
  if (edition === 'former' ? isNew : isAbsent) return null;
  const crossed = edition === 'next' && (place === 700 || place === 701);
  const live = (n % 20 === 0) !== crossed;
  const changed = edition === 'next' && !live && place >= 800 && place < 821;
  const content = changed ? `${n} again` : `${n}`;
  return {
    sku: `SKU-${String(n).padStart(9, '0')}`,
    sizes: 8 + (n % 9),
    hash: live ? null : createHash('sha256').update(content).digest('hex'),
    price_source: live ? 'live' : 'snapshot',
    updated_at: new Date((changed ? REBUILT : BUILT) + ((n * 7919) % 2_000_000_000)).toISOString(),
  };
}

const COLUMN_END = '\t';

/** A line as COPY's text format has it, columns in the order of the staging table. */
function copyText({ sku, sizes, hash, price_source, updated_at }: ManifestLine): string {
  return [sku, sizes, hash ?? '\\N', price_source, updated_at].join(COLUMN_END);
}

/**
 * Writes an edition of a catalog of `skus` SKUs: gzipped NDJSON as the partner gives it, and the same lines split
 * already, for COPY. New SKUs come on top of the `skus`. Returns how many lines there are.
 */
export async function writeManifest(
  edition: Edition,
  skus: number,
  files: { readonly gzip: string; readonly split: string },
): Promise<number> {
  const zip = createGzip({ level: 6, chunkSize: 256 * 1024 });
  const zipped = zip.pipe(createWriteStream(files.gzip));
  const split = createWriteStream(files.split);
  let lines = 0;
  let texts = ['', ''];
  const flush = async (): Promise<void> => {
    const [json = '', copied = ''] = texts;
    texts = ['', ''];
    if (!zip.write(json)) await once(zip, 'drain');
    if (!split.write(copied)) await once(split, 'drain');
  };
  const all = Math.round(skus * 1.005);
  for (let i = 0; i < all; i += 1) {
    const line = lineOf((i * STRIDE) % all, edition);
    if (line === null) continue;
    lines += 1;
    texts = [`${texts[0]}${JSON.stringify(line)}\n`, `${texts[1]}${copyText(line)}\n`];
    if (lines % 5000 === 0) await flush();
  }
  await flush();
  zip.end();
  split.end();
  await Promise.all([once(zipped, 'close'), once(split, 'close')]);
  return lines;
}
