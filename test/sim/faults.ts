import { gunzipSync, gzipSync } from 'node:zlib';
import type { Pending, Raw } from './partner.ts';

/** The random draws of one history, each below a bound. */
export type Draw = (below: number) => number;

type Reconciliation = {
  results: Record<string, unknown>;
  not_found: string[];
  deferred: string[];
  errors: string[];
};

const FORBIDDEN: Raw = { status: 403, body: { message: 'Forbidden' } };

/** What may replace the partner's answer. None of these is a false answer. */
const REFUSALS: readonly Raw[] = [
  FORBIDDEN,
  { status: 429, body: { message: 'Too Many Requests' } },
  { status: 401, body: { message: 'Unauthorized' } },
  { status: 500, body: { message: 'Internal Server Error' } },
  { status: 500, body: { errorMessage: 'Internal Server Error' } },
  { status: 502, body: '<html>bad gateway</html>' },
  { status: 200, body: '<html>hello</html>' },
  { status: 200, body: {} },
  { failed: 'timeout' },
  { failed: 'network' },
  { failed: 'unreadable' },
];

/** Refusals of the delta, besides those of the world itself. */
const DELTA_REFUSALS: readonly Raw[] = [
  ...[405, 408, 410, 413].map((status) => ({ status, body: { message: 'Refused' } })),
  { status: 400, body: { message: 'chain broken', code: '0010' } },
  { status: 400, body: { message: 'too large', code: '0013' } },
  { status: 400, body: { statusCode: 400, message: 'since must be a string' } },
  { status: 503, body: { message: 'stale', code: '0014' } },
];

/** Ways to bend a bulk answer so that it no longer adds up, or says less than it could. */
const BENT: readonly ((envelope: Reconciliation, sku: string) => void)[] = [
  // Omitted altogether.
  (envelope, sku) => drop(envelope, sku),
  // Two results at once.
  (envelope, sku) =>
    void (Object.hasOwn(envelope.results, sku) ? envelope.not_found : envelope.deferred).push(sku),
  (envelope, sku) => void (envelope.errors.includes(sku) ? envelope.deferred : envelope.errors).push(sku),
  // Deferred or failed, although it was available.
  (envelope, sku) => {
    drop(envelope, sku);
    envelope.deferred.push(sku);
  },
  (envelope, sku) => {
    drop(envelope, sku);
    envelope.errors.push(sku);
  },
  // Named in a spelling that nobody has asked for.
  (envelope, sku) => {
    const record = envelope.results[sku];
    const other = sku === sku.toLowerCase() ? sku.toUpperCase() : sku.toLowerCase();
    if (record === undefined || other === sku) return;
    drop(envelope, sku);
    envelope.results[other] = record;
  },
  // A record without content.
  (envelope, sku) => {
    drop(envelope, sku);
    envelope.results[sku] = { code: '0000', message: 'success' };
  },
];

function drop(envelope: Reconciliation, sku: string): void {
  delete envelope.results[sku];
  for (const part of ['not_found', 'deferred', 'errors'] as const)
    envelope[part] = envelope[part].filter((other) => other !== sku);
}

/** Returns the answer as it arrives: usually the partner's own, sometimes a refusal or a bent answer. */
export function arriving(pending: Pending, draw: Draw): Raw {
  const own = pending.compute();
  const luck = draw(100);
  if (luck < 8) return pick(REFUSALS, draw);
  if (pending.route === 'delta' && luck < 11) return pick(DELTA_REFUSALS, draw);
  if (pending.route === 'manifest-file' && luck < 20) return cut(own, draw);
  if (pending.route === 'bulk' && luck < 40) return bent(own, pending.skus, draw);
  return own;
}

function bent(own: Raw, skus: readonly string[], draw: Draw): Raw {
  if ('failed' in own || own.status !== 200) return own;
  const body = structuredClone(own.body) as Reconciliation;
  const times = 1 + draw(2);
  for (let n = 0; n < times; n += 1) pick(BENT, draw)(body, pick(skus, draw));
  // A SKU that nobody asked about.
  if (draw(2) === 0) body.not_found.push(`FOREIGN-${draw(3)}`);
  return { status: 200, body: draw(2) === 0 ? reworded(body, draw) : body };
}

/** Returns a file that ends within its compression or within a line, or that contains a line twice. */
function cut(own: Raw, draw: Draw): Raw {
  if ('failed' in own || !Buffer.isBuffer(own.body)) return own;
  if (draw(2) === 0) return { status: 200, body: own.body.subarray(0, draw(own.body.length)) };
  const text = gunzipSync(own.body).toString();
  const lines = text.split('\n').filter((line) => line !== '');
  const body =
    draw(2) === 0 || lines.length === 0 ? text.slice(0, draw(text.length + 1)) : twice(lines, draw);
  return { status: 200, body: gzipSync(body, { level: 1 }) };
}

/** Returns the lines in another order, with one of them in place of another. */
function twice(lines: readonly string[], draw: Draw): string {
  const all = lines.toReversed();
  all[draw(all.length)] = pick(lines, draw);
  return all.map((line) => `${line}\n`).join('');
}

export function pick<T>(list: readonly T[], draw: Draw): T {
  return list[draw(list.length)] as T;
}

export type Weighed<T extends readonly unknown[]> = [weight: number, ...T];

/** Draws an entry of the list with the probability of its weight, and returns it without the weight. */
export function pickWeighed<T extends readonly unknown[]>(list: readonly Weighed<T>[], draw: Draw): T {
  let luck = draw(list.reduce((sum, [weight]) => sum + weight, 0));
  for (const [weight, ...rest] of list) {
    luck -= weight;
    if (luck < 0) return rest;
  }
  throw new Error('nothing to pick from');
}

/** Says the same differently: repeated in a list, and in another order. */
function reworded(body: Reconciliation, draw: Draw): Reconciliation {
  const list = (skus: readonly string[]) => {
    const all = draw(2) === 0 ? [...skus, ...skus.slice(0, 1)] : [...skus];
    return draw(2) === 0 ? all.toReversed() : all;
  };
  return {
    ...body,
    results: Object.fromEntries(Object.entries(body.results).toReversed()),
    not_found: list(body.not_found),
    deferred: list(body.deferred),
    errors: list(body.errors),
  };
}

/** Returns the SKUs that a bulk answer settles: readable, in one of results and not_found, and nowhere else. */
export function settledBy(raw: Raw): ReadonlySet<string> {
  if ('failed' in raw || raw.status !== 200 || typeof raw.body !== 'object' || raw.body === null)
    return new Set();
  const { results = {}, not_found = [], deferred = [], errors = [] } = raw.body as Partial<Reconciliation>;
  const records = Object.entries(results).flatMap(([sku, record]) =>
    typeof record === 'object' && record !== null && 'size_map' in record ? [sku] : [],
  );
  // A repetition within one list is no contradiction.
  const named = [Object.keys(results), not_found, deferred, errors].flatMap((part) => [...new Set(part)]);
  const once = new Set(named.filter((sku) => named.indexOf(sku) === named.lastIndexOf(sku)));
  return new Set([...records, ...not_found].filter((sku) => once.has(sku)));
}
