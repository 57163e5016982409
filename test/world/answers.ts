import { gzipSync } from 'node:zlib';
import { pause } from '../support/eventually.ts';
import { type Build, type Chance, type Item, type Market, between, deltaBetween } from './market.ts';

export type Route = 'manifest' | 'delta' | 'bulk' | 'file';

export type FaultKind =
  | 'service-500'
  | 'authorizer-500'
  | 'page-502'
  | 'forbidden'
  | 'reset'
  | 'hang'
  | 'cut'
  | 'drip'
  | 'garbage'
  | 'stale'
  | 'none'
  | 'expired'
  | 'too-large'
  | 'behind'
  | 'live-errors'
  | 'some-errors'
  | 'defers'
  | 'short-list'
  | 'kept'
  | 'unknown-wave';

export interface Fault {
  readonly kind: FaultKind;
  readonly route: Route | 'all';
  readonly from: number;
  readonly until: number;
}

/** The forms of requests and answers that the partner's rules leave open. */
export interface Forms {
  readonly id: (n: number) => string;
  readonly idField: string;
  readonly urlField: string;
  readonly elements: 'text' | 'object';
  readonly entries: 'number' | 'text' | 'object' | 'lowest';
  readonly bulkKey: string;
  readonly extra: boolean;
  readonly emptyAsNull: boolean;
}

export interface PartnerPlan {
  readonly rateLimit: number;
  readonly rateWindowMs: number;
  /** Requests per window by other services of the account. */
  readonly neighbours: number;
  readonly buildEveryMs: number;
  readonly keptBuilds: number;
  readonly changesAtMost: number;
  /** Whether a delta leads only to the next snapshot, not to the newest. */
  readonly stepwise: boolean;
  readonly everyStep: boolean;
  readonly overReported: number;
  /** The share of its changes that a delta leaves out. */
  readonly omitted: number;
  readonly repeats: boolean;
  readonly deltaLag: number;
  readonly liveMs: readonly [number, number];
  readonly liveCacheMs: number;
  /** Live computations per ten seconds; 0 means no ceiling. */
  readonly liveCeiling: number;
  readonly urlLifeMs: number;
  readonly clockMs: number;
}

const LIVE_BUDGET = 5;
const CEILING_MS = 10_000;
/** How long the fault `kept` serves an old answer for a snapshot-priced SKU. */
const KEPT_MS = 8000;

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}
const ok = (body: unknown): Answer => ({ status: 200, body });
const coded = (status: number, code: string): Answer => ({ status, body: { message: `code ${code}`, code } });

/** The contents of the partner's answers, whoever asks: forms, lists and prices. */
export class Answers {
  readonly market: Market;
  readonly plan: PartnerPlan;
  forms: Forms;
  faults: readonly Fault[] = [];
  /** Every price ever answered, by SKU and size; `said` holds the other statements about each SKU. */
  readonly answered = new Map<string, Set<number>>();
  readonly said = new Map<string, Set<string>>();
  /** Set for the quiet phase, in which every answer follows the rules. */
  honest = false;
  /** The most live computations in one call. */
  mostLive = 0;
  /** Index of the oldest build that the partner remembers. */
  forgotten = 0;
  readonly #chance: Chance;
  readonly #files = new Map<string, { readonly build: Build; readonly until: number }>();
  readonly #computed: number[] = [];
  readonly #kept = new Map<string, { readonly until: number; readonly sizes: ReadonlyMap<string, number> }>();

  constructor(market: Market, plan: PartnerPlan, forms: Forms, chance: Chance) {
    this.market = market;
    this.plan = plan;
    this.forms = forms;
    this.#chance = chance;
  }

  /** Returns the route's current fault of one of these kinds. */
  fault(route: Route, kinds: readonly FaultKind[]): Fault | undefined {
    const now = Date.now();
    const isOn = (f: Fault) => (f.route === 'all' || f.route === route) && now >= f.from && now < f.until;
    return this.faults.find((f) => isOn(f) && kinds.includes(f.kind));
  }

