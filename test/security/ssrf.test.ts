import type { LookupAddress } from 'node:dns';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { readManifestMeta } from '../../src/partner/manifest-answer.ts';
import { readManifestFile } from '../../src/partner/manifest-file.ts';
import { ADDRESS_REFUSED, filesReach, guardedLookup, type Resolver } from '../../src/partner/origin.ts';
import { SecretUrl } from '../../src/partner/secret-url.ts';
import { all, failure, fileOf } from '../partner/manifest-reading.ts';
import { serve } from '../partner/server.ts';
import { PATIENCE_MS } from '../support/eventually.ts';
import { deafPort, type Port } from '../support/net.ts';
import { watchSockets } from './sockets.ts';

const PUBLIC = new URL('https://api.example.com/v1');
const LOOPBACK = new URL('http://127.0.0.1:8080');
const SIGNED = '?X-Amz-Signature=canary';

/** Names that somebody else controls, and the addresses they resolve to. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'metadata.google.internal': ['169.254.169.254'],
  metadata: ['169.254.169.254'],
  'instance-data.ec2.internal': ['fd00:ec2::254'],
  'to-loopback.example.com': ['127.0.0.1'],
  'to-loopback6.example.com': ['::1'],
  'to-any.example.com': ['0.0.0.0'],
  'to-private.example.com': ['10.0.0.7'],
  'to-mapped.example.com': ['::ffff:127.0.0.1'],
  'to-nat64.example.com': ['64:ff9b::7f00:1'],
  'to-both.example.com': ['93.184.216.34', '127.0.0.1'],
  'to-both6.example.com': ['2606:4700::1111', '::1'],
  'host.docker.internal': ['172.17.0.1'],
};

const resolve: Resolver = (name, done) => {
  const found = (NAMES[name] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  done(null, found);
};

/** URLs that an answer may contain. `{port}` is a listener on loopback that must not be reached. */
const REFUSED: readonly string[] = [
  // Private networks, in any spelling.
  'https://10.0.0.1:{port}/m.gz',
  'https://10.255.255.255/m.gz',
  'https://172.16.0.1/m.gz',
  'https://172.31.255.254/m.gz',
  'https://192.168.0.1/m.gz',
  'https://100.64.0.1/m.gz',
  'https://100.100.100.200/latest/meta-data/',
  'https://[fc00::1]/m.gz',
  'https://[fd12:3456:789a::1]/m.gz',
  'https://0xa000001/m.gz',
  'https://012.0.0.1/m.gz',
  'https://10.1/m.gz',
  // Link-local and metadata services.
  'https://169.254.169.254/latest/meta-data/',
  'https://169.254.1.1/m.gz',
  'https://2852039166/latest/',
  'https://0xa9.0xfe.0xa9.0xfe/',
  'https://0251.0376.0251.0376/',
  'https://169.254.43518/',
  'https://[fd00:ec2::254]/latest/',
  'https://[fe80::1]/m.gz',
  'https://[::ffff:169.254.169.254]/',
  'https://[::ffff:a9fe:a9fe]/',
  'https://[64:ff9b::169.254.169.254]/',
  'https://[64:ff9b:1::a9fe:a9fe]/',
  'https://[2002:a9fe:a9fe::1]/',
  'https://168.63.129.16/',
  'https://192.0.0.192/opc/v2/',
  'https://metadata.google.internal/computeMetadata/v1/',
  'https://metadata/computeMetadata/v1/',
  'https://instance-data.ec2.internal/latest/',
  'https://METADATA.GOOGLE.INTERNAL./',
  // This machine.
  'https://127.0.0.1:{port}/m.gz',
  'https://127.1:{port}/',
  'https://127.0.1:{port}/',
  'https://0x7f.1:{port}/',
  'https://0x7f000001:{port}/',
  'https://0177.0.0.1:{port}/',
  'https://2130706433:{port}/',
  'https://127.0.0.1.:{port}/',
  'https://0:{port}/',
  'https://0.0.0.0:{port}/',
  'https://[::1]:{port}/',
  'https://[::]:{port}/',
  'https://[0:0:0:0:0:ffff:7f00:1]:{port}/',
  'https://[::127.0.0.1]:{port}/',
  'https://localhost:{port}/',
  'https://localhost.:{port}/',
  'https://LocalHost:{port}/',
  'https://files.localhost:{port}/',
  'https://host.docker.internal:{port}/',
  'https://to-loopback.example.com:{port}/',
  'https://to-loopback6.example.com:{port}/',
  'https://to-any.example.com:{port}/',
  'https://to-private.example.com:{port}/',
  'https://to-mapped.example.com:{port}/',
  'https://to-nat64.example.com:{port}/',
  'https://to-both.example.com:{port}/',
  'https://to-both6.example.com:{port}/',
  // Spellings that a parser turns into something else.
  'https://１２７.０.０.１:{port}/',
  'https://①②⑦.0.0.1:{port}/',
  'https://127。0。0。1:{port}/',
  'https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}/',
  'https://%31%32%37.0.0.1:{port}/',
  'https://127.0.0.1%2f:{port}/',
  'https://127.\n0.0.\t1:{port}/',
  'https://127.0.0.1\\@files.example.com:{port}/',
  'https://127.0.0.1:{port}#@files.example.com/',
  'https://127.0.0.1:{port}?@files.example.com/',
  'https://files.example.com@127.0.0.1:{port}/',
  'https://files.example.com:443@127.0.0.1:{port}/',
  'https://user:pass@files.example.com/',
  'https:///127.0.0.1:{port}/',
  'https:127.0.0.1:{port}/',
  'https:\\\\127.0.0.1:{port}\\',
  ' https://127.0.0.1:{port}/',
  '//127.0.0.1:{port}/',
  // Other schemes.
  'http://files.example.com/m.gz',
  'http://93.184.216.34/m.gz',
  'HTTP://127.0.0.1:{port}/',
  'file:///etc/passwd',
  'ftp://127.0.0.1:{port}/',
  'gopher://127.0.0.1:{port}/_GET',
  'data:application/gzip;base64,H4sI',
  'unix:/var/run/docker.sock',
  'ws://127.0.0.1:{port}/',
  'blob:https://127.0.0.1:{port}/x',
  'javascript:fetch("https://127.0.0.1:{port}")',
];

