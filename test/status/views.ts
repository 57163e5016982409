import { judgeHealth } from '../../src/status/health.ts';
import type { PageView } from '../../src/status/page.ts';
import type { MirrorState } from '../../src/status/reason.ts';
import { sampleOf } from '../../src/status/sample.ts';
import type { Sample } from '../../src/store/status/samples.ts';
import { CASES, healthOf, mirrorWith, NOW } from './cases.ts';

/* Pages in various states, each with the day before it. */

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;

export const IDENTITY: PageView['identity'] = {
  name: 'prod',
  host: 'worker-1',
  partner: 'api.partner.example',
  database: 'catalog on db.internal port 5432',
  version: '1.2.3',
  upSeconds: 90_000,
};

/** Returns a sample of the healthy mirror that many minutes ago, with some changes. */
export const sampleAt = (minutesAgo: number, more: Partial<Sample> = {}): Sample => ({
  ...sampleOf(CASES.healthy, 'healthy', NOW),
  minute: new Date(Math.floor(NOW.getTime() / MINUTE_MS - minutesAgo) * MINUTE_MS),
  priceChanges: 12,
  ...more,
});

/** Returns a value between -1 and 1, always the same for the same arguments. */
const wave = (minute: number, period: number, phase = 0): number =>
  Math.sin((2 * Math.PI * (minute + phase)) / period);
const noise = (minute: number, salt: number): number => {
  const x = Math.sin(minute * 12.9898 + salt * 78.233) * 43_758.5453;
  return 2 * (x - Math.floor(x)) - 1;
};

/**
 * Returns the samples of a plausible day: prices move more by day, one delta brought many changes at a time, one
 * request was rejected, the whole catalog was live-priced for an hour, and no daemon ran for forty minutes.
 */
export function someDay(): readonly Sample[] {
  return Array.from({ length: DAY_MINUTES }, (_, i) => DAY_MINUTES - 1 - i)
    .filter((ago) => ago < 610 || ago >= 650)
    .map((ago) => {
      const backingOff = ago >= 338 && ago < 342;
      const incident = ago >= 180 && ago < 240;
      const burst = ago >= 900 && ago < 930 ? (930 - ago) / 30 : 0;
      const sinceBackOff = ago < 338 && ago >= 320 ? 59 + (338 - ago) * 3 : 118;
      const state: MirrorState = backingOff || incident ? 'degraded' : 'healthy';
      const late = incident ? (240 - ago) / 60 : ago < 180 && ago > 150 ? (ago - 150) / 30 : 0;
      return sampleAt(ago, {
        state,
        backingOff,
        incident,
        requests: backingOff
          ? 0
          : Math.round(Math.min(sinceBackOff, 70 + 18 * wave(ago, 900) + 12 * noise(ago, 1) + 45 * burst)),
        otherRequests: Math.round(20 + 10 * wave(ago, 700, 90) + 5 * noise(ago, 2)),
        ceiling: sinceBackOff,
        due: Math.round(60 + 30 * noise(ago, 3) + 900 * burst + (backingOff ? 200 : 0) + 700 * late),
        pending: Math.round(6 + 4 * noise(ago, 4)),
        snapshot: {
          priced: 18_900,
          fresh: Math.round(18_850 - 60 * burst - 1200 * late),
          p50: 21_000 + 3000 * wave(ago, 800),
          p95: 62_000 + 4000 * wave(ago, 800) + 6000 * late,
        },
        live: {
          priced: 1000,
          fresh: Math.round(985 + 6 * noise(ago, 5) - 90 * late),
          p50: 700 + 60 * noise(ago, 6) + 700 * late,
          p95: 1550 + 90 * noise(ago, 7) + 2600 * late,
        },
        priceChanges: Math.max(0, Math.round(14 + 9 * wave(ago, 1440, 300) + 6 * noise(ago, 8) + 60 * burst)),
      });
    });
}

/** The first minutes of a mirror that is being filled. */
const firstMinutes = (): readonly Sample[] =>
  Array.from({ length: 4 }, (_, i) => 3 - i).map((ago) =>
    sampleAt(ago, {
      state: 'filling',
      skus: 20_000,
      pending: 15_000 + 1500 * ago,
      due: 15_000 + 1500 * ago,
      requests: 118,
      otherRequests: 0,
      snapshot: { priced: 5000 - 1500 * ago, fresh: 5000 - 1500 * ago, p50: 60, p95: 170 },
      live: { priced: 0, fresh: 0, p50: null, p95: null },
      priceChanges: 0,
    }),
  );

const CHANGES: PageView['changes'] = [
  ['DD1391-100', '9', 4200, 4100, 'Nike Dunk Low Retro White Black Panda'],
  ['FV5029-141', '10.5', 12_900, 13_500, 'Air Jordan 4 Retro White Thunder'],
  ['HQ2050', 'M', null, 2350, 'adidas Originals Firebird Track Top'],
  ['BY9109', '7.5', 9800, null, 'adidas Yeezy Boost 350 V2 Zebra'],
].map(([sku, size, oldPrice, newPrice, name], i) => ({
  sku: String(sku),
  size: String(size),
  oldPrice: oldPrice as number | null,
  newPrice: newPrice as number | null,
  name: String(name),
  observedAt: new Date(NOW.getTime() - (7 + 19 * i) * 1000),
}));

const THROTTLED: PageView['problems'] = [
  {
    at: new Date(NOW.getTime() - 18_000),
    level: 'warn',
    event: 'pace.silenced',
    message: 'throttled or refused',
    hint: 'all requests are paused until 2026-11-21T12:00:42.000Z, then one is sent as a test',
    times: 1,
  },
  ...Array.from({ length: 4 }, (_, i) => ({
    at: new Date(NOW.getTime() - 4_000_000 * (i + 1)),
    level: 'error',
    event: 'delta.failed',
    message: `the delta failed (network) ${i}`,
    hint: 'check PARTNER_BASE_URL, DNS, TLS and the network; run `catalog-mirror doctor`',
    times: 1 + i,
  })),
];

/** Returns a page with some changes. */
export function pageView(more: Partial<PageView> = {}): PageView {
  const status = more.status === undefined ? CASES.healthy : more.status;
  return {
    identity: IDENTITY,
    status,
    health: status === null ? judgeHealth(null) : healthOf(status),
    samples: [],
    changes: [],
    problems: [],
    now: NOW,
    runbookUrlBase: null,
    ...more,
  };
}

/** A page in each state, in its most common form. */
export const VIEWS = {
  healthy: pageView({ samples: someDay(), changes: CHANGES }),
  filling: pageView({ status: CASES['first fill'], samples: firstMinutes() }),
  degraded: pageView({
    status: mirrorWith({ ...CASES['backing off'], sync: { manifestRefused: 'rejected-token' } }),
    samples: someDay(),
    changes: CHANGES,
    problems: THROTTLED,
    runbookUrlBase: 'https://wiki.example.com/runbooks',
  }),
  paused: pageView({ status: CASES.paused, samples: someDay(), changes: CHANGES }),
  broken: pageView({ status: CASES['daemon long gone'], samples: someDay().slice(0, 200), changes: CHANGES }),
} as const satisfies Record<MirrorState, PageView>;

/** The states, plus two extremes: a mirror in its first minute, and one that cannot be read. */
export const EVERY_VIEW: Readonly<Record<string, PageView>> = {
  ...VIEWS,
  'first minute': pageView({ status: CASES['first manifest'] }),
  unreadable: pageView({ status: null, samples: someDay(), problems: THROTTLED }),
};
