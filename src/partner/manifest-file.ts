import { pipeline } from 'node:stream';
import split2 from 'split2';
import { Agent, type Dispatcher } from 'undici';
import {
  classifyAnswer,
  classifyFailure,
  failureCode,
  NOT_HTTP,
  PartnerError,
  safeCause,
  type PartnerErrorKind,
} from './errors.ts';
import { gunzipIfGzip, metered, withBoundedLines, withReadableLines } from './file-stream.ts';
import { lineReader, type ManifestLine, type RejectedLine } from './manifest-lines.ts';
import {
  ADDRESS_REFUSED,
  checkFilesUrl,
  filesReach,
  type FilesOrigins,
  guardedLookup,
  refuseResolved,
  type Resolver,
} from './origin.ts';
import { proxyFor, type ProxySettings, type ProxySource } from './proxy.ts';
import type { SecretUrl } from './secret-url.ts';
import { factsOfWay, tunnelConnector } from './tunnel.ts';

/** Limits of one manifest file. Exceeding any but `lineBytes` is 'file-too-large'. */
interface ManifestFileCaps {
  /** Bytes over the wire; by default 8 GiB. */
  compressedBytes: number;
  /** Bytes after decompression; by default 64 GiB. */
  bytes: number;
  /** Bytes of one line; by default 64 KiB. A longer line is rejected, the others are read. */
  lineBytes: number;
  /** By default 100 million. */
  lines: number;
}

export interface ManifestFileOptions {
  url: SecretUrl;
  /** The API's base URL; decides whether a files origin on loopback is allowed. */
  baseUrl: URL;
  /** The only origins that may serve the file, if they are listed. */
  origins?: FilesOrigins | undefined;
  /** Milliseconds for the whole download, including the consumer's own time. */
  timeoutMs: number;
  /** Milliseconds to wait for the headers, and between two chunks; by default 60 s. */
  idleTimeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  caps?: Partial<ManifestFileCaps> | undefined;
  /** Lines per batch, including rejected ones; by default 500. */
  batchSize?: number | undefined;
  /** By default the system's resolver. */
  resolve?: Resolver | undefined;
  /** Without it, the download is direct. */
  proxy?: ProxySettings | undefined;
}

/**
 * Consecutive lines of the file. `bytes` is the number of bytes received over the wire so far; `ageSeconds` is how
 * long a cache says it has kept the file, 0 if none says so.
 */
export interface ManifestBatch {
  lines: ManifestLine[];
  rejected: RejectedLine[];
  bytes: number;
  ageSeconds: number;
}

const DEFAULT_CAPS: ManifestFileCaps = {
  compressedBytes: 8 * 1024 ** 3,
  bytes: 64 * 1024 ** 3,
  lineBytes: 64 * 1024,
  lines: 100_000_000,
};
const DEFAULT_IDLE_MS = 60_000;
const DEFAULT_BATCH_SIZE = 500;
/** Connection failures that mean a truncated body, once the body has begun. */
const CUT_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_SOCKET',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_INFO',
]);

interface Progress {
  bytes: number;
  ageSeconds: number;
  bodyBegun: boolean;
}

/** What the reading of the body needs. */
interface FileReading {
  readonly url: SecretUrl;
  readonly caps: ManifestFileCaps;
  readonly batchSize: number;
  readonly progress: Progress;
}

function fault(kind: PartnerErrorKind, detail: string): PartnerError {
  return new PartnerError(kind, 'manifest-file', { detail });
}

/** Collects lines into batches. `add` returns a batch when it is full, `rest` the last one, if any. */
class Batcher {
  readonly #read: ReturnType<typeof lineReader>;
  readonly #reading: FileReading;
  #count = 0;
  #lines: ManifestLine[] = [];
  #rejected: RejectedLine[] = [];

  constructor(reading: FileReading) {
    // An error page in place of the file may quote the very signature that was requested.
    this.#read = lineReader(reading.caps.lineBytes, (text) => reading.url.hideIn(text));
    this.#reading = reading;
  }