  /** Returns the build that is `lag` builds older than the newest, but none that is forgotten. */
  #newest(lag: number): Build | undefined {
    const { builds } = this.market;
    return builds[Math.max(this.forgotten, builds.length - 1 - lag)];
  }

  manifest(base: string): Answer {
    if (this.fault('manifest', ['stale']) !== undefined) return coded(503, '0014');
    const build = this.fault('manifest', ['none']) === undefined ? this.#newest(0) : undefined;
    if (build === undefined) return coded(503, '0012');
    const now = Date.now();
    const token = Math.floor(this.#chance() * 2 ** 40).toString(36);
    this.#files.set(token, { build, until: now + this.plan.urlLifeMs });
    const time = (ms: number) => new Date(ms + this.plan.clockMs).toISOString();
    const lines = [...build.lines.values()];
    return ok({
      [this.forms.idField]: build.id,
      [this.forms.urlField]: `${base}/files/${token}.ndjson.gz?X-Amz-Expires=3600&X-Amz-Signature=${token}`,
      url_expires_at: time(now + 3_600_000),
      generated_at: time(build.at),
      sku_count: lines.length,
      live_priced_sku_count: lines.filter(({ source }) => source === 'live').length,
      ...(this.forms.extra ? { region: 'bkk', build_ms: 4211 } : {}),
    });
  }

  /** Returns the file behind a presigned URL, or null if the URL is unknown or has expired. */
  file(path: string): Buffer | null {
    const file = this.#files.get(/\/files\/(\w+)/.exec(path)?.[1] ?? '');
    if (file === undefined || file.until < Date.now()) return null;
    const lines = [...file.build.lines.values()].map((line) =>
      JSON.stringify({
        sku: line.sku,
        sizes: line.sizes.size,
        hash: line.hash,
        price_source: line.source,
        updated_at: new Date(line.updatedAt + this.plan.clockMs).toISOString(),
      }),
    );
    return gzipSync(`${lines.join('\n')}\n`);
  }

  delta(url: URL): Answer {
    const { plan, forms } = this;
    const since = url.searchParams.get('since') ?? '';
    if (since === '') return coded(400, '0011');
    if (this.fault('delta', ['stale']) !== undefined) return coded(503, '0014');
    if (this.fault('delta', ['too-large']) !== undefined) return coded(400, '0013');
    const { builds } = this.market;
    const from = builds.findIndex(({ id }) => id === since);
    const kept = Math.max(this.forgotten, builds.length - plan.keptBuilds);
    if (from < kept || this.fault('delta', ['expired']) !== undefined) return coded(400, '0010');
    const lag = (this.honest ? 0 : plan.deltaLag) + (this.fault('delta', ['behind']) === undefined ? 0 : 3);
    const last = Math.max(from, builds.length - 1 - lag);
    const to = plan.stepwise ? Math.min(from + 1, last) : last;
    const delta = deltaBetween(builds.slice(from, to + 1), plan.everyStep);
    if (delta.changed.length > plan.changesAtMost) return coded(400, '0013');
    const target = builds[to];
    const left = this.honest ? 0 : plan.omitted;
    const isLeft = (sku: string) => draws(sku + String(target?.id)) < left;
    const changed = delta.changed.filter((sku) => !isLeft(sku));
    const over = to > from ? plan.overReported : 0;
    for (let i = 0; i < over; i += 1) changed.push(...this.#anyListed(target));
    if (plan.repeats && !this.honest && from > 0)
      changed.push(
        ...deltaBetween(builds.slice(from - 1, from + 1), true).changed.filter((sku) =>
          target?.lines.has(sku),
        ),
      );
    for (const sku of delta.removed) this.#say(sku, 'removed');
    const unique = shuffled([...new Set(changed)], this.#chance);
    const element = (sku: string) => (forms.elements === 'text' ? sku : { sku });
    const list = (skus: readonly string[]) =>
      skus.length === 0 && forms.emptyAsNull ? null : skus.map(element);
    return ok({
      changed: list(unique),
      removed: list(shuffled(delta.removed, this.#chance)),
      now_live:
        unique.length === 0
          ? []
          : unique
              .filter((sku) => target?.lines.get(sku)?.source === 'live' && delta.nowLive.includes(sku))
              .map(element),
      to_snapshot: target?.id,
      ...(forms.extra ? { count: unique.length, from: since } : {}),
    });
  }

  #anyListed(build: Build | undefined): string[] {
    const snapshot = [...(build?.lines.values() ?? [])].filter(({ source }) => source === 'snapshot');
    const one = snapshot[Math.floor(this.#chance() * snapshot.length)];
    return one === undefined ? [] : [one.sku];
  }

  #say(sku: string, what: string): void {
    const all = this.said.get(sku) ?? new Set();
    this.said.set(sku, all.add(what));
  }

  #record(item: Item, sizes: ReadonlyMap<string, number>): unknown {
    for (const [size, price] of sizes) {
      const key = `${item.sku}\0${size}`;
      this.answered.set(key, (this.answered.get(key) ?? new Set()).add(price));
    }
    this.#say(item.sku, 'record');
    const entry = (price: number) =>
      ({ number: price, text: String(price), object: { price, asks: 3 }, lowest: { lowest_price: price } })[
        this.forms.entries
      ];
    const entries = Object.fromEntries([...sizes].map(([size, price]) => [size, entry(price)]));
    return {
      message: 'success',
      code: '0000',
      size_map: { size_type: item.sizeType, ...entries },
      product: { ...item.product, ...(this.forms.extra ? { colour: 'white' } : {}) },
    };
  }

  async bulk(asked: readonly string[]): Promise<Answer> {
    const skus = [...new Set(asked)];
    const taken =
      this.fault('bulk', ['short-list']) === undefined ? skus : skus.slice(0, Math.ceil(skus.length / 2));
    const results: Record<string, unknown> = {};
    const lists = { not_found: [] as string[], deferred: [] as string[], errors: [] as string[] };
    let live = 0;
    for (const sku of taken) {
      const item = this.market.items.get(sku);
      const wave = this.fault('bulk', ['unknown-wave']) !== undefined && draws(sku) < 0.1;
      if (item === undefined || !item.known || wave) {
        this.#say(sku, '0009');
        lists.not_found.push(sku);
      } else if (this.fault('bulk', ['some-errors']) !== undefined && draws(sku) < 0.15)
        lists.errors.push(sku);
      else if (item.source === 'live') {
        const kept = this.#kept.get(sku);
        if (kept !== undefined && kept.until > Date.now() && !this.honest)
          results[sku] = this.#record(item, kept.sizes);
        else if (this.fault('bulk', ['live-errors']) !== undefined) lists.errors.push(sku);
        else if (live >= LIVE_BUDGET || !this.#mayCompute() || item.neverPriced) lists.deferred.push(sku);
        else {
          live += 1;
          this.#computed.push(Date.now());
          await pause(between(this.#chance, ...this.plan.liveMs));
          results[sku] = this.#record(item, item.sizes);
          if (this.plan.liveCacheMs > 0) this.#keep(item, this.plan.liveCacheMs);
        }
      } else if (item.neverPriced) lists.errors.push(sku);
      else results[sku] = this.#snapshotPriced(item);
    }
    this.mostLive = Math.max(this.mostLive, live);
    const element = (sku: string) => (this.forms.elements === 'text' ? sku : { sku });
    const list = (of: readonly string[]) => of.map(element);
    return ok({
      results,
      not_found: list(lists.not_found),
      deferred: list(lists.deferred),
      errors: list(lists.errors),
      requested: taken.length,
      deduped: taken.length,
    });
  }

  #keep(item: Item, ms: number) {
    this.#kept.set(item.sku, { until: Date.now() + ms, sizes: new Map(item.sizes) });
  }

  #mayCompute(): boolean {
    const { liveCeiling } = this.plan;
    if (this.fault('bulk', ['defers']) !== undefined) return false;
    return (
      liveCeiling === 0 || this.#computed.filter((at) => at > Date.now() - CEILING_MS).length < liveCeiling
    );
  }

  #snapshotPriced(item: Item): unknown {
    const sizes = this.market.sizesNow(item);
    if (this.fault('bulk', ['kept']) === undefined) return this.#record(item, sizes);
    const kept = this.#kept.get(item.sku);
    if (kept !== undefined && kept.until > Date.now()) return this.#record(item, kept.sizes);
    this.#kept.set(item.sku, { until: Date.now() + KEPT_MS, sizes: new Map(sizes) });
    return this.#record(item, sizes);
  }
}

/** Maps a text to a number in [0, 1). */
function draws(text: string): number {
  let h = 2_166_136_261;
  for (const c of text) h = Math.imul(h ^ (c.codePointAt(0) ?? 0), 16_777_619);
  return ((h ^ (h >>> 13)) >>> 0) / 2 ** 32;
}

function shuffled<T>(of: readonly T[], chance: Chance): T[] {
  return of
    .map((one) => ({ one, key: chance() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ one }) => one);
}
