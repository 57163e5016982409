import type { Draw } from './faults.ts';
import type { Bend, Raw, SimPartner } from './partner.ts';

/* Answers that are well-formed, but say too little, too much, or what was true before. */

interface Delta {
  readonly changed?: readonly string[] | null;
  readonly removed?: readonly string[] | null;
  readonly now_live?: readonly string[] | null;
  readonly to_snapshot?: string | null;
}

interface Record {
  readonly size_map?: Readonly<globalThis.Record<string, unknown>>;
}

/** How long a cache on the way to the price routes may keep an answer (partner rules 8). */
const CACHED_MS = 10 * 60_000;

const ofDelta =
  (members: (own: Delta, since: string | null) => Delta): Bend =>
  (own, since) => {
    if ('failed' in own || own.status !== 200) return own;
    const body = own.body as Delta;
    return { status: 200, body: { ...body, ...members(body, since) } };
  };

/** Repeats SKUs at random, and reports once more what was reported before. */
function saidAgain({ world }: SimPartner, draw: Draw): Bend {
  const twice = (list: readonly string[] | null | undefined) =>
    list && [...list, ...list.filter(() => draw(2) === 0)].toReversed();
  return ofDelta(({ changed, removed, now_live, to_snapshot }) => {
    const isNewest = to_snapshot === world.newestSnapshot() && Boolean(changed) && Boolean(now_live);
    const again = [...world.truth().values()].filter(({ listed }) => isNewest && listed && draw(4) === 0);
    const live = again.filter(({ priceSource }) => priceSource === 'live');
    const skus = (rows: typeof again) => rows.map(({ sku }) => sku);
    return {
      removed: twice(removed),
      changed: twice(isNewest ? [...(changed ?? []), ...skus(again)] : changed),
      now_live: twice(isNewest ? [...(now_live ?? []), ...skus(live)] : now_live),
    };
  });
}

/** Leaves some changes out for good. */
function leftOut({ omitted }: SimPartner, draw: Draw): Bend {
  return ofDelta(({ changed, now_live }) => {
    const gone = new Set((changed ?? []).filter(() => draw(3) === 0));
    for (const sku of gone) omitted.add(sku);
    const kept = (list: readonly string[] | null | undefined) => list?.filter((sku) => !gone.has(sku));
    return { changed: kept(changed), now_live: kept(now_live) };
  });
}

/** Answers some records as they were up to ten minutes ago. */
function cached(partner: SimPartner, draw: Draw): Bend {
  type Sizes = globalThis.Record<string, number | null>;
  const { world, settings } = partner;
  const kept = new Map<string, { at: number; sizes: Sizes }>();
  const keep = () => {
    for (const { sku, answer, sizeMap } of world.truth().values())
      if (answer === 'record') kept.set(sku, { at: settings.now(), sizes: sizeMap });
  };
  keep();
  return (own: Raw) => {
    if ('failed' in own || own.status !== 200) return own;
    const body = own.body as { results?: globalThis.Record<string, Record> };
    if ([...kept.values()].every(({ at }) => settings.now() - at > CACHED_MS)) keep();
    const results = Object.entries(body.results ?? {}).map(([sku, record]): [string, Record] => {
      const was = kept.get(sku);
      const now = world.find(sku)?.sizeMap ?? {};
      if (was === undefined || settings.now() - was.at > CACHED_MS || draw(3) === 0) {
        kept.set(sku, { at: settings.now(), sizes: now });
        return [sku, record];
      }
      if (record.size_map === undefined || JSON.stringify(was.sizes) === JSON.stringify(now))
        return [sku, record];
      partner.note('record from a cache');
      partner.saidLate(sku, was.sizes);
      const meaning = 'size_type' in record.size_map ? { size_type: record.size_map['size_type'] } : {};
      return [sku, { ...record, size_map: { ...was.sizes, ...meaning } }];
    });
    return { status: 200, body: { ...body, results: Object.fromEntries(results) } };
  };
}

/** By name: the route, and how its answers are bent. */
export const REWORDED: Readonly<
  globalThis.Record<string, readonly ['bulk' | 'delta', (partner: SimPartner, draw: Draw) => Bend]>
> = {
  'deltas that say it again': ['delta', saidAgain],
  'deltas that leave out': ['delta', leftOut],
  'deltas that name no further snapshot': ['delta', () => ofDelta((_, since) => ({ to_snapshot: since }))],
  'some records from a cache': ['bulk', cached],
};