let listener: Port;
beforeAll(async () => {
  listener = await deafPort();
});
afterAll(() => listener[Symbol.asyncDispose]());

function portOf(text: string): number {
  const { port = '', protocol = '' } = URL.parse(text) ?? {};
  return Number(port === '' ? (protocol === 'http:' ? 80 : 443) : port);
}

/** Treats this URL as the manifest answer's; returns the kind of error and how many sockets were opened. */
async function effectsOf(text: string) {
  using sockets = watchSockets();
  const url = text.includes('?') || text.includes('#') ? text : `${text}${SIGNED}`;
  const reading = readManifestMeta({ url, snapshot_id: 's1' }, {});
  if (!reading.ok) {
    expect(`${reading.problem} ${reading.hint}`).not.toContain('canary');
    return { kind: 'unreadable', sockets: sockets.count(portOf(text)), strays: sockets.strays };
  }
  const batches = readManifestFile({
    url: reading.value.url,
    baseUrl: PUBLIC,
    timeoutMs: PATIENCE_MS,
    resolve,
  });
  const { kind } = await failure(batches);
  return { kind, sockets: sockets.count(portOf(text)), strays: sockets.strays };
}

test.each(REFUSED)('a manifest at %j is refused, and no connection is made', async (form) => {
  const text = form.replace('{port}', String(listener.port));
  const { kind, sockets, strays } = await effectsOf(text);
  expect(['url-refused', 'unreadable']).toContain(kind);
  expect([listener.connections, strays]).toEqual([0, []]);
  // A name is resolved by the socket itself, which then does not connect; any other URL opens no socket.
  const host = URL.parse(text)?.hostname.replace(/\.$/, '') ?? '';
  expect(sockets).toBe(kind === 'url-refused' && Object.hasOwn(NAMES, host) ? 1 : 0);
});

test('the table of refused URLs has more than 80 entries', () => {
  expect(new Set(REFUSED).size).toBeGreaterThan(80);
});

