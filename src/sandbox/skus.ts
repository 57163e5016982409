import { createRng, mix, type Rng } from './rng.ts';

/** The `product` object of a lowest-price record (partner rules 2.4). */
export interface Product {
  name: string;
  model: string;
  brand: string;
  gender_size: string;
  size_type: string;
  category: string;
}

/** Properties of a SKU added by hand; missing ones are drawn. */
export interface AddOptions {
  live?: boolean;
  /** False: priceable, but in no manifest. */
  listed?: boolean;
  /** False: in the manifest, but the price routes answer 0009. */
  priceable?: boolean;
  sizes?: Record<string, number | null>;
  sizeType?: string;
  product?: Partial<Product>;
}

/** Metadata of one SKU. `sizeType` is `size_map.size_type`, which can differ from `product.size_type`. */
export interface Details {
  readonly sizeType: string;
  readonly product: Product;
}

/** Price in whole baht by size; null if an entry has no price. */
export type Sizes = Map<string, number | null>;

type List<T> = readonly [T, ...T[]];

interface Line {
  readonly brand: string;
  readonly category: string;
  readonly sizeTypes: List<string>;
  readonly models: List<string>;
}

const LINES: List<Line> = [
  {
    brand: 'Nike',
    category: 'sneakers',
    sizeTypes: ['US', 'US', 'EU'],
    models: ['Dunk Low', 'Air Force 1', 'Air Max 1', 'P-6000'],
  },
  {
    brand: 'Jordan',
    category: 'sneakers',
    sizeTypes: ['US'],
    models: ['Air Jordan 1 High', 'Air Jordan 4', 'Air Jordan 11'],
  },
  {
    brand: 'adidas',
    category: 'sneakers',
    sizeTypes: ['UK', 'US'],
    models: ['Samba OG', 'Gazelle', 'Campus 00s', 'Handball Spezial'],
  },
  {
    brand: 'New Balance',
    category: 'sneakers',
    sizeTypes: ['US', 'CM'],
    models: ['530', '550', '2002R', '9060'],
  },
  {
    brand: 'ASICS',
    category: 'sneakers',
    sizeTypes: ['CM', 'US'],
    models: ['GEL-Kayano 14', 'GEL-1130', 'GT-2160'],
  },
  {
    brand: 'Supreme',
    category: 'apparel',
    sizeTypes: ['ALPHA'],
    models: ['Box Logo Hoodie', 'Small Box Tee', 'Work Jacket'],
  },
  {
    brand: 'Carhartt WIP',
    category: 'apparel',
    sizeTypes: ['ALPHA'],
    models: ['Detroit Jacket', 'Chase Hoodie'],
  },
  {
    brand: 'POP MART',
    category: 'accessories',
    sizeTypes: ['ONE'],
    models: ['Labubu', 'Skullpanda', 'Crybaby'],
  },
];

const COLOURS: List<string> = [
  'White Black',
  'Panda',
  'Triple White',
  'University Blue',
  'Cream',
  'Bred',
  'Sea Salt',
  'ดำ',
];
const GENDERS: List<string> = ['men', 'women', 'unisex', 'kids'];
const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ';
const NUMBERS = [4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 9, 9.5, 10, 10.5, 11, 11.5, 12, 13];

/** SKUs that break careless code: prototype keys, characters that a path must escape, spaces, other scripts. */
export const HOSTILE_SKUS: readonly string[] = [
  'constructor',
  '__proto__',
  'toString',
  'Box Logo Hoodie FW26',
  'CT8012/005',
  'รองเท้า-001',
  '100% COTTON+TEE?x=1#a',
  `O'Neill "Retro" \\ 7`,
];

/** The size keys of each sizing system, smallest first. */
const RUNS: ReadonlyMap<string, List<string>> = new Map([
  ['ALPHA', ['XS', 'S', 'M', 'L', 'XL', 'XXL']],
  ['ONE', ['OS']],
  ['EU', numberRun((n) => `EU ${32 + n}`)],
  ['CM', numberRun((n) => `${21 + n / 2}`)],
]);
const NUMBER_RUN = numberRun(String);

function numberRun(name: (n: number) => string): List<string> {
  return NUMBERS.map(name) as [string, ...string[]];
}

function sizeRun(sizeType: string): List<string> {
  return RUNS.get(sizeType) ?? NUMBER_RUN;
}

