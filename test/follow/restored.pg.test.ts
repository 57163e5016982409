import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Sql } from '../../src/store/connection/db.ts';
import { knownSkus } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { movePrices, positionNow, positionsAfter } from './changes.ts';
import { cutOff, following, withBackup } from './restoring.ts';

/*
 * A follower that runs while its database is replaced by an earlier one (a backup or a standby that was behind),
 * or while a table is rewritten.
 */

/** Advances the sequence as on a standby: the primary logs its values in advance. */
const drawnAhead = (sql: Sql) =>
  sql`select setval('catalog_internal.change_positions', last_value + 32) from catalog_internal.change_positions`;

/** More SKUs than a piece of a copy contains. */
const skuNames = Array.from({ length: 150 }, (_, n) => `S${n + 1000}`);

test.each([
  ['as it was', { known: true, goesOn: false, ahead: false }],
  ['that was a standby', { known: true, goesOn: false, ahead: true }],
  ['that has gone on', { known: true, goesOn: true, ahead: false }],
  ['that does not know the name', { known: false, goesOn: false, ahead: false }],
  ['that does not know the name and has gone on', { known: false, goesOn: true, ahead: false }],
])('a backup %s is refused by a follower that has delivered more', async (_, given) => {
  const { known, goesOn, ahead } = given;
  const { source, backup } = await withBackup({ known });
  let url = source.url;
  const { begun, seen, ended } = following(() => url);
  await begun;
  await movePrices(source.sql, 4);
  await eventually(() => seen.length === 4);
  if (goesOn) await movePrices(backup.sql, 9);
  if (ahead) await drawnAhead(backup.sql);
  url = backup.url;
  await cutOff(source.sql);
  await expect(ended).rejects.toMatchObject({
    name: 'FollowerError',
    kind: known ? 'position-lost' : 'unknown',
    hint: expect.stringContaining('--from start'),
  });
  expect(seen).toHaveLength(4);
  // The next process refuses it too, although it has not delivered anything.
  if (known) await expect(following(() => backup.url).ended).rejects.toMatchObject({ kind: 'position-lost' });
});

test.each([
  ['under a name', 'shop'],
  ['without one', null],
])('a backup is also refused if the session was lost before a delivery was recorded, %s', async (_, name) => {
  const { source, backup } = await withBackup({ known: true });
  let url = source.url;
  const { begun, seen, ended } = following(
    () => url,
    { name },
    async () => {
      url = backup.url;
      await cutOff(source.sql);
    },
  );
  await begun;
  await movePrices(source.sql, 4);
  await expect(ended).rejects.toMatchObject({ kind: 'position-lost' });
  expect(seen).toHaveLength(4);
});

test('a backup that contains everything delivered is accepted', async () => {
  const { source, backup } = await withBackup({ known: true });
  let url = source.url;
  const { begun, seen, stop, ended } = following(() => url);
  await begun;
  const position = await positionNow(backup.sql);
  await movePrices(backup.sql, 5);
  url = backup.url;
  await cutOff(source.sql);
  await eventually(() => seen.length === 5);
  expect(seen).toEqual(await positionsAfter(backup.sql, position));
  stop.abort();
  expect((await ended).end).toBe('stopped');
});

test('a backup that is behind a first copy is refused', async () => {
  const { source, backup } = await withBackup({ known: true });
  const position = String(await positionNow(backup.sql));
  const copied = (sql: Sql, afterSku: string) =>
    sql`update catalog_internal.followers set position = ${position}, after_sku = ${afterSku} where name = 'shop'`;
  await copied(source.sql, 'S2');
  await copied(backup.sql, 'S1');
  let url: string | Promise<string> = source.url;
  const { begun, ended } = following(() => url);
  await begun;
  url = backup.url;
  await cutOff(source.sql);
  await expect(ended).rejects.toMatchObject({ kind: 'position-lost' });
});

test.each([
  ['under a name, nor for the next process', 'shop'],
  ['without one', null],
])('a backup without what a first copy has delivered is refused %s', async (_, name) => {
  const { source, backup } = await withBackup({ known: false });
  await knownSkus(source.sql, skuNames);
  let url = source.url;
  const pieces: (() => void)[] = [];
  const { begun, ended } = following(
    () => url,
    { name, from: 'start' },
    async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      pieces.push(resolve);
      await promise;
    },
  );
  await begun;
  await eventually(() => pieces.length === 1);
  await movePrices(source.sql, 1);
  pieces[0]?.();
  await eventually(() => pieces.length === 2);
  // The follower as it was when the backup was made, before that change.
  for (const kept of await source.sql`select name, position, delivery, after_sku from catalog_internal.followers`)
    await backup.sql`insert into catalog_internal.followers ${backup.sql(kept)}`;
  url = backup.url;
  await cutOff(source.sql);
  pieces[1]?.();
  await expect(ended).rejects.toMatchObject({ kind: 'position-lost' });
  if (name === null) return;
  await expect(following(() => backup.url).ended).rejects.toMatchObject({ kind: 'position-lost' });
});

