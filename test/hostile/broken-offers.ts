import { gzipSync } from 'node:zlib';
import type { ManifestCase } from './manifest-case.ts';
import {
  membersOf,
  metaOf,
  NEXT,
  type Reply,
  sendBytes,
  sendCut,
  sendFlood,
  sendJson,
  textOf,
} from './upstream.ts';

const WHOLE = gzipSync(textOf(NEXT));
const META = JSON.stringify(metaOf(NEXT));
const GZIPPED = gzipSync(META);
const CAP = 64 * 1024 * 1024;

/** Returns an answer of the manifest route that offers no snapshot, although the file itself would be there. */
function badOffer(name: string, because: string, manifest: Reply): ManifestCase {
  const request = because === 'older-snapshot' ? null : `manifest ${because}`;
  const file: Reply = (response) => sendBytes(response, WHOLE);
  return { name, because: [because], request, rejected: null, replies: { manifest, file } };
}

function body(name: string, content: string | Buffer): ManifestCase {
  return badOffer(`the manifest route: ${name}`, 'unreadable', (response) => sendBytes(response, content));
}

function large(name: string, content: string): ManifestCase {
  return badOffer(`the manifest route: ${name}`, 'answer-too-large', (response) =>
    sendBytes(response, content),
  );
}

function changed(changes: Record<string, unknown>, because = 'unreadable'): ManifestCase {
  const manifest: Reply = (response) => sendJson(response, { ...metaOf(NEXT), ...changes });
  const shown = JSON.stringify(changes, (_key, value: unknown) => (value === undefined ? 'absent' : value));
  return badOffer(`the manifest route says ${shown.slice(0, 70)}`, because, manifest);
}

function refusedUrl(url: string): ManifestCase {
  return { ...changed({ url }, 'url-refused'), request: 'manifest-file url-refused' };
}

/** Without a count nothing shows that the file was cut at a gzip member's end. */
function uncounted(skuCount: unknown): ManifestCase {
  const offer = changed({ sku_count: skuCount });
  const cut = Buffer.concat(membersOf(NEXT, 50).slice(0, 4));
  return { ...offer, replies: { ...offer.replies, file: (response) => sendBytes(response, cut) } };
}

/** Answers of the manifest route that offer nothing usable. */
export const BROKEN_OFFERS: readonly ManifestCase[] = [
  body('HTML with status 200', '<html><body>Sign in</body></html>'),
  body('an empty body', ''),
  body('an empty body, gzipped', gzipSync('')),
  body('null', 'null'),
  body('a number', '7'),
  body('an array', `[${META}]`),
  body('an empty object', '{}'),
  body('JSON cut short', META.slice(0, -4)),
  body('JSON twice', META + META),
  body('gzip cut short', GZIPPED.subarray(0, -9)),
  body('gzip with a wrong sum', Buffer.concat([GZIPPED.subarray(0, -8), Buffer.alloc(8)])),
  body('everything under __proto__', `{"__proto__":{"__proto__":${META}}}`),
  large('arrays, a million deep', `${'['.repeat(1e6)}${']'.repeat(1e6)}`),
  large('objects, 100,000 deep', `${'{"id":'.repeat(1e5)}1${'}'.repeat(1e5)}`),
  body('an error code with status 200', '{"message":"no snapshot","code":"0012"}'),
  badOffer('the manifest route: over the cap', 'answer-too-large', (r) =>
    sendFlood(r, ' ', 5 * CAP, 0, META),
  ),
  badOffer('the manifest route: a bomb', 'answer-too-large', (r) => sendFlood(r, ' ', 5 * CAP, 1, META)),
  badOffer('the manifest route: a lost connection', 'network', (r) => sendCut(r, Buffer.from(META), 40)),
  changed({ snapshot_id: undefined }),
  ...[null, '', {}, [], true, 1.5, 'a\0b', '\ud800', 'x'.repeat(2049)].map((snapshot_id) =>
    changed({ snapshot_id }),
  ),
  ...[undefined, null, 7, '', 'file', 'ftp://127.0.0.1/file', ['{base}/file']].map((url) => changed({ url })),
  ...[
    'http://169.254.169.254/latest/meta-data',
    'http://files.example.com/m',
    'https://10.0.0.1/m',
    'http://[::ffff:10.0.0.1]/m',
  ].map(refusedUrl),
  ...['many', -1, 1.5, [300], { n: 300 }, true].map(uncounted),
  changed({ generated_at: '2020-01-01T00:00:00.000Z' }, 'older-snapshot'),
  changed({ generated_at: 1_300_000_000 }, 'older-snapshot'),
];
