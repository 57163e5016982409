const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PROPFIND',
  'PRI',
  'get',
  'G\0T',
  'GETGETGETGETGETGETGETGET',
  '',
];
const TARGETS = [
  '/metrics',
  '/livez',
  '/readyz',
  '/',
  '/status.json',
  '*',
  '',
  '/metrics?a=b',
  '/metrics/../livez',
  '/%2e%2e/metrics',
  '//metrics',
  '/metrics%00',
  '/\0',
  '/metrics#x',
  'http://127.0.0.1/metrics',
  'https://evil.example/metrics',
  'metrics',
  '\\metrics',
  '/ü',
  '/a b',
  '/__proto__',
  '/constructor',
  '/hasOwnProperty',
  '127.0.0.1:80',
  'http://[::1',
  '/metrics;a',
  `/${'a'.repeat(9000)}`,
  `/${'%00'.repeat(500)}`,
];
const VERSIONS = [
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/0.9',
  'HTTP/2.0',
  'HTTP/9.9',
  'http/1.1',
  'HTTP/1.1 ',
  '',
  'HTTP/1.1\0',
  'RTSP/1.0',
  'HTTP/1.10',
];
const HEADERS = [
  'Host: x',
  'Host: localhost\r\nHost: y',
  'Host: ',
  'Host: x y',
  'Host: a\0b',
  'Connection: keep-alive',
  'Connection: close',
  'Connection: Upgrade\r\nUpgrade: websocket',
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ',
  'Expect: 100-continue',
  'Expect: the worst',
  'Content-Length: 0',
  'Content-Length: 5',
  'Content-Length: 5\r\nContent-Length: 6',
  'Content-Length: 5, 5',
  'Content-Length: -1',
  'Content-Length: 0x10',
  'Content-Length: 99999999999999999999',
  'Content-Length: +5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 4',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
  'Accept-Encoding: gzip, br;q=nan',
  'Range: bytes=0-,0-,0-,0-',
  'Cookie: a=b',
  'X: \x7f',
  'X-Ünï: ß',
  ': nothing',
  'no colon',
  ' folded: yes',
  'A: b\r\n folded',
  'A: b\nC: d',
  'A: b\rC: d',
  'Content-Type: text/html;charset=\0',
  'Origin: https://evil.example',
  'Authorization: Basic AAAA',
  'X-Forwarded-For: 127.0.0.1',
  'Trailer: Content-Length',
  'TE: trailers',
  'Keep-Alive: timeout=99999',
];
const BODIES = [
  '',
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  'FFFFFFFFFFFFFFFF\r\n',
  '-1\r\n',
  '0\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n',
  '5;ext=\n\r\nhello',
  '\0\0\0\0',
  'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n',
];

type Random = () => number;

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;

/** Draws one request that is wrong in some way, or in none, in one to three pieces. */
export function fuzzCase(random: Random): Buffer[] {
  const usual = random() < 0.5;
  const method = usual ? 'GET' : pick(random, METHODS);
  const target = random() < 0.5 ? '/livez' : pick(random, TARGETS);
  const version = random() < 0.7 ? 'HTTP/1.1' : pick(random, VERSIONS);
  const headers = [
    random() < 0.9 ? 'Host: localhost' : 'Host: x',
    ...Array.from({ length: Math.floor(random() * 4) }, () => pick(random, HEADERS)),
  ];
  if (random() < 0.05) headers.push(...Array.from({ length: 3000 }, (_, n) => `A${n}: b`));
  if (random() < 0.05) headers.push(`Big: ${'b'.repeat(Math.floor(random() * 200_000))}`);
  const newline = random() < 0.95 ? '\r\n' : pick(random, ['\n', '\r', '\0']);
  const head = [`${method} ${target} ${version}`, ...headers].join(newline);
  const text = `${head}${newline}${newline}${pick(random, BODIES)}`;
  const whole = Buffer.concat(
    Array.from({ length: random() < 0.1 ? 20 : 1 }, () => Buffer.from(text, 'latin1')),
  );
  return pieces(random, mutated(random, whole));
}

/** Changes bytes in one case of four, and sometimes cuts off the rest. */
function mutated(random: Random, bytes: Buffer): Buffer {
  if (random() < 0.75) return bytes;
  const changed = Buffer.from(bytes);
  for (let n = Math.ceil(random() * 8); n > 0; n -= 1)
    changed[Math.floor(random() * Math.min(changed.length, 200))] = Math.floor(random() * 256);
  return random() < 0.3 ? changed.subarray(0, Math.floor(random() * changed.length)) : changed;
}

function pieces(random: Random, bytes: Buffer): Buffer[] {
  const count = 1 + Math.floor(random() * 3);
  const at = Array.from({ length: count - 1 }, () => Math.floor(random() * bytes.length)).toSorted(
    (a, b) => a - b,
  );
  return [0, ...at].map((from, n) => bytes.subarray(from, at[n] ?? bytes.length));
}

/** Requests that two servers may delimit differently, so that each could hide another request. */
export const SMUGGLED: readonly string[] = [
  'POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nContent-Length: 0\r\n\r\n',
  'POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0, 6\r\n\r\n',
  'POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'POST /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 33\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: +0\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0x0\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nX: y\rContent-Length: 3\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\nContent-Length: 3\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\n Content-Length: 3\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0;a=\n\r\n\r\n',
];
