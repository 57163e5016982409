import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { withBrokenEscaped } from './text.ts';

const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** Passes chunks on, calling `seen` before each with the bytes up to its end. `seen` may throw to stop the stream. */
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
 * Decompresses a stream that begins as gzip and passes any other on unchanged. Several members in a row are one
 * file. Fails with zlib's codes if the data is damaged; a cut at a member's end is detected only by counting lines.
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
  // A failure of the source also destroys `gunzip`, so the `yield*` below throws it.
  pipeline(whole, gunzip, () => undefined);
  yield* gunzip as AsyncIterable<Buffer>;
}

/**
 * Cuts every line longer than `lineBytes` down to `lineBytes` + 1 bytes, so that the splitter never holds more of a
 * line but can still recognise the long ones. Lines within the limit pass unchanged.
 */
export async function* withBoundedLines(
  source: AsyncIterable<Buffer>,
  lineBytes: number,
): AsyncGenerator<Buffer> {
  let open = 0; // bytes of the unfinished line that were already passed on
  let dropping = false; // inside the rest of a line that was cut
  for await (const chunk of source) {
    let start: number = dropping ? chunk.indexOf(NEWLINE) : 0;
    if (start < 0) continue;
    let at = start; // where the line that is being measured continues
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
      start = chunk.indexOf(NEWLINE, limit + 1); // included: it ends the line that was cut
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
 * Passes whole lines on, with invalid UTF-8 escaped, so that decoding does not turn it into other characters.
 * Expects bounded lines (withBoundedLines), because it buffers the unfinished one.
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