test('a promoted standby without what a first copy has delivered is refused without a name, too', async () => {
  const { source, backup } = await withBackup({ known: false });
  await knownSkus(source.sql, skuNames);
  let url = source.url;
  const pieces: (() => void)[] = [];
  const { begun, ended } = following(
    () => url,
    { name: null, from: 'start' },
    async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      pieces.push(resolve);
      await promise;
    },
  );
  await begun;
  await eventually(() => pieces.length === 1);
  await movePrices(source.sql, 1);
  pieces[0]?.();
  await eventually(() => pieces.length === 2);
  await drawnAhead(backup.sql);
  url = backup.url;
  await cutOff(source.sql);
  pieces[1]?.();
  await expect(ended).rejects.toMatchObject({ kind: 'position-lost' });
});

test('a reset after a restore copies at positions beyond all that the receiver got before', async () => {
  const { source, backup } = await withBackup({ known: true });
  await knownSkus(backup.sql, ['S1']);
  const { begun, seen, stop, ended } = following(() => source.url);
  await begun;
  await movePrices(source.sql, 4);
  await eventually(() => seen.length === 4);
  stop.abort();
  await ended;
  // Nothing has been written to it since, as if the partner's data equals the backup.
  const anew = following(() => backup.url, { from: 'start', reset: true, once: true });
  await anew.ended;
  expect(anew.seen.length).toBeGreaterThan(0);
  expect(Math.min(...anew.seen)).toBeGreaterThan(Math.max(...seen));
  await movePrices(backup.sql, 2);
  const on = following(() => backup.url, { once: true });
  await on.ended;
  expect(on.seen).toHaveLength(2);
});

test.each([
  ['under a name', 'shop'],
  ['without one', null],
])('a promoted standby, whose sequences are ahead of its rows, is refused, %s', async (_, name) => {
  const { source, backup } = await withBackup({ known: true });
  await backup.sql`select setval('catalog_internal.change_positions', last_value + 32) from catalog_internal.change_positions`;
  let url = source.url;
  const { begun, seen, ended } = following(() => url, { name });
  await begun;
  await movePrices(source.sql, 4);
  await eventually(() => seen.length === 4);
  url = backup.url;
  await cutOff(source.sql);
  await expect(ended).rejects.toMatchObject({ kind: 'position-lost' });
});

test('a role that can only read can follow a restored database', async () => {
  const { backup } = await withBackup({ known: true });
  await knownSkus(backup.sql, ['S1']);
  const role = `reader_${randomBytes(4).toString('hex')}`;
  await backup.sql.unsafe(`create role ${role} login password 'x' in role catalog_reader`);
  const url = Object.assign(new URL(backup.url), { username: role, password: 'x' }).href;
  const { seen, ended } = following(() => url, { name: null, from: 'start', once: true });
  expect((await ended).end).toBe('caught-up');
  expect(seen.length).toBeGreaterThan(0);
  await backup.sql.unsafe(`drop role ${role}`);
});

test('a follower whose position is set back by hand while its session is lost goes back', async () => {
  const { source } = await withBackup({ known: true });
  const away = Promise.withResolvers<string>();
  let url: string | Promise<string> = source.url;
  const { begun, seen, stop, ended } = following(() => url);
  await begun;
  await movePrices(source.sql, 3);
  const all = await positionsAfter(source.sql, (await positionNow(source.sql)) - 3n);
  await eventually(() => seen.length === 3);
  url = away.promise;
  await cutOff(source.sql);
  await source.sql`update catalog_internal.followers set position = ${String(all[0])}, holder = null where name = 'shop'`;
  away.resolve(source.url);
  await eventually(() => seen.length === 5);
  expect(seen).toEqual([...all, ...all.slice(1)]);
  stop.abort();
  await ended;
});

test('a follower that waits for a table that is being rewritten reads the changes again', async () => {
  const { source } = await withBackup({ known: true });
  const { begun, seen, stop, ended } = following(() => source.url);
  await begun;
  const altering = await source.sql.reserve();
  await altering`begin`;
  await altering`alter table catalog.product_history add column made int generated always as (1 + 1) stored`;
  await movePrices(source.sql, 3);
  await eventually(async () => {
    const waiting = await source.sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
        and application_name like 'catalog-mirror follow%'`;
    return waiting.length === 1;
  });
  await altering`commit`;
  altering.release();
  await Promise.race([ended, eventually(() => seen.length === 3)]);
  expect(seen).toHaveLength(3);
  stop.abort();
  await ended;
});
