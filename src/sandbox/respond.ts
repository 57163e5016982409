import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import type { Fault } from './faults.ts';
import { fileError, fileHeaders, fileStream, type FileRefusal } from './files.ts';
import { REFUSALS } from './gate.ts';
import type { Dialect } from './options.ts';
import { SERVICE_ERROR, type Json } from './wire.ts';

/** An answer ready to send. A stream is sent chunked, bytes with their length. */
export interface Reply {
  status: number;
  headers: Record<string, string>;
  body: Buffer | Readable;
}

/** Creates a JSON answer of an API route with the headers of partner rules 1.8 and 8.cache; `now` in milliseconds. */
export function jsonReply(
  answer: { status: number; body: object },
  now: number,
  cacheControl?: string | null,
): Reply {
  const headers: Record<string, string> = {
    ...apiHeaders(now),
    'Content-Type': 'application/json; charset=utf-8',
  };
  if (typeof cacheControl === 'string') headers['Cache-Control'] = cacheControl;
  return { status: answer.status, headers, body: Buffer.from(JSON.stringify(answer.body)) };
}

export function fileReply(dialect: Dialect, lines: Iterable<string>, now: number): Reply {
  return {
    status: 200,
    headers: { ...date(now), ...fileHeaders(dialect) },
    body: fileStream(dialect, lines),
  };
}

export function bytesReply(
  contentType: string,
  body: Buffer,
  now: number,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return { status: 200, headers: { ...date(now), 'Content-Type': contentType, ...headers }, body };
}

/** Creates the page's refusal to a browser that used another host name. */
export function wrongHostReply(now: number): Reply {
  const body = Buffer.from(
    'Open this page as http://localhost or http://127.0.0.1, with the port of the sandbox.\n',
  );
  return { status: 403, headers: { ...date(now), 'Content-Type': 'text/plain; charset=utf-8' }, body };
}

/** Creates an XML refusal like an object store's: 404 if the snapshot's file was freed, else 403. */
export function fileErrorReply(refusal: FileRefusal | 'freed', now: number): Reply {
  const headers = { ...date(now), 'Content-Type': 'application/xml' };
  return { status: refusal === 'freed' ? 404 : 403, headers, body: Buffer.from(fileError(refusal)) };
}

/** Creates the answer of a fault with `status` or `body`, which replaces the route's own. */
export function faultReply(fault: Fault, origin: 'api' | 'files' | 'page', now: number): Reply {
  const status = fault.status ?? 200;
  const body = fault.body ?? (origin === 'files' ? fileError('expired') : defaultBody(status));
  if (typeof body !== 'string') return jsonReply({ status, body }, now);
  const type = origin === 'files' ? 'application/xml' : 'text/html; charset=utf-8';
  return { status, headers: { ...apiHeaders(now), 'Content-Type': type }, body: Buffer.from(body) };
}

/** Returns what the partner sends with a status, for a fault that names no body (partner rules 7.2). */
function defaultBody(status: number): Json {
  if (status === 401) return REFUSALS.absent.body;
  if (status === 403) return REFUSALS.wrong_secret.body;
  return status === 500 ? SERVICE_ERROR : { statusCode: status, message: 'Fault' };
}

function apiHeaders(now: number): Record<string, string> {
  return { ...date(now), 'Access-Control-Allow-Origin': '*' };
}

function date(now: number): { Date: string } {
  return { Date: new Date(now).toUTCString() };
}

/** Gzips a successful answer if the request accepts it (partner rule 1.3), and tells caches that it depends on it. */
export function compress(reply: Reply, acceptEncoding: string | undefined): Reply {
  if (reply.status >= 300 || !Buffer.isBuffer(reply.body)) return reply;
  const headers = { ...reply.headers, Vary: 'Accept-Encoding' };
  if (!acceptsGzip(acceptEncoding)) return { ...reply, headers };
  return { ...reply, headers: { ...headers, 'Content-Encoding': 'gzip' }, body: gzipSync(reply.body) };
}

/** Returns whether gzip is named with a weight other than 0 (RFC 9110, 12.4.2). */
function acceptsGzip(header = ''): boolean {
  return header.split(',').some((part) => {
    const [coding = '', ...parameters] = part.split(';').map((word) => word.trim().toLowerCase());
    return coding === 'gzip' && !parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter));
  });
}

/** Sends an answer, changed by the fault's `headers`, `file` and `truncateAt`. Resolves once the socket has it. */
export async function send(response: ServerResponse, reply: Reply, fault: Fault | undefined): Promise<void> {
  const headers = replaced(reply.headers, fault?.headers ?? {});
  const whole = fault?.file !== undefined || fault?.truncateAt !== undefined;
  if (!whole && !Buffer.isBuffer(reply.body)) {
    response.writeHead(reply.status, headers);
    return pipe(reply.body, response);
  }
  let body = Buffer.isBuffer(reply.body) ? reply.body : await collect(reply.body);
  if (fault?.file !== undefined) body = fault.file(body);
  const part = body.subarray(0, fault?.truncateAt ?? body.length);
  const clean = part.length === body.length || fault?.clean === true;
  const length = { 'Content-Length': String(clean ? part.length : body.length) };
  response.writeHead(reply.status, replaced(length, headers));
  if (clean) {
    response.end(part);
    return;
  }
  if (part.length > 0) await new Promise((resolve) => void response.write(part, resolve));
  else response.flushHeaders();
  response.socket?.destroySoon();
}

/** Replaces headers of the same name, ignoring case. */
function replaced(
  headers: Readonly<Record<string, string>>,
  by: Readonly<Record<string, string>>,
): Record<string, string> {
  const names = new Set(Object.keys(by).map((name) => name.toLowerCase()));
  const kept = Object.entries(headers).filter(([name]) => !names.has(name.toLowerCase()));
  return Object.fromEntries([...kept, ...Object.entries(by)]);
}

async function collect(stream: Readable): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

/** Resolves when the stream has ended or the client has gone; neither is an error of the server. */
async function pipe(source: Readable, response: ServerResponse): Promise<void> {
  if (response.closed) {
    source.destroy();
    return;
  }
  await new Promise<void>((resolve) => {
    response.once('close', () => {
      source.destroy();
      resolve();
    });
    source.once('error', () => response.destroy());
    source.pipe(response);
  });
}