describe('the DNS look-up', () => {
  /** Returns these answers one after the other, and then repeats the last one. */
  function rebinding(...answers: string[][]) {
    let asked = 0;
    const resolve: Resolver = (_, done) => {
      const addresses = answers[Math.min(asked, answers.length - 1)] ?? [];
      asked += 1;
      done(
        null,
        addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
    };
    return { resolve, asked: () => asked };
  }

  test('is the one that the connection uses: a name that changes a moment later is not resolved again', async () => {
    using sockets = watchSockets();
    const base = await serve((_, response) => response.end(fileOf(3)));
    const url = new SecretUrl(new URL(`http://files.localhost:${base.port}/m.gz${SIGNED}`));
    const names = rebinding(['127.0.0.1'], ['10.0.0.1']);
    const read = await all(
      readManifestFile({ url, baseUrl: LOOPBACK, timeoutMs: PATIENCE_MS, resolve: names.resolve }),
    );
    expect(read.lines).toHaveLength(3);
    expect([names.asked(), sockets.count(Number(base.port)), sockets.strays]).toEqual([1, 1, []]);
  });

  test('refuses a name that was public and has become private', async () => {
    using sockets = watchSockets();
    const url = new SecretUrl(new URL(`https://files.example.com:${listener.port}/m.gz${SIGNED}`));
    const names = rebinding(['127.0.0.1'], ['93.184.216.34']);
    const error = await failure(
      readManifestFile({ url, baseUrl: PUBLIC, timeoutMs: PATIENCE_MS, resolve: names.resolve }),
    );
    expect([error.kind, names.asked(), listener.connections]).toEqual(['url-refused', 1, 0]);
    expect(sockets.strays).toEqual([]);
  });

  test('lets a loopback name resolve to loopback only', async () => {
    using sockets = watchSockets();
    const url = new SecretUrl(new URL(`http://files.localhost:${listener.port}/m.gz${SIGNED}`));
    for (const address of ['10.0.0.1', '169.254.169.254', '93.184.216.34', 'fd00::1']) {
      const { resolve } = rebinding(['127.0.0.1', address]);
      const error = await failure(
        readManifestFile({ url, baseUrl: LOOPBACK, timeoutMs: PATIENCE_MS, resolve }),
      );
      expect([address, error.kind]).toEqual([address, 'url-refused']);
    }
    expect([listener.connections, sockets.strays]).toEqual([0, []]);
  });
});

test.each([301, 302, 303, 307, 308])('a %i from the files origin is not followed', async (status) => {
  const to = `http://127.0.0.1:${listener.port}/stolen${SIGNED}`;
  const base = await serve((_, response) => response.writeHead(status, { location: to }).end());
  const url = new SecretUrl(new URL(`/m.gz${SIGNED}`, base));
  const error = await failure(readManifestFile({ url, baseUrl: LOOPBACK, timeoutMs: PATIENCE_MS }));
  expect([error.kind, error.status, listener.connections]).toEqual(['file-fault', status, 0]);
});

test('a files origin receives no header that it could not guess', async () => {
  let headers: string[] = [];
  const base = await serve((request, response) => {
    headers = Object.keys(request.headers);
    response.end(fileOf(1));
  });
  const url = new SecretUrl(new URL(`/m.gz${SIGNED}`, base));
  await all(readManifestFile({ url, baseUrl: base, timeoutMs: PATIENCE_MS }));
  expect(headers.toSorted()).toEqual(['accept-encoding', 'connection', 'host']);
});

describe('with PARTNER_FILES_ORIGINS', () => {
  const names: Resolver = (name, done) => {
    const address = name.startsWith('inner.') ? '10.0.0.7' : (NAMES[name]?.[0] ?? '93.184.216.34');
    done(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
  };
  const kindWith = async (origins: readonly string[], text: string) => {
    using sockets = watchSockets();
    const url = new SecretUrl(new URL(`${text}${SIGNED}`));
    const options = { url, baseUrl: PUBLIC, timeoutMs: PATIENCE_MS, origins, resolve: names };
    const { kind } = await failure(readManifestFile(options));
    return sockets.strays.length === 1 ? 'passes' : kind;
  };

  test.each([
    ['https://files.example.com/m.gz', 'passes'],
    ['https://FILES.example.com:443/m.gz', 'passes'],
    ['https://10.0.0.7:8443/m.gz', 'passes'],
    ['https://files.example.com:444/m.gz', 'url-refused'],
    ['http://files.example.com/m.gz', 'url-refused'],
    ['https://files.example.com./m.gz', 'url-refused'],
    ['https://files.example.com.evil.example/m.gz', 'url-refused'],
    ['https://sub.files.example.com/m.gz', 'url-refused'],
    ['https://files.exаmple.com/m.gz', 'url-refused'], // a Cyrillic а
    ['https://files.example.com@evil.example/m.gz', 'url-refused'],
    ['https://evil.example/https://files.example.com/', 'url-refused'],
    ['https://93.184.216.34/m.gz', 'url-refused'],
    ['https://10.0.0.8:8443/m.gz', 'url-refused'],
    ['https://127.0.0.1/m.gz', 'url-refused'],
  ])('%s: %s', async (url, kind) => {
    expect(await kindWith(['https://files.example.com', 'https://10.0.0.7:8443'], url)).toBe(kind);
  });

  test.each([
    ['inner.example.com', true],
    ['to-private.example.com', true],
    ['to-loopback.example.com', false],
    ['metadata.google.internal', false],
    ['instance-data.ec2.internal', false],
  ])(
    'a listed name may lead into a private network, but not to a metadata service: %s',
    async (name, passes) => {
      const url = new URL(`https://${name}/m.gz`);
      const code = await new Promise<string | undefined>((seen) => {
        guardedLookup(filesReach(url, [url.origin]), names)(name, { all: true }, (error) =>
          seen(error?.code),
        );
      });
      expect(code).toBe(passes ? undefined : ADDRESS_REFUSED);
    },
  );

  test.each([
    ['https://files.example.com', ['https://files.example.com']],
    [
      'https://Files.Example.com:443/, https://10.0.0.7:8443',
      ['https://files.example.com', 'https://10.0.0.7:8443'],
    ],
    ['http://127.0.0.1:9000', ['http://127.0.0.1:9000']],
    ['http://files.example.com', null],
    ['https://files.example.com/bucket', null],
    ['https://files.example.com?x', null],
    ['https://u@files.example.com', null],
    ['https://169.254.169.254', null],
    ['files.example.com', null],
    ['https://files.example.com,', null],
    ['*', null],
  ])('%j is read as %j', (text, origins) => {
    const env = { PARTNER_BASE_URL: 'https://a.example', PARTNER_API_KEY: 'k', PARTNER_SECRET: 's' };
    const load = () => loadConfig({ ...env, PARTNER_FILES_ORIGINS: text }, () => '').partner.filesOrigins;
    if (origins === null) expect(load).toThrow('PARTNER_FILES_ORIGINS: expected');
    else expect(load()).toEqual(origins);
  });
});
