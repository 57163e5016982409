import type { Details, Sizes } from './catalogue.ts';

/** A SKU that every catalog of some size has, so that an example in a document finds it. */
interface Example {
  readonly sku: string;
  readonly details: Details;
  readonly sizes: Readonly<Record<string, number>>;
}

/** A smaller catalog has none: who asks for three SKUs wants to know which. */
export const MIN_SKUS_WITH_EXAMPLES = 10;

/** Its size 9 moves, and its size 11 is off the market now and then. */
export const MOVING: Example = {
  sku: 'DD1391-100',
  details: detailsOf('Nike', 'Dunk Low', "Nike Dunk Low 'Panda' (2021)", 'men'),
  sizes: { '8': 5100, '9': 5000, '10': 5300, '11': 5450 },
};

/**
 * Its `size_type` is corrected, which moves no hash (partner rule 4.2.2); a price that moves with it has it read again.
 */
export const CORRECTED: Example = {
  sku: 'FV5029-141',
  details: detailsOf('Jordan', 'Air Jordan 4', "Jordan Air Jordan 4 'Cream' (2025)", 'women'),
  sizes: { '7': 7900, '8': 7600, '9': 7450 },
};

export const EXAMPLES: readonly Example[] = [MOVING, CORRECTED];

/** The sizes of an example at start, ready to be modified. */
export function exampleSizes({ sizes }: Example): Sizes {
  return new Map(Object.entries(sizes));
}

function detailsOf(brand: string, model: string, name: string, gender: string): Details {
  const product = { name, model, brand, gender_size: gender, size_type: 'US', category: 'sneakers' };
  return { sizeType: 'US', product };
}
