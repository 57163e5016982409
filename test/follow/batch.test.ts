import { array, assert, bigInt, integer, option, property, record, string } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BATCH_BYTES } from '../../src/cli/follow/wanted.ts';
import { cut, lineOf, shownPosition } from '../../src/follow/batch.ts';
import { messageOf } from '../../src/follow/webhook.ts';
import { UNSEEN } from '../../src/lib/json.ts';
import { runs } from '../support/soak.ts';
import { changeAt } from './changes.ts';

const anyPage = array(record({ step: integer({ min: 1, max: 5 }), text: string({ maxLength: 300 }) }), {
  maxLength: 60,
}).map((steps) => {
  let position = 0n;
  return steps.map(({ step, text }) => {
    position += BigInt(step);
    return changeAt(position, { newValue: text });
  });
});
const anyLimits = record({ changes: integer({ min: 1, max: 20 }), bytes: integer({ min: 1, max: 4000 }) });

test("a line escapes everything that a terminal obeys or a reader cannot see, and parses to the partner's text", () => {
  const text = 'a\u009b2Jb\u202ec\u2028d\u0085';
  const line = lineOf(changeAt(1n, { sku: text, size: text, field: text, oldValue: text, newValue: text }));
  expect(line).not.toMatch(UNSEEN);
  expect(JSON.parse(line)).toMatchObject({
    sku: text,
    size: text,
    field: text,
    old_value: text,
    new_value: text,
  });
});

describe('cutting a page', () => {
  test('repeats the batches of the first copy after a restart: all have one position, so none is longer', () => {
    const changes = Array.from({ length: 7 }, (_, n) => changeAt(5n, { sku: `S${n}`, copy: true }));
    const page = { changes, readTo: 5n, copiedTo: 'S6' };
    const limits = { changes: 3, bytes: 1_000_000 };
    const batches = cut(page, limits);
    expect(batches.map(({ lines }) => lines.length)).toEqual([3, 3, 1]);
    expect(cut(page, limits, 5n)).toEqual(batches);
  });

  test('puts every change into one batch, in order and within the limits; the last batch stores how far was read', () => {
    assert(
      property(
        anyPage,
        anyLimits,
        bigInt({ min: 0n, max: 9n }),
        option(bigInt({ min: 0n, max: 300n }), { nil: null }),
        (changes, limits, beyond, endAt) => {
          const readTo = (changes.at(-1)?.position ?? 0n) + beyond;
          const batches = cut({ changes, readTo, copiedTo: null }, limits, endAt);
          expect(batches.flatMap(({ lines }) => lines)).toEqual(changes.map(lineOf));
          let before = 0n;
          for (const [at, batch] of batches.entries()) {
            expect(batch.lines.length).toBeGreaterThan(0);
            expect(batch.first > before && batch.last >= batch.first && batch.to >= batch.last).toBe(true);
            before = batch.to;
            const isResumed = at === 0 && endAt !== null && batch.first <= endAt;
            if (isResumed) expect(batch.last <= endAt).toBe(true);
            if (!isResumed) expect(batch.lines.length).toBeLessThanOrEqual(limits.changes);
            const bytes = Buffer.byteLength(`${batch.lines.join('\n')}\n`);
            if (!isResumed && batch.lines.length > 1) expect(bytes).toBeLessThanOrEqual(limits.bytes);
          }
          expect(batches.at(-1)?.to ?? readTo).toBe(readTo);
        },
      ),
      { numRuns: runs(300, 3000) },
    );
  });

  test('makes no batch smaller than necessary', () => {
    const changes = [1n, 2n, 3n, 4n, 5n].map((position) => changeAt(position));
    const of = (limits: Parameters<typeof cut>[1], endAt: bigint | null = null) =>
      cut({ changes, readTo: 9n, copiedTo: null }, limits, endAt).map(({ first, last, to }) => [
        first,
        last,
        to,
      ]);
    const roomy = { changes: 100, bytes: 100_000 };
    expect(of(roomy)).toEqual([[1n, 5n, 9n]]);
    expect(of({ ...roomy, changes: 2 })).toEqual([
      [1n, 2n, 2n],
      [3n, 4n, 4n],
      [5n, 5n, 9n],
    ]);
    const size = Buffer.byteLength(lineOf(changeAt(1n))) + 1;
    expect(of({ ...roomy, bytes: 2 * size })).toHaveLength(3);
    expect(of({ ...roomy, bytes: 2 * size - 1 })).toHaveLength(5);
    // The batch is as it was sent before, although more would fit by now, and although less is allowed.
    expect(of(roomy, 3n)).toEqual([
      [1n, 3n, 3n],
      [4n, 5n, 9n],
    ]);
    expect(of({ ...roomy, changes: 2 }, 3n)[0]).toEqual([1n, 3n, 3n]);
    expect(of(roomy, 7n)).toEqual([[1n, 5n, 9n]]);
    expect(of(roomy, 0n)).toEqual([[1n, 5n, 9n]]);
  });

  test('stores the SKU of a piece of the first copy only with its last batch', () => {
    const changes = ['A', 'B', 'C'].map((sku) => changeAt(7n, { sku, copy: true }));
    const batches = cut({ changes, readTo: 7n, copiedTo: 'C' }, { changes: 2, bytes: 10_000 });
    expect(batches.map(({ copiedTo, to, copy }) => [copiedTo, to, copy])).toEqual([
      [null, 7n, true],
      ['C', 7n, true],
    ]);
    const ids = batches.map((batch) => messageOf('shop', batch).messageId);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^msg_shop_7_copy_[\w-]{22}$/);
  });
});

