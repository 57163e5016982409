import type { ReasonCode } from '../../src/status/reason.ts';
import type { Pending, Raw } from './partner.ts';
import type { Rig } from './rig.ts';
import type { Spell } from './weather.ts';

/* What the partner may do without a single error or refusal: answers that are well-formed but not what they seem. */

interface Delta {
  changed: string[];
}

interface Envelope {
  results: Record<string, { size_map?: Record<string, unknown> }>;
  not_found: string[];
  deferred: string[];
  errors: string[];
}

/** Bends what one route answers. */
function bending(route: string, bend: (own: Raw, pending: Pending, rig: Rig) => Raw): Spell {
  return ({ weather }, rig) => {
    weather.answer = (pending) => (pending.route === route ? bend(pending.compute(), pending, rig) : null);
    return () => (weather.answer = () => null);
  };
}

/** Bends successful bulk answers. */
const bulk = (bend: (envelope: Envelope, rig: Rig, skus: readonly string[]) => void): Spell =>
  bending('bulk', (own, { skus }, rig) => {
    if ('failed' in own || own.status !== 200) return own;
    const body = structuredClone(own.body) as Envelope;
    bend(body, rig, skus);
    return { status: 200, body };
  });

function move(
  envelope: Envelope,
  to: 'not_found' | 'deferred' | 'errors' | null,
  which: (sku: string) => boolean,
): void {
  const answered = [...Object.keys(envelope.results), ...envelope.not_found, ...envelope.deferred].filter(
    which,
  );
  for (const sku of answered) {
    delete envelope.results[sku];
    for (const part of ['not_found', 'deferred', 'errors'] as const)
      envelope[part] = envelope[part].filter((other) => other !== sku);
    if (to !== null) envelope[to].push(sku);
  }
}

const isLive = (rig: Rig) => {
  const truth = rig.partner.world.truth();
  return (sku: string) => truth.get(sku)?.priceSource === 'live';
};

/**
 * Answers with prices as they were at least `minutes` ago, including live SKUs. Without `minutes`, as they were at
 * the start. Each answer of any route records the current ones.
 */
const cached =
  (minutes = Infinity): Spell =>
  ({ weather }, { partner, time }) => {
    const noted = [{ at: -Infinity, truth: partner.world.truth() }];
    weather.answer = ({ route, compute }) => {
      noted.push({ at: time.at, truth: partner.world.truth() });
      const own = compute();
      if (route !== 'bulk' || 'failed' in own || own.status !== 200) return own;
      const body = structuredClone(own.body) as Envelope;
      const kept = noted.findLast(({ at }) => at <= time.at - minutes * 60_000);
      for (const [sku, record] of Object.entries(body.results)) {
        const was = kept?.truth.get(sku);
        if (was?.answer === 'record' && record.size_map !== undefined)
          record.size_map = { size_type: record.size_map['size_type'], ...was.sizeMap };
      }
      return { status: 200, body };
    };
    return () => (weather.answer = () => null);
  };

/** Bends the prices of each answered SKU. */
const pricing = (bend: (prices: readonly number[]) => readonly number[]): Spell =>
  bulk((envelope) => {
    for (const record of Object.values(envelope.results)) {
      const sizes = Object.entries(record.size_map ?? {}).filter(([, entry]) => typeof entry === 'number');
      const bent = bend(sizes.map(([, price]) => Number(price)));
      record.size_map = {
        ...record.size_map,
        ...Object.fromEntries(sizes.map(([size], at) => [size, bent[at]])),
      };
    }
  });

/** Bends members of successful deltas. `own` is the body that contains them. */
const delta = (members: (own: Delta, pending: Pending, rig: Rig) => object): Spell =>
  bending('delta', (own, pending, rig) =>
    'failed' in own || own.status !== 200
      ? own
      : { status: 200, body: { ...(own.body as Delta), ...members(own.body as Delta, pending, rig) } },
  );

const covered = ({ world }: Rig['partner']): string[] =>
  [...world.truth().values()].filter(({ priceSource }) => priceSource === 'snapshot').map(({ sku }) => sku);

const nothingNew = (since: string | null): Raw => ({
  status: 200,
  body: { changed: [], removed: [], now_live: [], to_snapshot: since },
});

/** Reasons learned from the last SKUs that were failing or refreshed again. They last until others have come. */
export const LEARNED: ReadonlySet<ReasonCode> = new Set(['prices-lag', 'skus-failing']);

export const QUIET: Readonly<Record<string, Spell>> = {
  'the delta stands still': bending('delta', (_, { since }) => nothingNew(since)),
  'every second delta stands still': (day, rig, draw) => {
    let n = 0;
    return bending('delta', (own, { since }) => ((n += 1) % 2 === 0 ? own : nothingNew(since)))(
      day,
      rig,
      draw,
    );
  },
  'the delta names no further snapshot': delta((_, { since }) => ({ to_snapshot: since })),
  'the delta reports every SKU': delta((_own, _pending, { partner }) => ({ changed: covered(partner) })),
  'the delta reports nothing': delta(() => ({ changed: [], now_live: [], removed: [] })),
  'the delta leaves out three reports of four': (day, rig, draw) =>
    delta(({ changed }) => ({ changed: changed.filter(() => draw(4) === 0) }))(day, rig, draw),
  'the delta never reports three SKUs of four': delta(({ changed }) => ({
    changed: changed.filter((sku) => sku.charCodeAt(sku.length - 1) % 4 === 0),
  })),
  'the catalog stands still': (day) => {
    const kept: { manifest?: Raw } = {};
    day.weather.answer = ({ route, since, compute }) => {
      if (route === 'delta') return nothingNew(since);
      if (route === 'manifest') return (kept.manifest ??= compute());
      return null;
    };
    return () => (day.weather.answer = () => null);
  },
  'live SKUs are in errors': bulk((envelope, rig) => move(envelope, 'errors', isLive(rig))),
  'live SKUs are deferred': bulk((envelope, rig) => move(envelope, 'deferred', isLive(rig))),
  'live SKUs are not found': bulk((envelope, rig) => move(envelope, 'not_found', isLive(rig))),
  'live SKUs are passed over': bulk((envelope, rig) => move(envelope, null, isLive(rig))),
  'some SKUs are passed over': bulk((envelope) =>
    move(envelope, null, (sku) => sku.charCodeAt(sku.length - 1) % 4 === 0),
  ),
  'calls are cut': bulk((envelope, _, skus) => move(envelope, null, (sku) => skus.indexOf(sku) >= 5)),
  'prices are gone': bulk((envelope) => {
    for (const record of Object.values(envelope.results))
      if (record.size_map !== undefined) record.size_map = { size_type: record.size_map['size_type'] };
  }),
  'prices are in satang': pricing((prices) => prices.map((price) => 100 * price)),
  'all sizes have the lowest price': pricing((prices) => prices.map(() => Math.min(...prices))),
  'sizes have the prices of others': pricing((prices) => [...prices.slice(1), ...prices.slice(0, 1)]),
  'prices are a cache': cached(),
  'prices are a cache for ten minutes': cached(10),
};
