import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { ColumnType, ExportColumn } from '../store/history/export.ts';

/** What a Parquet file is written to. */
interface Appendable {
  appendFile(bytes: Uint8Array): Promise<void>;
}

type Element = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number];

/** A row group is closed at this many rows or characters of text, because the whole group is in memory. */
const GROUP = { rows: 100_000, chars: 16_000_000 };

const ELEMENTS: Readonly<Record<ColumnType, Omit<Element, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  integer: { type: 'INT32' },
  bigint: { type: 'INT64' },
  real: { type: 'FLOAT' },
  boolean: { type: 'BOOLEAN' },
  time: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  day: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
};

/** Passes the bytes of a row group on to the file, and waits until the file has taken them. */
class FileWriter extends ByteWriter {
  readonly #file: Appendable;

  constructor(file: Appendable) {
    super();
    this.#file = file;
  }

  async flush(): Promise<void> {
    await this.#file.appendFile(this.getBytes());
    this.index = 0;
  }
}

/**
 * Writes rows as a Parquet file (Snappy), one row group at a time, so that memory does not grow with the rows. After
 * each batch, `onRows` gets the number of rows read so far. Returns how many there were. Rejects if the rows or the
 * file do; the file is then incomplete.
 */
export async function writeParquet(
  file: Appendable,
  columns: readonly ExportColumn[],
  batches: AsyncIterable<readonly (readonly unknown[])[]>,
  onRows: (rows: number) => void,
  most: { readonly rows: number; readonly chars: number } = GROUP,
): Promise<number> {
  const schema: Element[] = [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, type }) => ({ name, repetition_type: 'OPTIONAL' as const, ...ELEMENTS[type] })),
  ];
  const bytes = new FileWriter(file);
  const writer = new ParquetWriter({ writer: bytes, schema, createdBy: 'catalog-mirror' });
  let rows = 0;
  let group = emptyGroup(columns);
  const close = async () => {
    const columnData = columns.map(({ name }, i) => ({ name, data: group.data[i] ?? [] }));
    await writer.write({ columnData, rowGroupSize: group.rows });
    group = emptyGroup(columns);
  };
  for await (const batch of batches) {
    for (const row of batch) addRow(group, columns, row);
    rows += batch.length;
    if (group.rows >= most.rows || group.chars >= most.chars) await close();
    onRows(rows);
  }
  if (group.rows > 0) await close();
  await writer.finish();
  await bytes.flush();
  return rows;
}

interface Group {
  rows: number;
  chars: number;
  readonly data: unknown[][];
}

const emptyGroup = (columns: readonly ExportColumn[]): Group => ({
  rows: 0,
  chars: 0,
  data: columns.map(() => []),
});

function addRow(group: Group, columns: readonly ExportColumn[], row: readonly unknown[]): void {
  group.rows += 1;
  for (const [i, { type }] of columns.entries()) {
    const value = row[i];
    if (type === 'text' && typeof value === 'string') group.chars += value.length;
    const isWide = (type === 'bigint' || type === 'time') && typeof value === 'string';
    group.data[i]?.push(isWide ? BigInt(value) : value);
  }
}
