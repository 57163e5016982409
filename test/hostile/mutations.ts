import { constantFrom, nat, record, type Arbitrary, array, oneof } from 'fast-check';
import { ASKED, goodAnswer } from './reconciliation-cases.ts';
import { skuNumber } from './upstream.ts';

/** One change to a bulk answer: `at` and `to` choose places in it, and `value` is what is put there. */
export interface Mutation {
  readonly kind: 'omit' | 'replace' | 'double' | 'contradict' | 'move';
  readonly at: number;
  readonly to: number;
  readonly value: unknown;
}

type Container = Record<string, unknown> | unknown[];
interface Place {
  readonly inside: Container;
  readonly key: string;
}

const PARTS = ['results', 'not_found', 'deferred', 'errors'] as const;
const NAMES = [...ASKED, skuNumber(200), '__proto__', 'constructor', '', 'a\0b', '\ud800', ' SKU-0001'];
const JUNK: unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  '',
  'junk',
  '0000',
  '0009',
  [],
  {},
  [[]],
  [null],
  { sku: null },
  { code: '0000' },
  { code: '0000', size_map: {} },
  { code: '0000', size_map: [] },
  { code: '0000', size_map: { a: 'b' }, product: 7 },
];

/** Any single mutation. */
const anyMutation: Arbitrary<Mutation> = record({
  kind: constantFrom('omit', 'replace', 'double', 'contradict', 'move'),
  at: nat(),
  to: nat(),
  value: oneof(
    constantFrom(...JUNK),
    constantFrom(...NAMES),
    constantFrom(...NAMES).map((sku) => ({ sku })),
  ),
});

export const anyMutations = array(anyMutation, { minLength: 1, maxLength: 6 });

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

/** Returns every member and element anywhere in the value. */
function placesIn(inside: unknown): Place[] {
  if (!isContainer(inside)) return [];
  return Object.entries(inside).flatMap(([key, value]) => [{ inside, key }, ...placesIn(value)]);
}

/** Sets an own member of any name, including `__proto__`; in a list, adds or replaces an element. */
function put(inside: Container, key: string, value: unknown): void {
  Object.defineProperty(inside, key, { value, enumerable: true, configurable: true, writable: true });
}

function take(inside: Container, key: string): void {
  if (Array.isArray(inside)) inside.splice(Number(key), 1);
  else delete inside[key];
}

function mutate(envelope: Record<string, unknown>, { kind, at, to, value }: Mutation): void {
  const places = placesIn(envelope);
  const place = places[at % Math.max(1, places.length)];
  if (place === undefined) return;
  const { inside, key } = place;
  const present = (inside as Record<string, unknown>)[key];
  if (kind === 'omit') return take(inside, key);
  if (kind === 'replace') return put(inside, key, structuredClone(value));
  const part = envelope[PARTS[to % PARTS.length] ?? 'errors'];
  const named = typeof value === 'string' ? value : (ASKED[at % ASKED.length] ?? '');
  if (kind === 'contradict') return name(part, named, present);
  if (kind === 'move') take(inside, key);
  if (Array.isArray(part)) part.push(structuredClone(present));
  else if (isContainer(part)) put(part, kind === 'double' ? named : key, structuredClone(present));
}

function name(part: unknown, sku: string, value: unknown): void {
  if (Array.isArray(part)) part.push(sku);
  else if (isContainer(part)) put(part, sku, structuredClone(value));
}

/** Returns a good bulk answer after these mutations, as the text on the wire. */
export function mutated(mutations: readonly Mutation[]): string {
  const envelope = structuredClone(goodAnswer());
  for (const mutation of mutations) mutate(envelope, mutation);
  return JSON.stringify(envelope);
}