describe('a change as a line', () => {
  test('has the columns of catalog.changes, and RFC 3339 timestamps', () => {
    expect(
      JSON.parse(lineOf(changeAt(12n, { kind: 'product', size: null, field: 'name', newValue: 'Ü\n' }))),
    ).toEqual({
      position: 12,
      kind: 'product',
      sku: 'A',
      size: null,
      old_price: 100,
      new_price: 90,
      field: 'name',
      old_value: null,
      new_value: 'Ü\n',
      meaning_changed: false,
      observed_at: '2026-11-20T10:00:00.123Z',
    });
    expect(lineOf(changeAt(1n, { sku: 'a\u2028b\n' })).includes('\n')).toBe(false);
    expect(JSON.parse(lineOf(changeAt(1n, { copy: true })))).toHaveProperty('copy', true);
  });

  test('has a numeric position while that is exact, and then a string', () => {
    expect(shownPosition(2n ** 53n - 1n)).toBe(9007199254740991);
    expect(shownPosition(2n ** 53n)).toBe('9007199254740992');
  });
});

test('a message is the same at each attempt, and its id contains no full stop', () => {
  const [batch] = cut(
    { changes: [changeAt(3n), changeAt(5n)], readTo: 8n, copiedTo: null },
    { changes: 9, bytes: 9999 },
  );
  const { messageId, body } = messageOf('shop-1', batch!);
  expect(messageId).toMatch(/^msg_shop-1_3_5_[\w-]{22}$/);
  expect(messageOf('shop-1', batch!).messageId).toBe(messageId);
  expect(messageOf('shop-1', batch!).body).toBe(body);
  expect(JSON.parse(body)).toEqual({
    type: 'catalog.changes',
    timestamp: '2026-11-20T10:00:00.123Z',
    data: {
      follower: 'shop-1',
      first: 3,
      last: 5,
      copy: false,
      changes: [JSON.parse(lineOf(changeAt(3n))), JSON.parse(lineOf(changeAt(5n)))],
    },
  });
});

test('messages with different changes have different ids, even if their first and last changes are the same', () => {
  const idOf = (...at: bigint[]) => {
    const changes = at.map((position) => changeAt(position));
    const [batch] = cut({ changes, readTo: 8n, copiedTo: null }, { changes: 9, bytes: 9999 });
    return messageOf('shop', batch!).messageId;
  };
  expect(idOf(3n, 4n, 5n)).not.toBe(idOf(3n, 5n));
});

test('a post of several changes takes at most 96 KiB, including everything around them', () => {
  const longest = 'x'.repeat(64);
  assert(
    property(array(integer({ min: 10, max: 900 }), { minLength: 400, maxLength: 500 }), (sizes) => {
      const changes = sizes.map((size, at) => changeAt(BigInt(at + 1), { newValue: 'é'.repeat(size) }));
      const page = { changes, readTo: BigInt(sizes.length), copiedTo: null };
      const batches = cut(page, { changes: 500, bytes: BATCH_BYTES });
      expect(batches.length).toBeGreaterThan(1);
      for (const batch of batches)
        expect(
          Buffer.byteLength(messageOf(longest, { ...batch, copyBegins: true }).body),
        ).toBeLessThanOrEqual(96 * 1024);
    }),
    { numRuns: 30 },
  );
});
