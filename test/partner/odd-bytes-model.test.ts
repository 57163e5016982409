import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PartnerError } from '../../src/partner/errors.ts';
import { all, fileAt } from './manifest-reading.ts';
import { clientOf, permit } from './plain-client.ts';
import { serve } from './server.ts';

/** How a name is encoded in the body: correctly, as another program wrote it, or damaged on its way. */
const WAYS = ['utf8', 'escaped', 'latin1', 'utf16', 'half', 'cut', 'stray'] as const;

interface Written {
  readonly name: string;
  readonly way: (typeof WAYS)[number];
  /** Which byte is inserted, and where. */
  readonly stray: number;
  readonly at: number;
}

const sign = fc.constantFrom('A', '9', '/', '"', '\\', 'é', 'ÿ', 'ß', '漢', '😀');
const written: fc.Arbitrary<Written> = fc.record({
  name: fc.array(sign, { minLength: 1, maxLength: 6 }).map((signs) => signs.join('')),
  way: fc.oneof({ weight: 3, arbitrary: fc.constant('utf8') }, fc.constantFrom(...WAYS)),
  // The first byte of a two-byte character, a continuation byte, and a byte that never occurs in UTF-8.
  stray: fc.constantFrom(0xc3, 0x80, 0xff),
  at: fc.nat(99),
});
const names = (minLength: number) =>
  fc.uniqueArray(written, { minLength, maxLength: 6, selector: ({ name }) => name });

/** Returns the bytes of the name as JSON text. */
function bytesOf({ name, way, stray, at }: Written): Buffer {
  const text = JSON.stringify(name);
  const bytes = Buffer.from(text);
  if (way === 'escaped')
    return Buffer.from(
      text.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
    );
  // A program that writes Latin-1 writes no other characters.
  if (way === 'latin1') return /^[^\u0100-\uffff]*$/.test(text) ? Buffer.from(text, 'latin1') : bytes;
  if (way === 'utf16')
    return Buffer.concat([bytes.subarray(0, 1), Buffer.from([0xff, 0xfe]), bytes.subarray(1)]);
  if (way === 'half') {
    // The first half of the character as an escape, and a byte for the other half.
    const [before = '', ...after] = text.split('😀');
    const rest = Buffer.from(after.join('😀'));
    return after.length === 0
      ? bytes
      : Buffer.concat([Buffer.from(String.raw`${before}\ud83d`), Buffer.from([stray]), rest]);
  }
  if (way === 'cut') {
    const many = bytes.findIndex((byte) => byte >= 0xc0);
    return many === -1 ? bytes : Buffer.concat([bytes.subarray(0, many + 1), bytes.subarray(many + 2)]);
  }
  const place = 1 + (at % (bytes.length - 1));
  return way === 'stray'
    ? Buffer.concat([bytes.subarray(0, place), Buffer.from([stray]), bytes.subarray(place)])
    : bytes;
}

/** Decides whether the name can be read. With these signs no way makes valid UTF-8 of another name. */
const isWhole = (one: Written): boolean => isUtf8(bytesOf(one));
const wholeOf = (of: readonly Written[]) => of.filter(isWhole).map(({ name }) => name);

/** Joins texts, names and lists of names into bytes. */
function body(strings: TemplateStringsArray, ...parts: readonly Buffer[]): Buffer {
  return Buffer.concat(strings.flatMap((text, i) => [Buffer.from(text), parts[i] ?? Buffer.of()]));
}

const priceOf = ({ name }: Written): number => 1000 + name.length;

const listed = (parts: readonly Buffer[]): Buffer =>
  Buffer.concat(parts.flatMap((part, i) => (i === 0 ? [part] : [Buffer.from(','), part])));

let answered: Buffer = Buffer.of();

const partner = async () => clientOf(await serve((_request, response) => response.end(answered)));

function refusal(error: unknown): PartnerError {
  if (!(error instanceof PartnerError) || error.kind !== 'unreadable') throw error;
  return error;
}

