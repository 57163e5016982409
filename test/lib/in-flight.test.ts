import { expect, test, vi } from 'vitest';
import { sharedInFlight } from '../../src/daemon/in-flight.ts';

/** Readings that end when they are told to, on a clock that stands still. */
function readings() {
  const begun: PromiseWithResolvers<number>[] = [];
  let now = 0;
  const ask = sharedInFlight(
    () => {
      const one = Promise.withResolvers<number>();
      begun.push(one);
      return one.promise;
    },
    3000,
    () => now,
  );
  return { begun, ask, pass: (ms: number) => (now += ms) };
}

test('whoever asks while a reading is on its way gets the next one, with all others who have', async () => {
  const { begun, ask } = readings();
  const first = ask();
  const asked = [ask(), ask()];
  expect(begun).toHaveLength(1);
  begun[0]?.resolve(1);
  expect(await first).toBe(1);
  await vi.waitUntil(() => begun.length === 2);
  const later = ask();
  begun[1]?.resolve(2);
  expect(await Promise.all(asked)).toEqual([2, 2]);
  await vi.waitUntil(() => begun.length === 3);
  begun[2]?.resolve(3);
  expect(await later).toBe(3);
  void ask();
  expect(begun).toHaveLength(4);
});

test('one that fails fails who has asked for it, and no other', async () => {
  const { begun, ask } = readings();
  const [first, second] = [ask(), ask()];
  begun[0]?.reject(new Error('gone'));
  await expect(first).rejects.toThrow('gone');
  await vi.waitUntil(() => begun.length === 2);
  begun[1]?.resolve(2);
  expect(await second).toBe(2);
});

test('one that takes too long keeps nobody from another, and does not end that when it comes', async () => {
  const { begun, ask, pass } = readings();
  const lost = ask();
  pass(2999);
  void ask();
  expect(begun).toHaveLength(1);
  pass(1);
  const other = ask();
  expect(begun).toHaveLength(2);
  begun[0]?.resolve(1);
  expect(await lost).toBe(1);
  void ask();
  expect(begun).toHaveLength(2);
  begun[1]?.resolve(2);
  expect(await other).toBe(2);
});

test('who asks beside a later reading does not wait for one that is lost', async () => {
  const { begun, ask, pass } = readings();
  void ask();
  void ask();
  pass(3000);
  const other = ask();
  const beside = ask();
  begun[1]?.resolve(2);
  expect(await other).toBe(2);
  await vi.waitUntil(() => begun.length === 3);
  begun[2]?.resolve(3);
  expect(await beside).toBe(3);
});
