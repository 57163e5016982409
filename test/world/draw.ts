import type { Fault, FaultKind, Forms, PartnerPlan, Route } from './answers.ts';
import { type Chance, type MarketPlan, between, oneOf, whole } from './market.ts';

/** An event of an episode other than a fault of a route. */
export interface Event {
  readonly at: number;
  readonly what: 'deploy' | 'forgetful-deploy' | 'rotation' | 'kill' | 'restart' | 'incident';
  readonly lasts: number;
}

/** Everything that an episode draws. Times are milliseconds from the moment the market begins to move. */
export interface Plan {
  readonly seed: number;
  readonly activeMs: number;
  /** Whether the market rests until the mirror has loaded it. */
  readonly isFilled: boolean;
  /** Whether every SKU is also refreshed by age, which finds changes that nothing reports. */
  readonly sweeps: boolean;
  readonly queues: 'postgres' | 'redis';
  readonly market: MarketPlan;
  readonly partner: PartnerPlan;
  readonly forms: readonly Forms[];
  readonly faults: readonly Fault[];
  readonly events: readonly Event[];
  readonly env: Readonly<Record<string, string>>;
}

const ON_ANY: readonly FaultKind[] = ['service-500', 'page-502', 'reset', 'hang', 'cut', 'drip', 'garbage'];
const OF_ACCOUNT: readonly FaultKind[] = ['forbidden', 'authorizer-500'];
const OF_CATALOG: readonly (readonly [Route, FaultKind])[] = [
  ['delta', 'stale'],
  ['delta', 'expired'],
  ['delta', 'too-large'],
  ['delta', 'behind'],
  ['manifest', 'stale'],
  ['manifest', 'none'],
];
const OF_BULK: readonly FaultKind[] = ['live-errors', 'some-errors', 'defers', 'short-list'];
/** False answers, which only another request corrects. */
const UNTRUE: readonly FaultKind[] = ['kept', 'unknown-wave'];

const digits = (n: number, of: number) => String(n).padStart(of, '0');
const IDS: readonly [(n: number) => string, ...((n: number) => string)[]] = [
  (n) => `snap-${digits(n, 6)}`,
  (n) => String(1000 + n),
  (n) => new Date(Date.UTC(2026, 10, 1, 0, n * 7)).toISOString(),
  (n) => `${'e'.repeat(200)}.${Buffer.from(`build:${n}`).toString('base64url')}`,
  (n) => `v2/${digits(n, 4)}+final=${n}`,
];

function formsOf(chance: Chance, entries: Forms['entries'], bulkKey: string): Forms {
  return {
    id: oneOf(chance, IDS),
    idField: oneOf(chance, ['snapshot_id', 'snapshot', 'manifest_id', 'id']),
    urlField: oneOf(chance, ['url', 'manifest_url', 'download_url', 'presigned_url']),
    elements: oneOf(chance, ['text', 'object']),
    entries,
    bulkKey,
    extra: chance() < 0.4,
    emptyAsNull: chance() < 0.2,
  };
}

function faultsOf(chance: Chance, activeMs: number, sweeps: boolean): Fault[] {
  const faults: Fault[] = [];
  for (let i = whole(chance, 0, 4); i > 0; i -= 1) {
    const from = between(chance, 4000, activeMs * 0.85);
    const until = Math.min(activeMs, from + between(chance, 2000, activeMs / 3));
    const add = (kind: FaultKind, route: Fault['route']) => faults.push({ kind, route, from, until });
    const of = chance();
    const pick = (kinds: readonly FaultKind[]) => kinds[whole(chance, 0, kinds.length - 1)] ?? 'reset';
    if (of < 0.45) add(pick(ON_ANY), oneOf(chance, ['bulk', 'bulk', 'delta', 'manifest', 'file', 'all']));
    else if (of < 0.55) add(pick(OF_ACCOUNT), oneOf(chance, ['all', 'delta', 'bulk']));
    else if (of < 0.75) {
      const [route, kind] = OF_CATALOG[whole(chance, 0, OF_CATALOG.length - 1)] ?? ['delta', 'expired'];
      add(kind, route);
    } else add(pick(sweeps && chance() < 0.4 ? UNTRUE : OF_BULK), 'bulk');
  }
  return faults;
}

function eventsOf(chance: Chance, activeMs: number, sweeps: boolean): Event[] {
  const events: Event[] = [];
  const at = () => between(chance, 6000, activeMs * 0.85);
  if (chance() < 0.35)
    events.push({ at: at(), what: oneOf(chance, ['deploy', 'forgetful-deploy']), lasts: 0 });
  if (chance() < 0.15) events.push({ at: at(), what: 'rotation', lasts: between(chance, 1000, 12_000) });
  if (chance() < 0.25)
    events.push({ at: at(), what: oneOf(chance, ['kill', 'restart']), lasts: between(chance, 0, 4000) });
  if (sweeps && chance() < 0.12)
    events.push({ at: at(), what: 'incident', lasts: between(chance, 8000, 20_000) });
  return events;
}