/** Draws a SKU of one of the usual shapes. It may not be unique; the caller draws again on a clash. */
export function drawSku(rng: Rng): string {
  const letter = (): string => LETTERS.charAt(rng.int(LETTERS.length));
  const digits = (count: number): string => String(rng.int(10 ** count)).padStart(count, '0');
  const shape = rng.next();
  if (shape < 0.65) return `${letter()}${letter()}${digits(4)}-${digits(3)}`;
  if (shape < 0.8) return `${letter()}${letter()}${digits(4)}${letter()}`;
  return `${digits(4)}${letter()}${digits(3)}-${digits(3)}`;
}

/** Returns the initial metadata of a SKU: a pure function of its seed. */
export function bornDetails(seed: number): Details {
  const { line, sizeType } = bornLine(seed);
  const rng = createRng(mix(seed, 1));
  const model = rng.pick(line.models);
  const product = {
    name: `${line.brand} ${model} '${rng.pick(COLOURS)}' (${2016 + rng.int(11)})`,
    model,
    brand: line.brand,
    gender_size: rng.pick(GENDERS),
    size_type: sizeType,
    category: line.category,
  };
  return { sizeType, product };
}

function bornLine(seed: number): { line: Line; sizeType: string } {
  const rng = createRng(mix(seed, 3));
  const line = rng.pick(LINES);
  return { line, sizeType: rng.pick(line.sizeTypes) };
}

/** Draws sizes and prices for a SKU of the given sizing system: a run of adjacent sizes around one price level. */
export function drawSizes(sizeType: string, rng: Rng): Sizes {
  const run = sizeRun(sizeType);
  const count = 1 + rng.int(Math.min(run.length, 12));
  const first = rng.int(run.length - count + 1);
  const level = 900 * 1.6 ** (rng.next() * 8);
  const sizes: Sizes = new Map();
  for (let at = first; at < first + count; at += 1) {
    sizes.set(run[at] ?? run[0], Math.max(50, Math.round(level * (0.8 + rng.next() * 0.6))));
  }
  return sizes;
}

/** Returns the same sizes at prices up to a tenth higher or lower. */
export function movedSizes(sizes: Sizes, rng: Rng): Sizes {
  return new Map(
    [...sizes].map(([size, price]) => [
      size,
      price === null ? null : Math.max(50, Math.round(price * (0.9 + rng.next() * 0.2))),
    ]),
  );
}

/** Returns the initial sizes and prices of a SKU: a pure function of its seed. */
export function bornSizes(seed: number): Sizes {
  return drawSizes(bornLine(seed).sizeType, createRng(mix(seed, 2)));
}

/** Returns a size of the sizing system that has no entry yet; null if the run is full. */
export function missingSize(sizeType: string, sizes: Sizes, rng: Rng): string | null {
  const [first, ...rest] = sizeRun(sizeType).filter((size) => !sizes.has(size));
  return first === undefined ? null : rng.pick([first, ...rest]);
}

/** A SKU that every catalog of some size contains, so that the examples of the documents find it. */
interface Example {
  readonly sku: string;
  readonly details: Details;
  readonly sizes: Readonly<Record<string, number>>;
}

/** A smaller catalog has no examples: whoever asks for three SKUs gets only ordinary ones. */
export const MIN_SKUS_WITH_EXAMPLES = 10;

/** Its size 9 moves, and its size 11 is off the market now and then. */
export const MOVING: Example = {
  sku: 'DD1391-100',
  details: detailsOf('Nike', 'Dunk Low', "Nike Dunk Low 'Panda' (2021)", 'men'),
  sizes: { '8': 5100, '9': 5000, '10': 5300, '11': 5450 },
};

/** Its `size_type` is corrected, which moves no hash (partner rule 4.2.2); a price moves too, so clients reread it. */
export const CORRECTED: Example = {
  sku: 'FV5029-141',
  details: detailsOf('Jordan', 'Air Jordan 4', "Jordan Air Jordan 4 'Cream' (2025)", 'women'),
  sizes: { '7': 7900, '8': 7600, '9': 7450 },
};

export const EXAMPLES: readonly Example[] = [MOVING, CORRECTED];

/** Returns the initial sizes of an example, for modification. */
export function exampleSizes({ sizes }: Example): Sizes {
  return new Map(Object.entries(sizes));
}

function detailsOf(brand: string, model: string, name: string, gender: string): Details {
  const product = { name, model, brand, gender_size: gender, size_type: 'US', category: 'sneakers' };
  return { sizeType: 'US', product };
}
