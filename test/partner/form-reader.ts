import { readBulk } from '../../src/partner/bulk-answer.ts';
import { EntryForms } from '../../src/partner/entry-forms.ts';
import { keptForAll } from './kept-forms.ts';

export const FIELDS = ['price', 'lowest_price', 'lowest_ask', 'amount'];

/** A process that reads answers of records with these entries. */
export function reader(kept = keptForAll(), fields: readonly string[] = FIELDS) {
  const clock = { now: 0 };
  const forms = new EntryForms(fields, () => clock.now, kept.reader());
  /** Returns the prices of records with these entries, or that they are unreadable, and the news about their form. */
  const readEach = async (...records: unknown[][]) => {
    const results = records.map((entries, nth) => [
      `SKU-${nth}`,
      { code: '0000', size_map: Object.fromEntries(entries.map((entry, n) => [`S${n}`, entry])) },
    ]);
    const { answer, news } = await forms.read((entryForm, alsoForm, others) => {
      const reading = readBulk(
        { results: Object.fromEntries(results) },
        { priceFields: fields, skuField: 'sku', entryForm, alsoForm, others },
      );
      if (!reading.ok) throw new Error(reading.problem);
      return reading.value;
    });
    const prices = [...answer.results.values()].map((said) =>
      'sizes' in said ? [...said.sizes.values()].map(({ price }) => price) : 'unreadable',
    );
    return { prices, news: news?.kind ?? null };
  };
  const read = async (...entries: unknown[]) => {
    const { prices, news } = await readEach(entries);
    return { prices: prices[0], news };
  };
  return { clock, read, readEach, forms };
}
