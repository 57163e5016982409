import { ASKED, type SkuResult } from './reconciliation-cases.ts';

/*
 * What a bulk answer says of each asked SKU, derived only from partner rules 2.5 and independently of src: a SKU
 * is decided only if everything that names it agrees. Null if the answer as a whole cannot be read.
 */

type Json = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isGoodText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed() && text.length <= 512;
}

function isPrice(value: unknown): boolean {
  if (isObject(value)) return isPrice(value['price']);
  const amount = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return Number.isInteger(amount) && Number(amount) >= 50 && Number(amount) < 2 ** 31;
}

function saysNothing(value: unknown): boolean {
  if (typeof value === 'string') return /^[\s0]*$/.test(value);
  if (typeof value !== 'object' || value === null) return value === null || value === false || value === 0;
  return Object.values(value).every(saysNothing);
}

/**
 * A record has code 0000 and a size_map whose keys a table can hold. Either some entry reads as a price, or no
 * entry contains anything.
 */
function isRecord(value: unknown): boolean {
  if (!isObject(value) || value['code'] !== '0000') return false;
  if (Array.isArray(value['size_map']) && value['size_map'].length === 0) return true;
  const { size_type: _, ...sizes } = isObject(value['size_map']) ? value['size_map'] : {};
  if (!isObject(value['size_map']) || !Object.keys(sizes).every((size) => isGoodText(size))) return false;
  return Object.values(sizes).some(isPrice) || Object.values(sizes).every(saysNothing);
}

/**
 * Returns whether `results` only has a placeholder for a SKU that a list answers: an empty value, as in a map that
 * was filled beforehand, or the code with which the single lookup refuses it. Neither contains a price, so neither
 * is another answer.
 */
function isOfNoWeight(value: unknown): boolean {
  const isNone = (one: unknown) =>
    one === undefined || ['null', 'false', '0', '""', '[]', '{}'].includes(JSON.stringify(one));
  if (isNone(value)) return true;
  if (!isObject(value) || !isNone(value['size_map'])) return false;
  return typeof value['code'] === 'string' && /\S/.test(value['code']) && value['code'] !== '0000';
}

function namedIn(list: unknown): unknown[] | null {
  if (list === undefined || list === null) return [];
  if (isObject(list)) return Object.keys(list).filter((sku) => list[sku] !== false);
  if (!Array.isArray(list)) return null;
  return list.map((one: unknown) => (isObject(one) && Object.hasOwn(one, 'sku') ? one['sku'] : one));
}

/** Returns the result of each asked SKU, or null if nothing may be changed. */
export function resultsByPartnerRules(text: string): Record<string, SkuResult> | null {
  const body: unknown = JSON.parse(text);
  if (!isObject(body)) return null;
  const member = (key: string) => (Object.hasOwn(body, key) ? body[key] : undefined);
  const keys = ['results', 'not_found', 'deferred', 'errors'];
  if (!keys.some((key) => Object.hasOwn(body, key))) return null;
  const given = member('results');
  const results =
    given === undefined || given === null || (Array.isArray(given) && given.length === 0) ? {} : given;
  if (!isObject(results)) return null;
  const lists = (['not_found', 'deferred', 'errors'] as const).map(
    (key) => [key, namedIn(member(key))] as const,
  );
  if (lists.some(([, named]) => named === null)) return null;
  const outcomes = ASKED.map((sku): [string, SkuResult] => {
    const said = new Set<SkuResult>();
    for (const [key, named] of lists) if (named?.includes(sku)) said.add(key === 'errors' ? 'error' : key);
    const isGiven = Object.hasOwn(results, sku) && !(said.size > 0 && isOfNoWeight(results[sku]));
    if (isGiven) said.add(isRecord(results[sku]) ? 'record' : 'error');
    const [only] = said;
    return [sku, said.size === 1 && only !== undefined ? only : 'error'];
  });
  return Object.fromEntries(outcomes);
}
