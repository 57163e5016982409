import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { expect, test } from 'vitest';
import { writeParquet } from '../../src/cli/export-parquet.ts';
import type { ExportColumn } from '../../src/store/history/export.ts';
import { temporaryFolder } from '../support/process.ts';

const COLUMNS: readonly ExportColumn[] = [
  { name: 'n', type: 'bigint' },
  { name: 'text', type: 'text' },
  { name: 'share', type: 'real' },
  { name: 'is', type: 'boolean' },
  { name: 'at', type: 'time' },
  { name: 'day', type: 'day' },
];

/** Writes rows in batches, and returns what was read back, with the sizes of the row groups. */
async function written(batches: readonly (readonly unknown[])[][], most: { rows: number; chars: number }) {
  const path = join(await temporaryFolder(), 'x.parquet');
  const handle = await open(path, 'w');
  const told: number[] = [];
  async function* all() {
    yield* batches;
  }
  const rows = await writeParquet(handle, COLUMNS, all(), (count) => told.push(count), most);
  await handle.close();
  const { buffer, byteOffset, byteLength } = await readFile(path);
  const file = buffer.slice(byteOffset, byteOffset + byteLength);
  const { row_groups } = parquetMetadata(file);
  const groups = row_groups.map((group) => Number(group.num_rows));
  return { rows, told, groups, read: await parquetReadObjects({ file }) };
}

const row = (n: number, text: string | null = `${n}`) => [String(n), text, n / 2, n % 2 === 0, '0', n];
const many = (count: number, text?: string | null) => Array.from({ length: count }, (_, n) => row(n, text));

test('rows are written group by group, and none is lost in between', async () => {
  const { rows, told, groups, read } = await written([many(7), many(7), many(7), many(4)], {
    rows: 10,
    chars: 1e9,
  });
  expect({ rows, told, groups }).toEqual({ rows: 25, told: [7, 14, 21, 25], groups: [14, 11] });
  expect(read.map(({ text }) => text)).toEqual(
    [7, 7, 7, 4].flatMap((count) => many(count).map(([, text]) => text)),
  );
});

test('long texts close a group early', async () => {
  const { groups } = await written([many(2, 'ยาว'.repeat(10)), many(2, 'x'), many(2, null)], {
    rows: 10,
    chars: 50,
  });
  expect(groups).toEqual([2, 4]);
});

test('every type keeps its values, including null and the extremes', async () => {
  const extremes = ['9223372036854775807', '', -0.5, false, '-1', -1];
  const { read } = await written([[extremes, COLUMNS.map(() => null)]], { rows: 10, chars: 1e9 });
  expect(read).toEqual([
    {
      n: 9_223_372_036_854_775_807n,
      text: '',
      share: -0.5,
      is: false,
      at: expect.any(Date),
      day: new Date('1969-12-31'),
    },
    Object.fromEntries(COLUMNS.map(({ name }) => [name, null])),
  ]);
});

test('no rows make a valid file, and an error while reading rows is passed on', async () => {
  expect(await written([], { rows: 10, chars: 10 })).toMatchObject({ rows: 0, groups: [], read: [] });
  const handle = await open(join(await temporaryFolder(), 'x.parquet'), 'w');
  async function* failing() {
    yield many(3);
    throw new Error('cut off');
  }
  await expect(writeParquet(handle, COLUMNS, failing(), () => {})).rejects.toMatchObject({
    message: 'cut off',
  });
  await handle.close();
});
