import { expect, onTestFinished, test } from 'vitest';
import { connect, type Sql, transaction } from '../../src/store/connection/db.ts';
import { repairSequencesAtStart, repairSequences, writeChanges } from '../../src/store/history/changes.ts';
import { prepareHistory, pruneHistory } from '../../src/store/history/retention.ts';
import { quarantine } from '../../src/store/quarantine.ts';
import { createDatabase } from '../support/db.ts';
import { claimAll, knownSkus, mark } from './support.ts';

/** Sequences that do not number rows: they count, and may start anew without harm. */
const NO_ROWS = /others_sent_\d+$|refreshes_(paid|asked|refused)$/;
const CHUNK = 5_000_000;
const DAY = 86_400_000;

async function newStore(): Promise<Sql> {
  const database = await createDatabase('migrated');
  const sql = connect(database.url, { max: 2 });
  onTestFinished(async () => {
    await sql.end({ timeout: 2 });
    await database.drop();
  });
  return sql;
}

/** Makes rows with every sequence: changes, claims, the first chunk dropped, sends, samples and others. */
async function used(sql: Sql): Promise<void> {
  await sql`select setval('catalog_internal.change_positions', ${CHUNK}, false)`;
  await prepareHistory(sql);
  await pruneHistory(sql, { olderThanMs: DAY });
  const move = { sku: 'A', size: '9', oldPrice: 1, newPrice: 2 };
  for (const sku of ['A', 'B'])
    await transaction(sql, (tx) => writeChanges(tx, { moves: [{ ...move, sku }], fields: [] }, null));
  await knownSkus(sql, ['A', 'B']);
  await sql`select setval('catalog_internal.claim_numbers', 70)`;
  await mark(sql, ['A', 'B']);
  await claimAll(sql);
  await sql`insert into catalog_internal.pace_sends (sent_at, lane) select now(), 'reprice' from generate_series(1, 9)`;
  await sql`insert into catalog_internal.live_calls (called_at, computed, deferred) select now(), 1, 1 from generate_series(1, 9)`;
  await sql`insert into catalog_internal.hints (sku, source, hinted_at) select 'A', 'orders', now() from generate_series(1, 9)`;
  await sql`insert into catalog_internal.refresh_requests (sku) select 'A' from generate_series(1, 9)`;
  await sql`insert into catalog_internal.watch_changes (added) select true from generate_series(1, 9)`;
  await quarantine(
    sql,
    'bulk',
    Array.from({ length: 9 }, () => ({ reason: 'r', sku: null, sample: null })),
  );
}

async function lastValues(sql: Sql): Promise<Record<string, number>> {
  const rows = await sql<{ name: string; value: string }[]>`
    select schemaname || '.' || sequencename as name, coalesce(last_value, 0) as value from pg_sequences
    where schemaname in ('catalog', 'catalog_internal') order by 1`;
  return Object.fromEntries(rows.map(({ name, value }) => [name, Number(value)]));
}

test('every sequence that a copy of the rows left behind continues after the rows', async () => {
  const sql = await newStore();
  await used(sql);
  await repairSequencesAtStart(sql);
  const before = await lastValues(sql);
  await sql`
    select setval((schemaname || '.' || sequencename)::regclass, start_value, false) from pg_sequences
    where schemaname in ('catalog', 'catalog_internal')`;
  await repairSequencesAtStart(sql);
  const after = await lastValues(sql);
  const rowless = Object.keys(before).filter((name) => NO_ROWS.test(name));
  expect(Object.keys(before).length - rowless.length).toBe(13);
  expect(after).toEqual({ ...before, ...Object.fromEntries(rowless.map((name) => [name, 0])) });
});

test('a sequence that is ahead of its rows stays, and so does one without rows', async () => {
  const sql = await newStore();
  const before = await lastValues(sql);
  await repairSequencesAtStart(sql);
  expect(await lastValues(sql)).toEqual(before);
  await used(sql);
  await sql`select setval('catalog_internal.claim_numbers', 1000)`;
  await repairSequencesAtStart(sql);
  expect(await lastValues(sql)).toMatchObject({ 'catalog_internal.claim_numbers': 1000 });
});

test('claims continue after the answered ones, even if the daemons before had stopped properly', async () => {
  const sql = await newStore();
  await used(sql);
  await sql`update catalog_internal.due set claim = null, held_until = null, asked_claim = 900 where sku = 'A'`;
  await sql`update catalog_internal.due set claim = null, held_until = null, asked_claim = 300 where sku = 'B'`;
  await sql`insert into catalog_internal.sync (seen_claim) values (800) on conflict do nothing`;
  await sql`update catalog_internal.sync set seen_claim = 800`;
  await sql`select setval('catalog_internal.claim_numbers', 1, false)`;
  await repairSequencesAtStart(sql);
  expect(await lastValues(sql)).toMatchObject({ 'catalog_internal.claim_numbers': 900 });
});

/** Leaves sequences as on a server that logical replication has filled: none has been advanced. */
const leaveBehind = (sql: Sql) => sql`
  select setval((schemaname || '.' || sequencename)::regclass, start_value, false) from pg_sequences
  where schemaname in ('catalog', 'catalog_internal')`;

test('a writer that was never stopped repairs sequences in another database, and no reader loses its place', async () => {
  const sql = await newStore();
  await used(sql);
  const [read] = await sql<[{ position: string }]>`select catalog.changes_position() as position`;
  const before = await lastValues(sql);
  await leaveBehind(sql);
  await sql`update catalog_internal.lineage set database = '1.1'`;
  const move = { sku: 'C', size: '9', oldPrice: 1, newPrice: 2 };
  await transaction(sql, (tx) => writeChanges(tx, { moves: [move], fields: [] }, null));
  const positions = 'catalog_internal.change_positions';
  expect((await lastValues(sql))[positions]).toBe((before[positions] ?? 0) + 1);
  const claims = 'catalog_internal.claim_numbers';
  expect((await lastValues(sql))[claims]).toBe(before[claims]);
  expect(await sql`select sku from catalog.changes(${read.position})`).toEqual([{ sku: 'C' }]);
});

test('maintenance repairs sequences, however they fell behind, and waits for nobody if none did', async () => {
  const sql = await newStore();
  await used(sql);
  await repairSequencesAtStart(sql);
  const before = await lastValues(sql);
  await leaveBehind(sql);
  await repairSequences(sql);
  for (const [name, value] of Object.entries(await lastValues(sql)))
    if (!NO_ROWS.test(name)) expect([name, value]).toEqual([name, before[name]]);
  await transaction(sql, async (tx) => {
    await tx`select catalog_internal.lock_changes()`;
    await repairSequences(sql);
  });
});
