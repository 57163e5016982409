import { createHmac } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Dialect } from './options.ts';

const FILES_PREFIX = '/files/';
const CHUNK_CHARS = 64 * 1024;

export type FileRefusal = 'expired' | 'revoked' | 'bad_signature';

/** Signatures that only somebody with the secret can make; the same for the same secret. */
export class Signatures {
  readonly #key: string;

  constructor(secret: string) {
    this.#key = secret;
  }

  of(...parts: string[]): string {
    return createHmac('sha256', this.#key).update(parts.join('\n')).digest('hex');
  }
}

/** Makes and checks the presigned URLs of manifest files. Any holder may download until it expires or is revoked. */
export class Presigner {
  readonly #signatures: Signatures;

  constructor(signatures: Signatures) {
    this.#signatures = signatures;
  }

  /** Returns the path and query that download a snapshot's file until `expiresAt` (epoch milliseconds). */
  sign(snapshotId: string, expiresAt: number, generation: number): string {
    const path = `${FILES_PREFIX}${snapshotId}.ndjson.gz`;
    const query = new URLSearchParams({
      'X-Expires': String(expiresAt),
      'X-Generation': String(generation),
      'X-Signature': this.#signatures.of(path, String(expiresAt), String(generation)),
    });
    return `${path}?${query.toString()}`;
  }

  /** Checks a request; returns null if it is let through. */
  check(path: string, query: URLSearchParams, now: number, generation: number): FileRefusal | null {
    const expires = query.get('X-Expires') ?? '';
    const signed = query.get('X-Generation') ?? '';
    if (query.get('X-Signature') !== this.#signatures.of(path, expires, signed)) return 'bad_signature';
    if (Number(signed) < generation) return 'revoked';
    return now >= Number(expires) ? 'expired' : null;
  }
}

/** Returns the error body of the files origin, in the style of an object store. */
export function fileError(refusal: FileRefusal | 'freed'): string {
  const [code, message] = {
    expired: ['AccessDenied', 'Request has expired'],
    revoked: ['ExpiredToken', 'The provided token has expired.'],
    bad_signature: ['SignatureDoesNotMatch', 'The request signature does not match.'],
    freed: ['NoSuchKey', 'The specified key does not exist.'],
  }[refusal];
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message></Error>`;
}

export function snapshotOf(path: string): string | null {
  return /^\/files\/([^/]+)\.ndjson\.gz$/.exec(path)?.[1] ?? null;
}

/** Returns the headers that describe the object, by how it is compressed. */
export function fileHeaders(dialect: Dialect): Record<string, string> {
  return {
    'Content-Type': dialect.gzipFile === 'encoding' ? 'application/x-ndjson' : 'application/gzip',
    ...(dialect.gzipFile === 'content' ? {} : { 'Content-Encoding': 'gzip' }),
  };
}

/** Returns the file's bytes as transmitted: gzipped NDJSON (partner rules 2.6), compressed as it is read. */
export function fileStream(dialect: Dialect, lines: Iterable<string>): Readable {
  const source = Readable.from(chunks(lines), { objectMode: false });
  const layers = dialect.gzipFile === 'both' ? 2 : 1;
  return Array.from({ length: layers }).reduce<Readable>(throughGzip, source);
}

function throughGzip(source: Readable): Readable {
  // The callback has nothing to do: pipeline destroys both ends, and the reader of the last one sees the error.
  return pipeline(source, createGzip({ level: 1 }), () => {});
}

function* chunks(lines: Iterable<string>): Generator<Buffer> {
  let pending = '';
  for (const line of lines) {
    pending += line;
    if (pending.length < CHUNK_CHARS) continue;
    yield Buffer.from(pending);
    pending = '';
  }
  if (pending.length > 0) yield Buffer.from(pending);
}
