import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { createGzip, gzipSync } from 'node:zlib';

/** Answers one request. */
export type Reply = (response: ServerResponse) => unknown;

/** A line of the manifest as the partner writes it. */
export interface Line {
  readonly sku: string;
  readonly sizes: number;
  readonly hash: string | null;
  readonly price_source: string;
  readonly updated_at: string;
}

const COUNT = 300;
const NOW = new Date().toISOString();
export const AN_HOUR_AGO = new Date(Date.parse(NOW) - 3_600_000).toISOString();
const UPDATED_AT = '2026-11-20T00:00:00.000Z';

/** SKUs may have names that a plain object would lose or confuse. */
const NAMES: Readonly<Record<number, string>> = { 3: '__proto__', 4: 'constructor' };

export function skuNumber(n: number): string {
  return NAMES[n] ?? `SKU-${String(n).padStart(4, '0')}`;
}

function line(n: number, hash: string | null): Line {
  const price_source = hash === null ? 'live' : 'snapshot';
  return { sku: skuNumber(n), sizes: 2, hash, price_source, updated_at: UPDATED_AT };
}

const numbers = Array.from({ length: COUNT }, (_, n) => n);

/** The lines of the mirror's baseline. */
export const FORMER: readonly Line[] = numbers.map((n) => line(n, n % 20 === 0 ? null : `hash-${n}`));

/** The lines of the next snapshot, which differ a lot: any part of it that is applied by mistake changes the tables. */
export const NEXT: readonly Line[] = numbers.map((n) => line(n + 20, n % 15 === 0 ? null : `next-${n}`));

export function textOf(lines: readonly unknown[]): string {
  return lines.map((one) => `${typeof one === 'string' ? one : JSON.stringify(one)}\n`).join('');
}

/** Returns the lines as consecutive gzip members, which together are one file. */
export function membersOf(lines: readonly unknown[], each: number): Buffer[] {
  const members: Buffer[] = [];
  for (let at = 0; at < lines.length; at += each) members.push(gzipSync(textOf(lines.slice(at, at + each))));
  return members;
}

/** Returns the manifest route's answer; `sendJson` fills in its URL. */
export function metaOf(lines: readonly unknown[], id = 'next', generatedAt = NOW) {
  const live = lines.filter((one) => typeof one === 'object' && (one as Line).price_source === 'live').length;
  return {
    snapshot_id: id,
    generated_at: generatedAt,
    sku_count: lines.length,
    live_priced_sku_count: live,
    url: '{base}/file?sig=canary',
    url_expires_at: '2027-01-01T00:00:00.000Z',
  };
}

/** Returns a correct manifest. */
export function goodManifest(lines: readonly Line[], id?: string, generatedAt?: string) {
  return { meta: metaOf(lines, id, generatedAt), file: gzipSync(textOf(lines)) };
}

function baseOf(response: ServerResponse): string {
  return `http://${response.req.headers.host ?? ''}`;
}

/** Sends bytes as they are. */
export function sendBytes(
  response: ServerResponse,
  body: Buffer | string,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): void {
  response.writeHead(status, { 'content-length': String(Buffer.byteLength(body)), ...headers });
  response.end(body);
}

/** Sends a value or JSON text, with `{base}` replaced by the server's own address. */
export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const body = text.replaceAll('{base}', baseOf(response));
  sendBytes(response, body, { status, headers: { 'content-type': 'application/json' } });
}

/** Sends a head that promises the whole body, and closes the connection after `bytes`. */
export function sendCut(response: ServerResponse, body: Buffer, bytes: number): void {
  response.writeHead(200, { 'content-length': String(body.length) });
  response.write(body.subarray(0, bytes), () => setImmediate(() => response.destroy()));
  if (bytes === 0) {
    response.flushHeaders();
    setImmediate(() => response.destroy());
  }
}

/** Sends `head`, then repeats `piece` up to `bytes`, gzipped `layers` times, without buffering it. */
export function sendFlood(
  response: ServerResponse,
  piece: string,
  bytes: number,
  layers: number,
  head = '',
): void {
  const chunk = Buffer.from(piece.repeat(Math.max(1, Math.floor(65_536 / piece.length))));
  function* flood() {
    yield Buffer.from(head);
    for (let sent = 0; sent < bytes; sent += chunk.length) yield chunk;
  }
  response.writeHead(200);
  const gzips = Array.from({ length: layers }, () => createGzip({ level: 6 }));
  pipeline([Readable.from(flood()), ...gzips, response], () => undefined);
}