test('a price belongs to the intended SKU and size or to none, whatever bytes their names contain', async () => {
  const client = await partner();
  const record = fc.record({ sku: written, sizes: names(0) });
  const records = fc.uniqueArray(record, { minLength: 1, maxLength: 5, selector: ({ sku }) => sku.name });
  await fc.assert(
    fc.asyncProperty(records, names(0), async (drawn, missing) => {
      const results = drawn.map(({ sku, sizes }) => {
        const prices = sizes.map((size) => body`${bytesOf(size)}:${Buffer.from(String(priceOf(size)))}`);
        return body`${bytesOf(sku)}:{"code":"0000","size_map":{${listed(prices)}},"product":{}}`;
      });
      answered = body`{"results":{${listed(results)}},"not_found":[${listed(missing.map(bytesOf))}]}`;
      const read = await client.bulk(permit, ['A']).catch(refusal);
      if (read instanceof PartnerError) {
        // Half an escape is not JSON.
        const all = [...missing, ...drawn.flatMap(({ sku, sizes }) => [sku, ...sizes])];
        expect(all.filter((one) => !isWhole(one) && JSON.stringify(one.name).includes('\\'))).not.toEqual([]);
        return;
      }
      expect([...read.results.keys()].toSorted()).toEqual(wholeOf(drawn.map(({ sku }) => sku)).toSorted());
      expect(read.notFound.toSorted()).toEqual(wholeOf(missing).toSorted());
      for (const { sku, sizes } of drawn) {
        const found = read.results.get(sku.name);
        if (found === undefined) continue;
        if (!sizes.every(isWhole)) expect(found).toHaveProperty('unreadable');
        else if ('sizes' in found)
          expect(new Map([...found.sizes].map(([size, { price }]) => [size, price]))).toEqual(
            new Map(sizes.map((one) => [one.name, priceOf(one)])),
          );
        else expect(sizes).toEqual([]);
      }
    }),
    { numRuns: 150 },
  );
});

test('a delta reports the intended SKUs or is rejected, whatever bytes their names contain', async () => {
  const client = await partner();
  await fc.assert(
    fc.asyncProperty(names(0), names(0), names(0), written, async (changed, removed, live, token) => {
      const [first, second, third] = [changed, removed, live].map((of) => listed(of.map(bytesOf)));
      answered = body`{"changed":[${first!}],"removed":[${second!}],"now_live":[${third!}],"to_snapshot":${bytesOf(token)}}`;
      const read = await client.delta(permit, 's').catch(refusal);
      if ([...changed, ...removed, ...live, token].every(isWhole))
        expect(read).toMatchObject({
          changed: wholeOf(changed),
          removed: wholeOf(removed),
          nowLive: wholeOf(live),
          toSnapshot: token.name,
        });
      else expect(read).toBeInstanceOf(PartnerError);
    }),
    { numRuns: 150 },
  );
});

test('a manifest line yields the intended SKU or is rejected, whatever its bytes and wherever it is cut', async () => {
  let cuts: readonly number[] = [];
  const base = await serve(async (_request, response) => {
    for (const [i, cut] of [0, ...cuts].entries()) {
      const part = answered.subarray(cut, cuts[i] ?? answered.length);
      if (part.length > 0)
        await new Promise<void>((resolve) => {
          response.write(part, () => {
            resolve();
          });
        });
    }
    response.end();
  });
  const lines = fc.uniqueArray(fc.record({ sku: written, hash: written }), {
    minLength: 1,
    maxLength: 8,
    selector: ({ sku }) => sku.name,
  });
  await fc.assert(
    fc.asyncProperty(lines, fc.array(fc.nat(400), { maxLength: 4 }), async (drawn, places) => {
      const texts = drawn.map(
        ({ sku, hash }) =>
          body`{"sku":${bytesOf(sku)},"hash":${bytesOf(hash)},"price_source":"snapshot","sizes":1}\n`,
      );
      answered = Buffer.concat(texts);
      cuts = places.map((place) => Math.min(place, answered.length)).toSorted((a, b) => a - b);
      const read = await all(fileAt(base));
      const whole = drawn.filter(({ sku, hash }) => isWhole(sku) && isWhole(hash));
      expect(read.lines.map(({ sku, hash }) => [sku, hash])).toEqual(
        whole.map(({ sku, hash }) => [sku.name, hash.name]),
      );
      expect(read.rejected).toHaveLength(drawn.length - whole.length);
      const meant = new Set(drawn.map(({ sku }) => sku.name));
      expect(read.rejected.filter(({ sku }) => sku !== null && !meant.has(sku))).toEqual([]);
    }),
    { numRuns: 150 },
  );
});
