import { describe, expect, onTestFinished, test } from 'vitest';
import { readBatch } from '../../src/client/read-batch.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { answerAsked, found, knownSkus } from '../store/support.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';

/* A first copy of the mirror while its database is replaced by a backup. */

function opened(database: TestDatabase): Sql {
  const sql = connect(database.url, { max: 2 });
  onTestFinished(async () => {
    await sql.end({ timeout: 2 });
    await database.drop();
  });
  return sql;
}

/** Creates three SKUs and a backup of them, and copies the first. */
async function begunCopy() {
  const database = await createDatabase('migrated');
  const before = connect(database.url, { max: 2 });
  await knownSkus(before, ['A', 'B', 'C']);
  await answerAsked(before, found('A', { 9: 90 }), found('B', { 9: 70 }), found('C', { 9: 60 }));
  await before.end({ timeout: 2 });
  const backup = opened(await createDatabase({ copyOf: database.url }));
  const source = opened(database);
  return { source, backup, from: (await readBatch(source, 'start', 10)).position };
}

/** Reads on, one SKU at a time, until nothing more comes. Returns the places, and the prices of B. */
async function readOn(sql: Sql, from: string, until: (place: string) => boolean = () => false) {
  const [places, prices]: [string[], (number | null)[]] = [[from], []];
  for (let position = from; ;) {
    const batch = await readBatch(sql, position, 10);
    prices.push(
      ...batch.changes.flatMap(({ kind, sku, new_price }) =>
        kind === 'price' && sku === 'B' ? [new_price] : [],
      ),
    );
    if (batch.position === position) return { places, prices };
    ({ position } = batch);
    places.push(position);
    if (until(position)) return { places, prices };
  }
}

const LOST = { kind: 'position-lost' };

describe('a copy that contains what a backup does not', () => {
  test.each([
    ['is under way', (place: string) => place.endsWith('/B')],
    ['is complete', (place: string) => !place.includes('/')],
  ])('and that %s is not continued on the backup', async (_, until) => {
    const { source, backup, from } = await begunCopy();
    await answerAsked(source, found('B', { 9: 50 }));
    const { places, prices } = await readOn(source, from, until);
    expect(prices).toEqual([50]);
    await expect(readOn(backup, places.at(-1) ?? '')).rejects.toMatchObject(LOST);
    await answerAsked(backup, found('C', { 9: 40 }));
    await expect(readOn(backup, places.at(-1) ?? '')).rejects.toMatchObject(LOST);
  });

  test('is continued on its own database, by the position alone once the copy is complete', async () => {
    const { source, from } = await begunCopy();
    await answerAsked(source, found('B', { 9: 50 }));
    const { places, prices } = await readOn(source, from);
    expect(prices).toEqual([50, 50]);
    expect(places.at(-1)).toMatch(/^\d+$/);
  });
});

test('a copy that contains no more than the backup is continued', async () => {
  const { backup, from } = await begunCopy();
  await answerAsked(backup, found('B', { 9: 40 }));
  expect((await readOn(backup, from)).prices).toEqual([40, 40]);
});