const seconds = (n: number) => `${n}s`;

/** Draws the episode of a seed. */
export function drawPlan(
  seed: number,
  chance: Chance,
  seconds_: readonly [number, number],
  most: number,
): Plan {
  const activeMs = between(chance, ...seconds_) * 1000;
  const sweeps = chance() < 0.6;
  // The documented limit, or one with a window of ten seconds.
  const [rateLimit, window] = oneOf(chance, [
    [200, 60],
    [60, 10],
  ] as const);
  const lies = sweeps && chance() < 0.4;
  const market: MarketPlan = {
    skus: whole(chance, Math.min(60, most), most),
    liveShare: oneOf(chance, [0, 0.05, 0.15]),
    unlistedShare: 0.05,
    unknownShare: oneOf(chance, [0, 0.03]),
    neverShare: oneOf(chance, [0, 0, 0.01]),
    rate: oneOf(chance, [0.02, 0.05, 0.2]),
    born: between(chance, 0, 8),
    delisted: between(chance, 0, 6),
    relisted: between(chance, 0, 6),
    crossed: oneOf(chance, [0, between(chance, 0, 8)]),
    renamed: sweeps ? between(chance, 0, 6) : 0,
    resized: sweeps ? between(chance, 0, 2) : 0,
    withdrawn: oneOf(chance, [0, 0, between(chance, 0, 3)]),
    answersAsBuilt: chance() < 0.5,
  };
  const partner: PartnerPlan = {
    rateLimit,
    rateWindowMs: window * 1000,
    neighbours: Math.floor(rateLimit * oneOf(chance, [0, 0.2, 0.38])),
    buildEveryMs: between(chance, 6000, 20_000),
    keptBuilds: whole(chance, 3, 50),
    changesAtMost: oneOf(chance, [30, 10_000, 10_000]),
    stepwise: chance() < 0.3,
    everyStep: chance() < 0.5,
    overReported: oneOf(chance, [0, 0, 3]),
    omitted: lies ? between(chance, 0, 0.5) : 0,
    repeats: chance() < 0.2,
    deltaLag: oneOf(chance, [0, 0, 1]),
    liveMs: oneOf(chance, [
      [5, 40],
      [50, 300],
    ] as const),
    liveCacheMs: oneOf(chance, [0, 0, 3000]),
    liveCeiling: oneOf(chance, [0, 0, 24]),
    urlLifeMs: oneOf(chance, [3_600_000, 3_600_000, 400]),
    clockMs: oneOf(chance, [0, 0, 0, -3_000_000, 1_500_000]),
  };
  const entries = oneOf(chance, ['number', 'text', 'object', 'lowest'] as const);
  const bulkKey = oneOf(chance, ['skus', 'sku_list']);
  const back = whole(chance, 2, 5);
  return {
    seed,
    activeMs,
    isFilled: chance() < 0.75,
    sweeps,
    queues: chance() < 0.3 ? 'redis' : 'postgres',
    market,
    partner,
    forms: [formsOf(chance, entries, bulkKey), formsOf(chance, entries, bulkKey)],
    faults: faultsOf(chance, activeMs, sweeps),
    events: eventsOf(chance, activeMs, sweeps),
    env: {
      PARTNER_RATE_LIMIT: String(rateLimit),
      PARTNER_RATE_WINDOW: seconds(window),
      PARTNER_BULK_BODY_KEY: bulkKey,
      PARTNER_BACKOFF: seconds(back),
      PARTNER_TIMEOUT: seconds(whole(chance, 3, 6)),
      BULK_MAX_SKUS: String(oneOf(chance, [100, 100, 40])),
      DELTA_INTERVAL: seconds(whole(chance, 2, 5)),
      CATALOG_CHECK_INTERVAL: seconds(whole(chance, 8, 25)),
      LIVE_INTERVAL: seconds(whole(chance, 15, 35)),
      DEFERRED_INTERVAL: seconds(whole(chance, 1, 4)),
      ERROR_INTERVAL: '1s',
      ...(sweeps
        ? {
            SWEEP_INTERVAL: '40s',
            SWEEP_MIN_AGE: '8s',
            METADATA_INTERVAL: '45s',
            MANIFEST_INTERVAL: lies ? '30s' : '10m',
          }
        : { SWEEP_INTERVAL: '0', SWEEP_MIN_AGE: '2h' }),
    },
  };
}
