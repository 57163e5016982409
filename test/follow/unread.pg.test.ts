import { expect, test } from 'vitest';
import { cutOff, following, retries, sleeps, withBackup } from './restoring.ts';

test('a Postgres that answers but cannot be read does not count as back, and is retried less and less often', async () => {
  const { source } = await withBackup({ known: true });
  const { asked, clock, enough } = sleeps(4);
  const back: string[] = [];
  const { begun, stop } = following(() => source.url, {}, undefined, {
    clock: retries(clock),
    storeBack: () => void back.push('back'),
  });
  await begun;
  await source.sql.unsafe(`do $$ begin
    execute replace(pg_get_functiondef('catalog.changes(bigint, integer)'::regprocedure), E'BEGIN\\n',
      'BEGIN RAISE EXCEPTION SQLSTATE ''53200'';');
  end $$`);
  await cutOff(source.sql);
  await enough;
  stop.abort();
  expect({ asked, back }).toEqual({ asked: [500, 1000, 2000, 4000], back: [] });
});
