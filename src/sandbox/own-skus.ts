import type { AddOptions } from './skus.ts';

/** One SKU of a catalog file. */
export interface OwnSku extends AddOptions {
  readonly sku: string;
}

const MAX_PROBLEMS = 20;
const MEMBERS = ['sku', 'sizes', 'size_type', 'product', 'price_source', 'listed', 'priceable'];
const PRODUCT_MEMBERS = ['name', 'model', 'brand', 'gender_size', 'size_type', 'category'];

type Line = Record<string, unknown>;

/** Parses a catalog file (NDJSON), skipping empty lines. Also returns what is wrong, by line numbers from 1. */
export function readOwnSkus(text: string): { skus: OwnSku[]; problems: string[] } {
  const skus: OwnSku[] = [];
  const problems: string[] = [];
  const lineOf = new Map<string, number>();
  for (const [index, written] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    if (written.trim() === '') continue;
    const number = index + 1;
    const line = parse(written);
    const wrong = typeof line === 'string' ? [line] : problemsOf(line);
    const sku = typeof line === 'string' ? undefined : line['sku'];
    const before = typeof sku === 'string' ? lineOf.get(sku) : undefined;
    if (before !== undefined) wrong.push(`sku ${JSON.stringify(sku)} is on line ${before} already`);
    problems.push(...wrong.map((problem) => `line ${number}: ${problem}`));
    if (wrong.length > 0 || typeof line === 'string' || typeof sku !== 'string') continue;
    lineOf.set(sku, number);
    skus.push(ownSku(sku, line));
  }
  if (skus.length + problems.length === 0) problems.push('there is no SKU in it');
  const more = problems.length - MAX_PROBLEMS;
  return { skus, problems: more > 0 ? [...problems.slice(0, MAX_PROBLEMS), `and ${more} more`] : problems };
}

function parse(text: string): Line | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'is not JSON';
  }
  return isObject(value) ? value : 'is not a JSON object';
}

function problemsOf(line: Line): string[] {
  const {
    sku,
    sizes = {},
    size_type: sizeType,
    product = {},
    price_source: source,
    listed,
    priceable,
  } = line;
  const unknown = Object.keys(line).filter((name) => !MEMBERS.includes(name));
  return [
    ...(unknown.length > 0 ? [`knows no ${unknown.join(', ')}; it may have ${MEMBERS.join(', ')}`] : []),
    ...(isText(sku) && sku.length <= 512 ? [] : ['sku must be a string of 1 to 512 characters']),
    ...(isObject(sizes) ? sizeProblems(sizes) : ['sizes must be an object: {"9": 4800}']),
    ...(sizeType === undefined || isText(sizeType) ? [] : ['size_type must be a string that is not empty']),
    ...(isObject(product) ? productProblems(product) : ['product must be an object']),
    ...([undefined, 'snapshot', 'live'].includes(source as never)
      ? []
      : ['price_source must be "snapshot" or "live"']),
    ...(isFlag(listed) ? [] : ['listed must be true or false']),
    ...(isFlag(priceable) ? [] : ['priceable must be true or false']),
  ];
}

/** Returns whether a size may have this name: not `size_type`, which says what the names mean, and not empty. */
export function isSizeKey(size: string): boolean {
  return size !== 'size_type' && size !== '';
}

export function noSizeKey(size: string): string {
  return `sizes must not have the key ${JSON.stringify(size)}`;
}

function sizeProblems(sizes: Line): string[] {
  return Object.entries(sizes).flatMap(([size, price]) => {
    if (!isSizeKey(size)) return [noSizeKey(size)];
    const fits = price === null || (Number.isSafeInteger(price) && Number(price) >= 0);
    return fits
      ? []
      : [`sizes: the price of ${JSON.stringify(size)} must be a whole number of baht, or null`];
  });
}

function productProblems(product: Line): string[] {
  return Object.entries(product).flatMap(([name, value]) => {
    if (!PRODUCT_MEMBERS.includes(name))
      return [`product knows no ${name}; it may have ${PRODUCT_MEMBERS.join(', ')}`];
    return typeof value === 'string' ? [] : [`product: ${name} must be a string`];
  });
}

function ownSku(sku: string, line: Line): OwnSku {
  const { sizes, size_type: sizeType, product, price_source: source, listed, priceable } = line;
  return {
    sku,
    live: source === 'live',
    ...(listed === undefined ? {} : { listed: listed === true }),
    ...(priceable === undefined ? {} : { priceable: priceable === true }),
    ...(sizes === undefined ? {} : { sizes: sizes as Record<string, number | null> }),
    ...(sizeType === undefined ? {} : { sizeType: sizeType as string }),
    ...(product === undefined ? {} : { product: product as NonNullable<AddOptions['product']> }),
  };
}

function isObject(value: unknown): value is Line {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isFlag(value: unknown): boolean {
  return value === undefined || typeof value === 'boolean';
}
