type Source = readonly [part: 'product' | 'size_map', member: string];

/**
 * A SKU's metadata: each text column of catalog.products, with the part and the member of a lowest-price record that it
 * holds (partner rules 2.4). Everything that reads, compares, stores and shows metadata is derived from this table.
 */
export const METADATA = {
  name: ['product', 'name'],
  model: ['product', 'model'],
  brand: ['product', 'brand'],
  gender_size: ['product', 'gender_size'],
  size_type: ['product', 'size_type'],
  category: ['product', 'category'],
  size_map_size_type: ['size_map', 'size_type'],
} as const satisfies Readonly<Record<string, Source>>;

export type MetadataColumn = keyof typeof METADATA;

/** The columns in their order in the table. */
export const METADATA_COLUMNS = Object.keys(METADATA) as readonly MetadataColumn[];

/** The metadata in a record; null if the member is absent or not text. */
export type Metadata = Readonly<Record<MetadataColumn, string | null>>;

/** Returns an object with a member per column: what `valueOf` returns for the column and its source in a record. */
export function eachColumn<T>(
  valueOf: (column: MetadataColumn, source: Source) => T,
): Record<MetadataColumn, T> {
  const entries = METADATA_COLUMNS.map((column) => [column, valueOf(column, METADATA[column])]);
  return Object.fromEntries(entries) as Record<MetadataColumn, T>;
}
