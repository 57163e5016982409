import { expect, test } from 'vitest';
import { readRecord } from '../../src/partner/bulk-answer.ts';
import { isReadableSku, MAX_KEY_LENGTH, MAX_SIZE_BYTES } from '../../src/partner/text.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { type Member, readMuted } from '../../src/store/answer/members.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { seeded } from '../hostile/random.ts';
import { claimAll, found, knownSkus, mark, REFRESH, useStore } from './support.ts';

const store = useStore();

/** Returns characters of three bytes that no compression shortens: the most that an index must hold. */
function signs(count: number): string {
  const random = seeded(7);
  return Array.from({ length: count }, () => String.fromCodePoint(0x4e00 + random(20_000))).join('');
}

const recordOf = (size: string) =>
  readRecord({ code: '0000', size_map: { [size]: 1500 } }, { priceFields: ['price'], skuField: 'sku' });

test('the longest size of the SKU with the longest name is stored; a longer one cannot be read', async () => {
  const sku = signs(MAX_KEY_LENGTH);
  const size = signs(Math.floor(MAX_SIZE_BYTES / 3));
  expect(isReadableSku(sku)).toBe(true);
  expect(recordOf(size)).toHaveProperty('sizes');
  expect(recordOf(`${size}${signs(1)}`)).toHaveProperty('unreadable');
  await knownSkus(store.sql, [sku, 'A']);
  await mark(store.sql, [sku, 'A'], 'changed');
  const claim = await claimAll(store.sql);
  const prices = [{ size, price: 1500, entry: null }];
  await applyAnswer(store.sql, claim, [found(sku, prices), found('A', prices)], REFRESH);
  const rows = await store.sql`select sku, price from catalog.prices where size = ${size} order by sku`;
  expect(rows).toEqual([
    { sku: 'A', price: 1500 },
    { sku, price: 1500 },
  ]);
});

test('a member with a very long name is never muted, prevents no other mute, and is not reported', async () => {
  const member = (name: string): Member => ({ part: 'product', path: JSON.stringify([name]) });
  const muted = [member(signs(1000)), member('views')];
  const members = { follows: () => false, note: () => ({ muted, unmuted: [], renewed: [] }) };
  await knownSkus(store.sql, ['A']);
  await mark(store.sql, ['A'], 'changed');
  const claim = await claimAll(store.sql);
  const observers = { ...NO_OBSERVERS, members };
  const applied = await applyAnswer(store.sql, claim, [found('A', [])], REFRESH, { observers });
  expect(applied.members.muted).toEqual([member('views')]);
  const stored = await store.sql.begin((tx) => readMuted(tx));
  expect([...stored]).toEqual(['product ["views"]']);
});
