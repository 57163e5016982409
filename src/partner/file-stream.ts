import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { withBrokenEscaped } from './text.ts';

const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** Passes chunks on, telling `seen` the running total of bytes before each; `seen` may throw to stop the stream. */
export async function* metered(
  source: AsyncIterable<Buffer>,
  seen: (total: number) => void,
): AsyncGenerator<Buffer> {
  let total = 0;
  for await (const chunk of source) {
    total += chunk.length;
    seen(total);
    yield chunk;
  }
}

async function* chained(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  try {
    if (head.length > 0) yield head;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

/**
 * Decompresses what begins as gzip and passes anything else on as it is. Several members in a row are one file.
 * Fails with zlib's codes on damage; a cut at a member's end raises no error and must be told by counting.
 */
export async function* gunzipIfGzip(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  while (head.length < 2) {
    const next = await chunks.next();
    if (next.done === true) break;
    head = head.length === 0 ? next.value : Buffer.concat([head, next.value]);
  }
  const whole = chained(head, chunks);
  if (head[0] !== 0x1f || head[1] !== 0x8b) {
    yield* whole;
    return;
  }
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  // A failure of the source destroys `gunzip` with it, so the loop below throws it.
  pipeline(whole, gunzip, () => undefined);
  yield* gunzip as AsyncIterable<Buffer>;
}

/**
 * Cuts every line longer than `lineBytes` down to `lineBytes` + 1 bytes, so that what splits the lines holds no more
 * than that of any line and can still tell the long ones. Lines within the limit pass untouched.
 */
export async function* withBoundedLines(
  source: AsyncIterable<Buffer>,
  lineBytes: number,
): AsyncGenerator<Buffer> {
  let open = 0; // bytes of the unfinished line that were passed on already
  let dropping = false; // inside the rest of a line that was cut
  for await (const chunk of source) {
    let start: number = dropping ? chunk.indexOf(NEWLINE) : 0;
    if (start < 0) continue;
    let at = start; // where the line that is being measured goes on
    if (dropping) {
      dropping = false;
      open = 0;
      at += 1;
    }
    while (chunk.length - at > lineBytes - open) {
      const limit = at + lineBytes - open; // a newline up to here ends the line in time
      const newline: number = chunk.subarray(at, limit + 1).lastIndexOf(NEWLINE);
      open = 0;
      if (newline >= 0) {
        at += newline + 1;
        continue;
      }
      yield chunk.subarray(start, limit + 1);
      start = chunk.indexOf(NEWLINE, limit + 1); // kept: it ends the line that was cut
      dropping = start < 0;
      if (dropping) break;
      at = start + 1;
    }
    if (dropping) continue;
    yield chunk.subarray(start);
    const last = chunk.subarray(at).lastIndexOf(NEWLINE);
    open = last < 0 ? open + chunk.length - at : chunk.length - at - last - 1;
  }
}

/**
 * Passes whole lines on, with bytes that are no UTF-8 escaped, so that what decodes them makes no other characters of
 * them. In: lines within bounds (withBoundedLines), as it holds the unfinished one.
 */
export async function* withReadableLines(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let open: Buffer[] = [];
  for await (const chunk of source) {
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      yield withBrokenEscaped(
        open.length === 0 ? chunk.subarray(0, end) : Buffer.concat([...open, chunk.subarray(0, end)]),
      );
      open = [];
    }
    if (end < chunk.length) open.push(chunk.subarray(end));
  }
  if (open.length > 0) yield withBrokenEscaped(Buffer.concat(open));
}
