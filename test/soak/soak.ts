import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { differencesOf } from '../support/differences.ts';
import { eventually, pause } from '../support/eventually.ts';
import { randomFrom } from '../support/market.ts';
import { hasRedisServer } from '../support/redis-server.ts';
import { footprint } from './daemon.ts';
import { type Scene, type Disruption, DISRUPTIONS } from './disruptions.ts';
import { Follower } from './follower.ts';
import { grown, type Sample } from './growth.ts';
import { PARTNER_DISRUPTIONS } from './partner-disruptions.ts';
import { openSite, type Site } from './site.ts';

export const BACKENDS = ['redis', 'postgres'] as const;
export type Backend = (typeof BACKENDS)[number];

export interface SoakOptions {
  readonly backend: Backend;
  readonly minutes: number;
  readonly seed: number;
  /** Words in the names of disruptions to leave out. */
  readonly without: readonly string[];
}

type Say = (text: string) => void;

const MINUTE_MS = 60_000;
/** The longest first fill. */
const FILL_MS = 3 * MINUTE_MS;
/**
 * The longest time until the mirror equals the truth after the last disruption: a failed delta waits a minute, a
 * SKU in error waits twice, and an incident that only deferrals revealed is retried every ten minutes; until then
 * a round over all SKUs takes calls of five.
 */
const SETTLES_MS = 15 * MINUTE_MS;
const MARKET_MS = 1000;
const SNAPSHOT_EVERY = 10;
const GAP_MS = 30_000;
/** Shorter runs cannot show what grows. */
const MIN_SAMPLES = 60;
const SAMPLE_MS = 5000;

/** Moves the market and builds snapshots until stopped. */
function moveMarket({ sandbox }: Site, stop: AbortSignal): void {
  let steps = 0;
  const timer = setInterval(() => {
    sandbox.step();
    steps += 1;
    if (steps % SNAPSHOT_EVERY === 0) sandbox.world.buildSnapshot();
  }, MARKET_MS);
  stop.addEventListener('abort', () => clearInterval(timer));
}

/** Counts the partner's rejections for the rate: 403, which nothing here answers on purpose. */
function countThrottled({ sandbox }: Site, stop: AbortSignal): () => number {
  let throttled = 0;
  let from = 0;
  const look = () => {
    const requests = sandbox.requests.filter(({ at }) => at >= from);
    throttled += requests.filter(({ status, route }) => status === 403 && route !== 'file').length;
    from = Date.now();
  };
  const timer = setInterval(look, MARKET_MS);
  stop.addEventListener('abort', () => clearInterval(timer));
  return () => throttled;
}

/** Draws one disruption after the other until stopped; each is over before the next one from its list starts. */
async function makeDisruption(
  site: Site,
  of: readonly Disruption[],
  random: () => number,
  { count, failed }: { readonly count: (name: string) => void; readonly failed: (text: string) => void },
  stop: AbortSignal,
): Promise<void> {
  const wait = async (ms: number) => {
    const over = performance.now() + ms;
    while (!stop.aborted && performance.now() < over) await pause(Math.min(250, ms));
  };
  while (!stop.aborted) {
    await wait(random() * GAP_MS);
    if (stop.aborted) return;
    const disruption = of[Math.floor(random() * of.length)] as Disruption;
    const skus: string[] = [];
    const scene: Scene = {
      site,
      sandbox: site.sandbox,
      random,
      remember: (sku) => void skus.push(sku),
      remembered: () => skus,
    };
    count(disruption.name);
    try {
      await disruption.begin(scene);
      await wait(random() * (disruption.seconds ?? 0) * 1000);
    } catch (error) {
      failed(`${disruption.name} could not be made: ${String(error)}`);
    } finally {
      await disruption.end?.(scene);
    }
    // A SKU that fails even alone waits an hour, unless somebody has fixed the cause and refreshes it.
    if (skus.length > 0) await refreshSkus(site.sql, skus).catch(() => {});
  }
}

/** Waits until the mirror holds the truth; rejects with what differs. */
async function settled(site: Site): Promise<number> {
  const from = performance.now();
  await eventually(
    async () => {
      const differing = await differencesOf(site.sql, site.sandbox.world);
      if (differing.length > 0)
        throw new Error(`${differing.length} SKUs differ, first ${JSON.stringify(differing.slice(0, 2))}`);
    },
    { what: 'the mirror as the truth is', within: SETTLES_MS, every: 1000 },
  );
  return (performance.now() - from) / 1000;
}

