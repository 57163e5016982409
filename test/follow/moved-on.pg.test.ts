import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { movePrices, positionNow } from './changes.ts';
import { cutOff, following, withBackup } from './restoring.ts';

/* A follower whose name somebody else has moved on while its session was lost. */

test('a backup on which another process moved the name on is refused, and the next process continues there', async () => {
  const { source, backup } = await withBackup({ known: true });
  let url = source.url;
  const { begun, seen, ended } = following(() => url);
  await begun;
  await movePrices(source.sql, 4);
  await eventually(() => seen.length === 4);
  await movePrices(backup.sql, 9);
  const other = following(() => backup.url, { once: true });
  await other.ended;
  expect(other.seen).toHaveLength(9);
  url = backup.url;
  await cutOff(source.sql);
  await movePrices(backup.sql, 2);
  await Promise.race([ended.catch(() => {}), eventually(() => seen.length > 4)]);
  await expect(ended).rejects.toMatchObject({ name: 'FollowerError', kind: 'position-lost' });
  expect(seen).toHaveLength(4);
  const next = following(() => backup.url, { once: true });
  await next.ended;
  expect(next.seen).toHaveLength(2);
});

test('a follower whose position is advanced by hand while its session is lost continues from there', async () => {
  const { source } = await withBackup({ known: true });
  const away = Promise.withResolvers<string>();
  let url: string | Promise<string> = source.url;
  const { begun, seen, stop, ended } = following(() => url);
  await begun;
  await movePrices(source.sql, 1);
  await eventually(() => seen.length === 1);
  url = away.promise;
  await cutOff(source.sql);
  await movePrices(source.sql, 3);
  const skipped = await positionNow(source.sql);
  await source.sql`update catalog_internal.followers set position = ${String(skipped)}, holder = null where name = 'shop'`;
  await movePrices(source.sql, 2);
  away.resolve(source.url);
  await eventually(() => seen.length === 3);
  stop.abort();
  await ended;
});
