import { gzipSync } from 'node:zlib';
import { badFile, goodHead, type ManifestCase } from './manifest-case.ts';
import { seeded } from './random.ts';
import { membersOf, metaOf, NEXT, sendBytes, sendCut, sendFlood, textOf } from './upstream.ts';

const WHOLE = gzipSync(textOf(NEXT));
const HEADER = 10;
const TRAILER = 8;
const MEMBERS = membersOf(NEXT, 50);
const JOINED = Buffer.concat(MEMBERS);
const DAMAGE = ['file-corrupt'];
const NOT_GZIP = ['line-count-mismatch'];
const EITHER = [...DAMAGE, ...NOT_GZIP];

/**
 * Returns objects that end too early at every kind of place (header, data, trailer), in an otherwise complete
 * answer.
 */
function cutObjects(): ManifestCase[] {
  const random = seeded(4_001);
  const inData = Array.from({ length: 24 }, () => HEADER + random(WHOLE.length - HEADER - TRAILER));
  const inTrailer = Array.from({ length: TRAILER }, (_, n) => WHOLE.length - 1 - n);
  const places = [...new Set([0, 1, 2, 3, 5, 9, 10, 11, ...inData, ...inTrailer])];
  return places.map((at) =>
    badFile(
      `an object cut after ${at} of ${WHOLE.length} bytes`,
      at < 2 ? NOT_GZIP : DAMAGE,
      WHOLE.subarray(0, at),
    ),
  );
}

/** Returns connections that end before Content-Length is reached. */
function cutConnections(): ManifestCase[] {
  return [0, 1, 10, 100, 1000, WHOLE.length >> 1, WHOLE.length - TRAILER, WHOLE.length - 1].map((at) =>
    badFile(`a connection lost after ${at} bytes`, DAMAGE, (response) => sendCut(response, WHOLE, at)),
  );
}

/** Returns files of several gzip members that end at, or within a few bytes of, a member's end. */
function cutMembers(): ManifestCase[] {
  const ends = MEMBERS.map((_, n) => Buffer.concat(MEMBERS.slice(0, n)).length).slice(1);
  return ends.flatMap((end) =>
    [0, 1, 2, 9, 12, -1, -8].map((off) =>
      badFile(
        `members cut ${off} bytes from the end of one at ${end}`,
        off === 0 ? NOT_GZIP : EITHER,
        JOINED.subarray(0, end + off),
      ),
    ),
  );
}

function flipped(body: Buffer, bit: number): Buffer {
  const copy = Buffer.from(body);
  copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return copy;
}

/**
 * Returns files with one wrong bit. Time, flags and system of the header mean nothing, so only bits of the magic
 * are flipped there.
 */
function flips(): ManifestCase[] {
  const random = seeded(4_002);
  const data = Array.from({ length: 40 }, () => HEADER * 8 + random((WHOLE.length - HEADER) * 8));
  const second = (MEMBERS[0]?.length ?? 0) * 8;
  return [
    ...[0, 3, 8, 15, 16, 19].map((bit) =>
      badFile(`bit ${bit} of the magic turned`, EITHER, flipped(WHOLE, bit)),
    ),
    ...[...new Set(data)].map((bit) => badFile(`bit ${bit} turned`, DAMAGE, flipped(WHOLE, bit))),
    ...[0, 9, 16].map((bit) =>
      badFile(`bit ${bit} of a later member turned`, EITHER, flipped(JOINED, second + bit)),
    ),
  ];
}

const MIB = 1024 * 1024;
const ONE_LINE = textOf(NEXT.slice(0, 1));

/** Returns small files that expand to much, and huge lines. */
function floods(): ManifestCase[] {
  const flood = (name: string, piece: string, bytes: number, layers: number) =>
    badFile(name, NOT_GZIP, (response) => sendFlood(response, piece, bytes, layers));
  return [
    flood('a line of 200 MB', 'a', 200 * MIB, 0),
    flood('a line of 200 MB, gzipped 1,000 : 1', 'a', 200 * MIB, 1),
    flood('a line of 200 MB that never closes its text', `{"sku":"${'a'.repeat(50)}`, 200 * MIB, 0),
    flood('300 MB of zeros, gzipped 1,000 : 1', '\0', 300 * MIB, 1),
    flood('300 MB of zeros, gzipped twice', '\0', 300 * MIB, 2),
    flood('zeros, gzipped three times', '\0', 50 * MIB, 3),
    flood('4 MB of newlines', '\n', 4 * MIB, 1),
    flood('lines of 1 MB', `${'a'.repeat(MIB)}\n`, 64 * MIB, 1),
    flood('a good line 200,000 times', ONE_LINE, 200_000 * ONE_LINE.length, 1),
    flood('60,000 lines that are not JSON', '{"sku":\n', 60_000 * 8, 1),
  ];
}

