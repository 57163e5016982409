import { expect, test, vi } from 'vitest';
import { sharedInFlight } from '../../src/daemon/in-flight.ts';

/** Readings that end when told to, on a clock that stands still. */
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

test('all who ask during a reading share the next one', async () => {
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

test('a failed reading fails only those who asked for it', async () => {
  const { begun, ask } = readings();
  const [first, second] = [ask(), ask()];
  begun[0]?.reject(new Error('gone'));
  await expect(first).rejects.toThrow('gone');
  await vi.waitUntil(() => begun.length === 2);
  begun[1]?.resolve(2);
  expect(await second).toBe(2);
});

test('a reading that takes too long does not block the next, or end it when it returns', async () => {
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

test('whoever asks during a later reading does not wait for one that was given up', async () => {
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
