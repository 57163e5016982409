import { onTestFinished, expect, test } from 'vitest';
import { connect, type Sql, transaction } from '../../src/store/connection/db.ts';
import { type PriceMove, repairSequencesAtStart, writeChanges } from '../../src/store/history/changes.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';

/** A mirror's database and a connection to it. */
interface Mirror {
  readonly url: string;
  readonly sql: Sql;
}

async function opened(database: TestDatabase): Promise<Mirror> {
  const sql = connect(database.url, { max: 2 });
  onTestFinished(async () => {
    await sql.end({ timeout: 2 });
    await database.drop();
  });
  return { url: database.url, sql };
}

const newMirror = async () => await opened(await createDatabase('migrated'));

/** Returns a mirror as if restored from a dump into another database; the original can be reopened afterwards. */
async function restored({ url, sql }: Mirror): Promise<Mirror> {
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
  await sql.end({ timeout: 2 });
  return await opened(await createDatabase({ copyOf: url }));
}

const reopened = async ({ url }: Mirror): Promise<Mirror> => {
  const sql = connect(url, { max: 2 });
  onTestFinished(() => sql.end({ timeout: 2 }));
  return { url, sql };
};

const moves = (names: readonly string[]): PriceMove[] =>
  names.map((sku) => ({ sku, size: '9', oldPrice: 1, newPrice: 2 }));

/** Makes one change per name, each in its own transaction. */
async function change({ sql }: Mirror, ...names: string[]): Promise<void> {
  for (const name of names)
    await transaction(sql, (tx) => writeChanges(tx, { moves: moves([name]), fields: [] }, null));
}

async function positionOf({ sql }: Mirror): Promise<string> {
  const [row] = await sql<[{ position: string }]>`select catalog.changes_position() as position`;
  return row.position;
}

/** Returns what a reader gets after its position: names of SKUs, or the SQLSTATE of the refusal. */
async function after({ sql }: Mirror, position: string): Promise<string[] | string> {
  try {
    const rows = await sql<{ sku: string }[]>`select sku from catalog.changes(${position})`;
    return rows.map(({ sku }) => sku);
  } catch (error) {
    return (error as { code: string }).code;
  }
}

test('a restored mirror refuses a reader that has read beyond the backup, whatever has changed since', async () => {
  const source = await newMirror();
  await change(source, 'a', 'b');
  const shared = await positionOf(source);
  const copy = await restored(source);
  const goesOn = await reopened(source);
  await change(goesOn, 'c', 'd', 'e');
  const beyond = await positionOf(goesOn);
  await change(copy, 'x', 'y', 'z', 'u', 'v');
  expect(await after(copy, beyond)).toBe('CM001');
  expect(await after(copy, shared)).toEqual(['x', 'y', 'z', 'u', 'v']);
  expect(await after(goesOn, shared)).toEqual(['c', 'd', 'e']);
});

test('each restore makes a separate gap, even a restore of a restored mirror', async () => {
  const first = await newMirror();
  await change(first, 'a');
  const second = await restored(first);
  const old = await reopened(first);
  await change(old, 'b', 'c');
  const ofFirst = await positionOf(old);
  await change(second, 'd', 'e');
  const ofSecond = await positionOf(second);
  const third = await restored(second);
  const kept = await reopened(second);
  await change(kept, 'f', 'g');
  const beyond = await positionOf(kept);
  await change(third, 'h', 'i', 'j');
  expect(await after(third, ofFirst)).toBe('CM001');
  expect(await after(third, beyond)).toBe('CM001');
  expect(await after(third, ofSecond)).toEqual(['h', 'i', 'j']);
  expect(await after(third, '0')).toEqual(['a', 'd', 'e', 'h', 'i', 'j']);
});

test('the gap exists even if the first writer after the restore was rolled back', async () => {
  const source = await newMirror();
  await change(source, 'a');
  const known = await positionOf(source);
  const copy = await restored(source);
  const goesOn = await reopened(source);
  await change(goesOn, 'b', 'c');
  const beyond = await positionOf(goesOn);
  await transaction(copy.sql, async (tx) => {
    await writeChanges(tx, { moves: moves(['lost']), fields: [] }, null);
    throw new Error('rolled back');
  }).catch(() => undefined);
  await change(copy, 'x', 'y', 'z');
  expect(await after(copy, beyond)).toBe('CM001');
  expect(await after(copy, known)).toEqual(['x', 'y', 'z']);
});

test('a restored mirror that has only noted its identity begins behind all that may be lost', async () => {
  const source = await newMirror();
  await change(source, 'a', 'b');
  const copy = await restored(source);
  const goesOn = await reopened(source);
  await change(goesOn, 'c', 'd', 'e');
  const beyond = await positionOf(goesOn);
  const places: string[] = [];
  for (const _ of [1, 2]) {
    await repairSequencesAtStart(copy.sql);
    places.push(await positionOf(copy));
    await copy.sql`update catalog_internal.lineage set started = started || '.'`;
  }
  expect(BigInt(places[0]!)).toBeGreaterThan(BigInt(beyond));
  expect(BigInt(places[1]!)).toBeGreaterThan(BigInt(places[0]!));
  for (const place of places) expect(await after(copy, place)).toEqual([]);
  await change(copy, 'x', 'y');
  for (const place of places) expect(await after(copy, place)).toEqual(['x', 'y']);
  expect(await after(copy, beyond)).toBe('CM001');
});

test('a position of another mirror is refused, whichever is older and has more changes', async () => {
  const older = await newMirror();
  await change(older, 'a', 'b');
  const younger = await newMirror();
  await change(younger, 'x', 'y', 'z');
  const positions = [await positionOf(older), await positionOf(younger)];
  expect(await after(younger, positions[0]!)).toBe('CM001');
  expect(await after(older, positions[1]!)).toBe('CM001');
  // From the beginning, a reader gets everything of either.
  expect([await after(older, '0'), await after(younger, '0')]).toEqual([
    ['a', 'b'],
    ['x', 'y', 'z'],
  ]);
  expect(await after(younger, positions[1]!)).toEqual([]);
});