const HTML = '<!DOCTYPE html><html><body><h1>Sign in</h1></body></html>\n';

/** Returns answers of the files origin that are not the file. */
function heads(): ManifestCase[] {
  const status = (code: number, headers: Record<string, string> = {}) =>
    badFile(`status ${code}`, code === 403 ? 'url-expired' : 'file-fault', (response) =>
      sendBytes(response, code === 204 || code === 304 ? '' : WHOLE, { status: code, headers }),
    );
  const encoded = (encoding: string) =>
    badFile(`Content-Encoding ${encoding}`, 'file-fault', (response) =>
      sendBytes(response, WHOLE, { headers: { 'content-encoding': encoding } }),
    );
  const raw = (name: string, because: readonly string[] | string, text: string) =>
    badFile(name, because, (response) => {
      response.socket?.write(text);
      response.socket?.end();
    });
  return [
    ...[201, 204, 206, 304, 400, 403, 404, 410, 416, 500, 502, 503].map((code) => status(code)),
    status(302, { location: 'http://127.0.0.1:1/elsewhere' }),
    ...['br', 'deflate', 'zstd', 'gzip, br'].map(encoded),
    badFile('HTML with status 200', NOT_GZIP, Buffer.from(HTML)),
    badFile('gzipped HTML', NOT_GZIP, gzipSync(HTML)),
    badFile('an empty body', NOT_GZIP, Buffer.alloc(0)),
    badFile('an empty body, gzipped', NOT_GZIP, gzipSync('')),
    badFile(
      'XML of the object store with status 200',
      NOT_GZIP,
      Buffer.from('<Error><Code>SlowDown</Code></Error>'),
    ),
    badFile("the manifest route's own answer", NOT_GZIP, Buffer.from(JSON.stringify(metaOf(NEXT)))),
    raw('9 GiB announced', 'file-too-large', 'HTTP/1.1 200 OK\r\ncontent-length: 9663676416\r\n\r\nabc'),
    raw(
      'a Content-Length that is no number',
      'network',
      'HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\nabc',
    ),
    raw('no HTTP at all', 'network', 'SSH-2.0-OpenSSH_9.6\r\n'),
    raw('a connection closed without a word', 'network', ''),
    raw(
      'a broken chunk',
      ['file-corrupt', 'network'],
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n',
    ),
    raw(
      'a chunk cut short',
      'file-corrupt',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nabc',
    ),
  ];
}

/** Returns counts that do not fit, duplicates, and manifests that have shrunk. */
function counts(): ManifestCase[] {
  const all = NEXT.length;
  const counted = (skuCount: unknown) =>
    badFile(`sku_count ${JSON.stringify(skuCount)} for ${all} lines`, NOT_GZIP, WHOLE, {
      manifest: goodHead(NEXT, { sku_count: skuCount }),
    });
  const part = (name: string, because: string, lines: readonly unknown[], of: readonly unknown[] = lines) =>
    badFile(name, because, gzipSync(textOf(lines)), { manifest: goodHead(of) });
  const same = NEXT.map(() => NEXT[0]);
  return [
    ...[0, 1, all - 1, all + 1, all * 10, 1e15, String(all + 1)].map(counted),
    part('a line too many', 'line-count-mismatch', [...NEXT, NEXT[0]], NEXT),
    part('every line twice', 'line-count-mismatch', [...NEXT, ...NEXT], NEXT),
    part('one SKU in every line', 'shrunk', same),
    part(
      'two SKUs in turn',
      'shrunk',
      NEXT.map((_, n) => NEXT[n % 2]),
    ),
    part('no line', 'shrunk', []),
    ...[1, 10, 30, 49].map((percent) => {
      const lines = NEXT.slice(0, Math.floor((all * percent) / 100));
      return part(`${percent} % of the former size`, 'shrunk', lines);
    }),
  ];
}

/** Files that are broken in their bytes, as answers, or in their counts. */
export const BROKEN_FILES: readonly ManifestCase[] = [
  ...cutObjects(),
  ...cutConnections(),
  ...cutMembers(),
  ...flips(),
  ...floods(),
  ...heads(),
  ...counts(),
];
