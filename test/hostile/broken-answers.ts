import { gzipSync } from 'node:zlib';
import { type Reply, sendBytes, sendCut, sendFlood } from './upstream.ts';

/** A broken answer of the API, and the outcome that it must have. */
export interface BrokenAnswer {
  readonly name: string;
  readonly because: 'unreadable' | 'answer-too-large' | 'network';
  readonly reply: Reply;
}

const CAP = 64 * 1024 * 1024;

/**
 * Returns ways in which an answer with status 200 is not the JSON it should be, on any route. `good` is the
 * correct JSON.
 */
export function brokenAnswers(good: string): BrokenAnswer[] {
  const body = (name: string, content: string | Buffer): BrokenAnswer => ({
    name,
    because: 'unreadable',
    reply: (response) => sendBytes(response, content),
  });
  const other = (name: string, because: BrokenAnswer['because'], reply: Reply) => ({ name, because, reply });
  const zipped = gzipSync(good);
  return [
    body('HTML with status 200', '<!DOCTYPE html><html><body>Sign in</body></html>'),
    body('an empty body', ''),
    body('an empty body, gzipped', gzipSync('')),
    body('blanks', ' \n '),
    body('JSON cut short', good.slice(0, -3)),
    body('JSON cut in the middle', good.slice(0, good.length >> 1)),
    body('JSON twice', good + good),
    body('JSON with a comma too many', good.replace(/\}$/, ',}')),
    body('single quotes', good.replaceAll('"', "'")),
    body('gzip cut short', zipped.subarray(0, -9)),
    body('gzip cut to its header', zipped.subarray(0, 10)),
    body('gzip with a wrong sum', Buffer.concat([zipped.subarray(0, -8), Buffer.alloc(8)])),
    body('gzip with a bit turned', Buffer.from(zipped.map((byte, n) => (n === 30 ? byte ^ 4 : byte)))),
    body('gzip in gzip in gzip', gzipSync(gzipSync(zipped))),
    body('two byte order marks', `\uFEFF\uFEFF${good}`),
    body('a NUL at the end', `${good}\0`),
    body('UTF-16', Buffer.from(good, 'utf16le')),
    body('null', 'null'),
    body('true', 'true'),
    body('a number', '7'),
    body('a text', JSON.stringify(good)),
    body('the answer in an array', `[${good}]`),
    body('an empty object', '{}'),
    body('the answer in an envelope', `{"success":true,"data":${good}}`),
    body('the answer under __proto__', `{"__proto__":${good}}`),
    body('the answer under constructor', `{"constructor":{"prototype":${good}}}`),
    other('arrays, a million deep', 'answer-too-large', (response) =>
      sendBytes(response, `${'['.repeat(1e6)}${']'.repeat(1e6)}`),
    ),
    body('an error code with status 200', '{"message":"stale","code":"0014"}'),
    body('the good answer with an error code', good.replace(/^\{/, '{"code":"0010",')),
    other('the good answer, padded over the cap', 'answer-too-large', (response) =>
      sendFlood(response, ' ', 5 * CAP, 0, good),
    ),
    other('the good answer, padded 1,000 : 1', 'answer-too-large', (response) =>
      sendFlood(response, ' ', 5 * CAP, 1, good),
    ),
    other('a lost connection', 'network', (response) => sendCut(response, Buffer.from(good), 20)),
  ];
}
