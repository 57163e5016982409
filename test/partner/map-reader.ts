import { readBulk } from '../../src/partner/bulk-answer.ts';
import { EntryForms } from '../../src/partner/entry-forms.ts';
import { FIELDS } from './form-reader.ts';
import { keptForAll } from './kept-forms.ts';

export type SizeMap = Readonly<Record<string, unknown>>;

/** The prices of a record by size, or unreadable. */
export type SizesRead = Readonly<Record<string, number | null>> | 'unreadable';

/** A process that reads answers of records with these `size_map`s, and stores what they show. */
export function mapReader(kept = keptForAll()) {
  const clock = { now: 0 };
  const keeper = kept.reader();
  const forms = new EntryForms(FIELDS, () => clock.now, keeper);
  const read = async (...maps: readonly SizeMap[]) => {
    const records = maps.map((size_map, n) => [`SKU-${n}`, { code: '0000', size_map }]);
    // As it comes over the wire.
    const body: unknown = JSON.parse(JSON.stringify({ results: Object.fromEntries(records) as unknown }));
    const { answer, news } = await forms.read((entryForm, alsoForm, others) => {
      const reading = readBulk(body, { priceFields: FIELDS, skuField: 'sku', entryForm, alsoForm, others });
      if (!reading.ok) throw new Error(reading.problem);
      return reading.value;
    });
    const sizes = [...answer.results.values()].map((said): SizesRead =>
      'sizes' in said
        ? Object.fromEntries([...said.sizes].map(([size, { price }]) => [size, price]))
        : 'unreadable',
    );
    return { sizes, notSizes: answer.notSizes ?? [], news: news?.kind ?? null };
  };
  return { clock, forms, read, hear: () => keeper.hear() };
}
