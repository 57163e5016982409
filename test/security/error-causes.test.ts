import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createPartnerClient } from '../../src/partner/client.ts';
import { PartnerError } from '../../src/partner/errors.ts';
import { readManifestFile } from '../../src/partner/manifest-file.ts';
import { SecretUrl } from '../../src/partner/secret-url.ts';
import { describeError } from '../../src/telemetry/log/logger.ts';
import { all } from '../partner/manifest-reading.ts';
import { canary, findings } from './canaries.ts';

const [apiKey, secret, signature] = [canary('the api_key'), canary('the secret'), canary('the signature')];
const CANARIES = [apiKey, secret, signature];

/** Starts a server that answers with what `reply` makes of the request's head, valid HTTP or not. */
async function serving(reply: (head: string, socket: Socket) => void) {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => {});
    socket.once('data', (data) => reply(data.toString('latin1'), socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    base: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** What the server answers. It contains the request's head, with the credential or the signed path in it. */
const REPLIES: Readonly<Record<string, (head: string, socket: Socket) => void>> = {
  'no HTTP at all': (head, socket) => void socket.end(head),
  'a status line that is none': (head, socket) => void socket.end(`HTTP/1.1 ${head}\r\n\r\n`),
  'a header with a forbidden character': (head, socket) =>
    void socket.end(`HTTP/1.1 200 OK\r\nEcho: ${oneLine(head)}\0\r\nContent-Length: 0\r\n\r\n`),
  'headers without end': (head, socket) =>
    void socket.end(`HTTP/1.1 200 OK\r\n${`Echo: ${oneLine(head)}\r\n`.repeat(400)}\r\n`),
  'a chunk that is none': (head, socket) =>
    void socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${head}`),
  'a body cut off': (head, socket) =>
    void socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n${head}`),
  'a body that is no JSON': (head, socket) =>
    void socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${head.length}\r\n\r\n${head}`),
  'gzip that is none': (head, socket) => {
    const body = Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 0]), Buffer.from(head)]);
    socket.write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n`);
    socket.end(body);
  },
  'a refusal': (head, socket) =>
    void socket.end(
      `HTTP/1.1 403 ${oneLine(head)}\r\nContent-Length: ${head.length}\r\nX: ${oneLine(head)}\r\n\r\n${head}`,
    ),
  'a redirect': (head, socket) =>
    void socket.end(
      `HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/?${encodeURIComponent(head)}\r\nContent-Length: 0\r\n\r\n`,
    ),
  'a switch of protocols': (head, socket) =>
    void socket.end(
      `HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\nX: ${oneLine(head)}\r\n\r\n`,
    ),
  'an encoding nobody knows': (head, socket) =>
    void socket.end(
      `HTTP/1.1 200 OK\r\nContent-Encoding: br, ${oneLine(head)}\r\nContent-Length: 1\r\n\r\nx`,
    ),
  'a reset': (_, socket) => socket.resetAndDestroy(),
  'an end without an answer': (_, socket) => void socket.end(),
  'no answer in time': () => {},
};
const oneLine = (head: string) => head.replaceAll(/[\r\n]+/g, ' ');

/** Returns everything that could be made of an error: fully inspected, as a log line, and as JSON. */
function shown(error: unknown): Record<string, string> {
  const chain: unknown[] = [];
  for (let one = error; one instanceof Error; one = one.cause)
    chain.push(one, one.stack, Object.entries(one));
  return {
    inspected: inspect(error, { depth: 20, showHidden: true, maxStringLength: null, maxArrayLength: null }),
    'log line': JSON.stringify(describeError(error, true)),
    JSON: JSON.stringify(chain),
  };
}

async function failureOf(work: Promise<unknown>): Promise<PartnerError> {
  const error = await work.then(
    () => new Error('nothing failed'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(PartnerError);
  return error as PartnerError;
}

describe.concurrent('an error and its causes contain no secret', () => {
  test.for(Object.entries(REPLIES))('if an API route answers with %s', async ([, reply], { expect }) => {
    await using server = await serving((head, socket) => {
      // The server has the credential: its answer contains what must not be found.
      const [, pair = ''] = /^authorization: Basic (\S+)$/im.exec(head) ?? [];
      const plain = Buffer.from(pair, 'base64').toString();
      expect(plain).toBe(`${apiKey.core}:${secret.core}`);
      reply(`${head}${plain}`, socket);
    });
    const client = createPartnerClient({
      baseUrl: server.base,
      credentials: () => ({ apiKey: apiKey.core, secret: secret.core }),
      timeoutMs: 500,
      bodyKey: 'skus',
      priceFields: ['price'],
      skuField: 'sku',
      allowInsecure: false,
      userAgent: 'test',
      clock: systemClock,
    });
    const permit = { settle: () => Promise.resolve() };
    const error = await failureOf(client.manifest(permit));
    await client.close();
    expect(findings(shown(error), CANARIES)).toEqual([]);
  });

  const ofFiles = Object.entries(REPLIES).filter(([what]) => what !== 'a body that is no JSON');
  test.for(ofFiles)("if a manifest file's answer is %s", async ([, reply], { expect }) => {
    await using server = await serving((head, socket) => {
      expect(head).toContain(signature.core);
      reply(head, socket);
    });
    const url = new SecretUrl(
      new URL(`/m.gz?X-Amz-Signature=${signature.core}&X-Amz-Expires=3600`, server.base),
    );
    const error = await failureOf(all(readManifestFile({ url, baseUrl: server.base, timeoutMs: 500 })));
    expect(findings(shown(error), CANARIES)).toEqual([]);
  });
});