  add(text: string): ManifestBatch | undefined {
    const { caps, batchSize } = this.#reading;
    this.#count += 1;
    if (this.#count > caps.lines) throw fault('file-too-large', `over ${caps.lines} lines`);
    const line = this.#read(text, this.#count);
    if (line === null) return undefined;
    if ('reason' in line) this.#rejected.push(line);
    else this.#lines.push(line);
    return this.#lines.length + this.#rejected.length >= batchSize ? this.rest() : undefined;
  }

  rest(): ManifestBatch | undefined {
    if (this.#lines.length + this.#rejected.length === 0) return undefined;
    const { bytes, ageSeconds } = this.#reading.progress;
    const batch: ManifestBatch = { lines: this.#lines, rejected: this.#rejected, bytes, ageSeconds };
    this.#lines = [];
    this.#rejected = [];
    return batch;
  }
}

function limited(cap: number, what: string): (total: number) => void {
  return (total) => {
    if (total > cap) throw fault('file-too-large', `over ${cap} bytes ${what}`);
  };
}

async function* batchesOf(body: AsyncIterable<Buffer>, reading: FileReading) {
  const { caps, progress } = reading;
  const onWire = limited(caps.compressedBytes, 'over the wire');
  const wire = metered(body, (total) => {
    progress.bytes = total;
    onWire(total);
  });
  // Twice: the object may itself be gzip and be sent with Content-Encoding gzip as well.
  const once = metered(gunzipIfGzip(wire), limited(caps.bytes, 'decompressed'));
  const plain = metered(gunzipIfGzip(once), limited(caps.bytes, 'decompressed'));
  const batcher = new Batcher(reading);
  const batches = split2('\n', (line) => batcher.add(line), { readableHighWaterMark: 1 });
  // A failure upstream also destroys `batches`, so the `yield*` below throws it.
  pipeline(withReadableLines(withBoundedLines(plain, caps.lineBytes)), batches, () => undefined);
  yield* batches as AsyncIterable<ManifestBatch>;
  // A body shorter than its Content-Length has already failed above.
  const rest = batcher.rest();
  if (rest !== undefined) yield rest;
}

/** Checks the status and headers of the answer; throws if the body must not be read. */
function checkHead({ statusCode, headers }: Dispatcher.ResponseData, caps: ManifestFileCaps): void {
  const kind = classifyAnswer('manifest-file', statusCode, null);
  if (kind !== null) throw new PartnerError(kind, 'manifest-file', { status: statusCode });
  const encodings = String(headers['content-encoding'] ?? '');
  if (/\b(br|zstd|deflate|compress)\b/i.test(encodings))
    throw fault('file-fault', 'Content-Encoding other than gzip');
  const length = Number(headers['content-length'] ?? Number.NaN);
  if (Number.isSafeInteger(length)) limited(caps.compressedBytes, 'announced')(length);
}

/** Returns for how many seconds a cache has kept the answer; 0 if none says so. */
function ageOf({ headers }: Dispatcher.ResponseData): number {
  const { age } = headers;
  return typeof age === 'string' && /^\d{1,9}$/.test(age) ? Number(age) : 0;
}

const NAMED_BY = "the address in the partner's manifest";

interface Download extends Pick<ManifestFileOptions, 'url' | 'signal'> {
  readonly timer: AbortSignal;
  readonly proxy: ProxySource | null;
  readonly bodyBegun: boolean;
}

function asPartnerError(error: unknown, { url, signal, timer, proxy, bodyBegun }: Download): PartnerError {
  if (error instanceof PartnerError) return error;
  const cause = safeCause(error, url.secrets());
  const code = failureCode(error) ?? '';
  let kind = classifyFailure(error, signal, timer);
  if (kind === 'network') {
    if (code === ADDRESS_REFUSED) kind = 'url-refused';
    else if (code.startsWith('Z_') || (bodyBegun && (CUT_CODES.has(code) || code === NOT_HTTP)))
      kind = 'file-corrupt';
  }
  if (kind === 'aborted') return new PartnerError(kind, 'manifest-file');
  return new PartnerError(kind, 'manifest-file', { ...factsOfWay(error, kind, proxy, NAMED_BY), cause });
}

/**
 * Downloads and reads the manifest file (partner rules 2.6, 4.2.9): gzip by content, by Content-Encoding, by both,
 * or plain NDJSON. Sends no Authorization header and follows no redirect. Checks the address that it connects to
 * or, if a proxy connects, the address that the host resolves to here.
 * Yields batches in the file's order, one at a time; only a few are in memory. The batches must not be used until
 * the generator has ended without an error.
 * Throws PartnerError: 'url-refused', 'url-expired' (403: ask for the manifest again), 'file-fault',
 * 'file-corrupt', 'file-too-large', 'network', 'timeout', 'aborted'.
 */
export async function* readManifestFile(
  options: ManifestFileOptions,
): AsyncGenerator<ManifestBatch, void, undefined> {
  const { url, origins = null, batchSize = DEFAULT_BATCH_SIZE } = options;
  const target = url.reveal();
  const problem = checkFilesUrl(target, options.baseUrl, origins);
  if (problem !== null) throw fault('url-refused', problem);
  const caps: ManifestFileCaps = { ...DEFAULT_CAPS, ...options.caps };
  const idleMs = options.idleTimeoutMs ?? DEFAULT_IDLE_MS;
  const timer = AbortSignal.timeout(options.timeoutMs);
  const signal = options.signal === undefined ? timer : AbortSignal.any([options.signal, timer]);
  const proxy = proxyFor(target, options.proxy);
  const reach = filesReach(target, origins);
  const agent = new Agent({
    allowH2: false,
    connections: 1,
    connect:
      proxy === null
        ? { lookup: guardedLookup(reach, options.resolve), timeout: idleMs }
        : tunnelConnector({
            proxy,
            timeoutMs: idleMs,
            signal,
            check: (host) => refuseResolved(host, reach, options.resolve),
          }),
    headersTimeout: idleMs,
    bodyTimeout: idleMs,
  });
  const progress: Progress = { bytes: 0, ageSeconds: 0, bodyBegun: false };
  try {
    const response = await agent.request({
      origin: target.origin,
      path: `${target.pathname}${target.search}`,
      method: 'GET',
      headers: { 'accept-encoding': 'gzip' },
      signal,
    });
    // Without a listener, an error of a body that is never read would be an uncaught exception.
    response.body.on('error', () => undefined);
    checkHead(response, caps);
    progress.ageSeconds = ageOf(response);
    progress.bodyBegun = true;
    yield* batchesOf(response.body, { url, caps, batchSize, progress });
  } catch (error) {
    throw asPartnerError(error, { url, signal: options.signal, timer, proxy, bodyBegun: progress.bodyBegun });
  } finally {
    await agent.destroy();
  }
}