/** Runs one soak; returns the promises that were broken. */
export async function soak(options: SoakOptions, say: Say): Promise<string[]> {
  const { backend, minutes, seed, without } = options;
  if (backend === 'redis' && !hasRedisServer) {
    say('queues in redis: skipped, there is no redis-server');
    return [];
  }
  await using site = await openSite(backend, seed);
  const { daemons, sandbox, sql } = site;
  const stop = new AbortController();
  const failures: string[] = [];
  const failed = (text: string) => void failures.push(text);
  const counts = new Map<string, number>();
  const count = (name: string) => void counts.set(name, (counts.get(name) ?? 0) + 1);
  say(`queues in ${backend}, ${minutes} min, seed ${seed}`);
  for (const disruption of DISRUPTIONS) {
    const missing = disruption.missing?.(site) ?? null;
    if (missing !== null) say(`left out: ${disruption.name}: ${missing}`);
  }
  const able = DISRUPTIONS.filter(
    (disruption) =>
      (disruption.missing?.(site) ?? null) === null &&
      !without.some((word) => disruption.name.includes(word)),
  );
  for (const daemon of daemons) daemon.start();
  const filled = async () => {
    const [{ done }] = await sql<[{ done: boolean }]>`
      select (select manifest_applied_at is not null from catalog_internal.sync)
        and not exists (select from catalog.skus where state = 'pending') as done`;
    return done;
  };
  await eventually(filled, { what: 'the first fill', within: FILL_MS, every: 500 });
  const follower = new Follower(sql);
  await follower.start();
  moveMarket(site, stop.signal);
  const throttled = countThrottled(site, stop.signal);
  const random = randomFrom(seed);
  const [ofSite, ofPartner] = [
    randomFrom(Math.floor(random() * 2 ** 31)),
    randomFrom(Math.floor(random() * 2 ** 31)),
  ];
  const making = Promise.all([
    makeDisruption(
      site,
      able.filter((disruption) => !PARTNER_DISRUPTIONS.includes(disruption)),
      ofSite,
      { count, failed },
      stop.signal,
    ),
    makeDisruption(
      site,
      able.filter((disruption) => PARTNER_DISRUPTIONS.includes(disruption)),
      ofPartner,
      { count, failed },
      stop.signal,
    ),
  ]);

  const samples: Sample[] = [];
  const begun = performance.now();
  const progress = () => {
    const passed = (performance.now() - begun) / MINUTE_MS;
    const disruptions = [...counts.values()].reduce((sum, n) => sum + n, 0);
    const ends = new Date(Date.now() + (minutes - passed) * MINUTE_MS).toTimeString().slice(0, 5);
    const rss = Math.round((footprint(daemons[0]?.pid ?? null)?.rss ?? 0) / 2 ** 20);
    say(
      `minute ${passed.toFixed(0)} of ${minutes}: ${sandbox.counts()} requests, ${follower.seen} changes, ${disruptions} disruptions, RSS ${rss} MB; noise ends at ${ends}`,
    );
  };
  let said = begun;
  while (performance.now() - begun < minutes * MINUTE_MS) {
    await pause(SAMPLE_MS);
    samples.push(await sampled(site));
    if (performance.now() - said < MINUTE_MS) continue;
    said = performance.now();
    progress();
  }
  stop.abort();
  await making;
  sandbox.faults.clear();
  sandbox.world.buildSnapshot();
  say('the noise has ended');
  const seconds = await settled(site).catch((error: unknown) => {
    failed(error instanceof Error ? error.message : String(error));
    return null;
  });
  await follower.end().catch((error: unknown) => failed(`the follower: ${String(error)}`));
  failures.push(...follower.faults.map((text) => `the follower: ${text}`));
  failures.push(...daemons.flatMap(({ unexpected }) => unexpected));
  if (throttled() > 0) failed(`${throttled()} requests were throttled`);
  const growth = samples.length >= MIN_SAMPLES ? grown(samples) : null;
  failures.push(...(growth ?? []).map((text) => `grown: ${text}`));
  if (failures.length > 0)
    for (const { name, lines } of daemons)
      say(`last lines of the ${name} daemon:\n  ${lines.slice(-8).join('\n  ')}`);
  say(
    table([
      ['queues in', backend],
      ['seed', String(seed)],
      ['equal to the truth', seconds === null ? 'never' : `${seconds.toFixed(0)} s after the noise`],
      [
        'changes followed',
        `${follower.seen}, ${follower.faults.length === 0 ? 'once and in order' : 'with faults'}`,
      ],
      ['requests', `${sandbox.counts()}, ${throttled()} of them throttled`],
      ['unexpected exits', String(daemons.reduce((sum, { unexpected }) => sum + unexpected.length, 0))],
      [
        'growth',
        growth === null ? 'not judged in so short a run' : growth.length === 0 ? 'none' : growth.join(', '),
      ],
      ...[...counts]
        .toSorted(([, a], [, b]) => b - a)
        .map(([name, n]): [string, string] => [name, String(n)]),
    ]),
  );
  return failures;
}

async function sampled(site: Site): Promise<Sample> {
  const first = footprint(site.daemons[0]?.pid ?? null);
  const store = await site.sample().catch(() => ({}));
  return first === null ? store : { ...store, 'daemon rss': first.rss, 'daemon files': first.files };
}

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join('\n');
}
