import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { createDatabase } from '../support/db.ts';
import { temporaryFolder } from '../support/process.ts';
import { versionBefore } from './support.ts';

interface Row {
  readonly row: string;
  readonly reason: string;
  readonly lane: number;
  readonly minutes: number;
}

/**
 * SKUs as the previous version left them: state, cohort, whether listed; reason and lane; minutes until due, with
 * prices ten minutes old.
 */
const BEFORE = `
  insert into catalog.skus (sku, state, price_source, in_manifest, priced_at, asked_at)
  select sku, state, source, listed, now() - interval '10 minutes', now() - interval '10 minutes' from (values
    ('dropped', 'priced', 'snapshot', false), ('watched', 'priced', null, false), ('metadata', 'priced', null, false),
    ('failing', 'priced', null, false), ('late', 'priced', null, false), ('asked', 'priced', null, false),
    ('live', 'priced', 'live', false), ('gone', 'not_found', null, false), ('new', 'pending', null, false), ('listed', 'priced', 'snapshot', true)
  ) s(sku, state, source, listed);
  insert into catalog_internal.due (sku, reason, lane, live, due_at, failures)
  select sku, reason, lane, reason = 'live', now() + make_interval(mins => due), (lane = 4)::int from (values
    ('dropped', 'sweep', 6, 1430), ('watched', 'sweep', 6, 5), ('metadata', 'metadata', 5, 1430),
    ('failing', 'sweep', 4, 1430), ('late', 'sweep', 6, -60), ('asked', 'watched', 1, -1),
    ('live', 'live', 2, 20), ('gone', 'metadata', 5, 1430), ('new', 'new', 3, -1), ('listed', 'sweep', 6, 1430)
  ) d(sku, reason, lane, due)`;

test('the migration reschedules SKUs that no manifest lists, and writes no other row', async ({
  onTestFinished,
}) => {
  const database = await createDatabase('empty');
  const sql = connect(database.url, { max: 1 });
  onTestFinished(async () => {
    await sql.end({ timeout: 2 });
    await database.drop();
  });
  const folder = versionBefore(await temporaryFolder(onTestFinished), '0008_unlisted_live_target');
  await migrateDatabase(database.url, { folder });
  await sql.unsafe(BEFORE);
  const rows = async () => {
    const found = await sql<(Row & { sku: string })[]>`
      select sku, due.ctid::text || due.xmin::text as row, reason, lane, round(extract(epoch from due_at - priced_at) / 60)::int - 10 as minutes
      from catalog_internal.due due join catalog.skus using (sku)
      order by sku`;
    return new Map(found.map(({ sku, ...row }) => [sku, row]));
  };
  const before = await rows();
  await migrateDatabase(database.url);
  const after = await rows();
  const moved = [...after].filter(([sku, { row }]) => row !== before.get(sku)?.row);
  expect(
    Object.fromEntries(moved.map(([sku, { reason, lane, minutes }]) => [sku, [reason, lane, minutes]])),
  ).toEqual({
    dropped: ['unlisted', 2, 20],
    watched: ['unlisted', 2, 5],
    metadata: ['unlisted', 2, 20],
    failing: ['unlisted', 4, 20],
    late: ['unlisted', 2, -60],
  });
});
