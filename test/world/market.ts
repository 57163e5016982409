import { createHash } from 'node:crypto';

/** A source of numbers in [0, 1), the same for the same seed. */
export type Chance = () => number;

export const between = (chance: Chance, from: number, to: number) => from + chance() * (to - from);
export const whole = (chance: Chance, from: number, to: number) => Math.floor(between(chance, from, to + 1));
export function oneOf<T>(chance: Chance, of: readonly [T, ...T[]]): T {
  return of[Math.floor(chance() * of.length)] ?? of[0];
}

export interface Product {
  name: string;
  model: string;
  brand: string;
  gender_size: string;
  size_type: string;
  category: string;
}

/** The current truth about one SKU. */
export interface Item {
  readonly sku: string;
  readonly sizes: Map<string, number>;
  readonly product: Product;
  sizeType: string;
  source: 'snapshot' | 'live';
  /** Whether the SKU has a row in the market-state store, and therefore a line in the next manifest. */
  listed: boolean;
  /** If false, the price routes answer 0009. */
  known: boolean;
  /** If true, the price routes never price it: they defer it, or answer an error. */
  neverPriced: boolean;
  /** Moves per minute. */
  readonly rate: number;
  touchedAt: number;
}

export interface Line {
  readonly sku: string;
  readonly sizes: ReadonlyMap<string, number>;
  readonly hash: string | null;
  readonly source: 'snapshot' | 'live';
  readonly updatedAt: number;
}

export interface Build {
  readonly id: string;
  readonly at: number;
  readonly lines: ReadonlyMap<string, Line>;
}

/** The market's part of what an episode draws. */
export interface MarketPlan {
  readonly skus: number;
  readonly liveShare: number;
  readonly unlistedShare: number;
  readonly unknownShare: number;
  readonly neverShare: number;
  /** The median SKU's moves per minute; those of others differ by a factor of up to e². */
  readonly rate: number;
  /** This and the rates below: events per minute in the whole market. */
  readonly born: number;
  readonly delisted: number;
  readonly relisted: number;
  readonly crossed: number;
  readonly renamed: number;
  readonly resized: number;
  readonly withdrawn: number;
  /** Whether a snapshot-priced SKU is answered as the last snapshot has it, not as it is now. */
  readonly answersAsBuilt: boolean;
}

const BRANDS = ['Nike', 'adidas', 'ASICS', 'New Balance'] as const;
const SIZE_TYPES = ['US', 'EU', 'UK'] as const;

function bell(chance: Chance): number {
  return chance() + chance() + chance() + chance() - 2;
}

/** The market, which alone knows the truth. It moves by the times that are passed in. */
export class Market {
  readonly items = new Map<string, Item>();
  readonly builds: Build[] = [];
  idForm: (n: number) => string = (n) => `snap-${n}`;
  #made = 0;
  #lastTick: number;
  readonly #chance: Chance;
  readonly plan: MarketPlan;

  constructor(plan: MarketPlan, chance: Chance, now: number) {
    this.plan = plan;
    this.#chance = chance;
    this.#lastTick = now;
    for (let i = 0; i < plan.skus; i += 1) this.#bear(now);
  }

  #bear(now: number): void {
    const chance = this.#chance;
    this.#made += 1;
    const base = Math.round(between(chance, 900, 12_000));
    const sizes = new Map<string, number>();
    for (let i = whole(chance, 1, 9); i > 0; i -= 1)
      sizes.set(String(6 + i / 2), Math.round(base * between(chance, 0.85, 1.2)));
    const sku = `${oneOf(chance, ['DD', 'FV', 'HQ', 'IE'])}${String(this.#made).padStart(4, '0')}-${whole(chance, 100, 999)}`;
    const sizeType = oneOf(chance, SIZE_TYPES);
    this.items.set(sku, {
      sku,
      sizes,
      sizeType,
      product: {
        name: `Shoe ${this.#made}`,
        model: `M${whole(chance, 1, 30)}`,
        brand: oneOf(chance, BRANDS),
        gender_size: oneOf(chance, ['men', 'women']),
        size_type: sizeType,
        category: 'sneakers',
      },
      source: chance() < this.plan.liveShare ? 'live' : 'snapshot',
      listed: chance() >= this.plan.unlistedShare,
      known: chance() >= this.plan.unknownShare,
      neverPriced: chance() < this.plan.neverShare,
      rate: this.plan.rate * Math.exp(bell(chance)),
      touchedAt: now,
    });
  }

  #any(where: (item: Item) => boolean): Item | undefined {
    const those = [...this.items.values()].filter(where);
    return those[Math.floor(this.#chance() * those.length)];
  }

  /** Calls `happen` roughly as often as a Poisson process of this rate would. */
  #times(perMinute: number, minutes: number, happen: () => void): void {
    let left = perMinute * minutes;
    for (; left >= 1; left -= 1) happen();
    if (this.#chance() < left) happen();
  }

  /** Moves some sizes by a few percent and sometimes adds or removes one, as undercutting and sales do. */
  #move(item: Item, now: number): void {
    const chance = this.#chance;
    const share = chance() < 0.5 ? 1 : 0.4;
    const common = between(chance, -0.06, 0.06);
    for (const [size, price] of item.sizes)
      if (chance() < share)
        item.sizes.set(size, Math.max(60, Math.round(price * (1 + common + between(chance, -0.02, 0.02)))));
    const [first] = item.sizes.values();
    if (first !== undefined && chance() < 0.08)
      item.sizes.set(String(6 + whole(chance, 10, 14) / 2), Math.round(first * between(chance, 0.95, 1.1)));
    if (item.sizes.size > 4 && chance() < 0.05) item.sizes.delete([...item.sizes.keys()][0] ?? '');
    item.touchedAt = now;
  }

  /** Lets the market move from this time on. */
  resume(now: number): void {
    this.#lastTick = now;
  }

  /** Moves the market on to this time. */
  tick(now: number): void {
    const chance = this.#chance;
    const minutes = Math.max(0, now - this.#lastTick) / 60_000;
    this.#lastTick = now;
    const { plan } = this;
    for (const item of this.items.values()) this.#times(item.rate, minutes, () => this.#move(item, now));
    const change = (item: Item | undefined, how: (item: Item) => void) => {
      if (item === undefined) return;
      how(item);
      item.touchedAt = now;
    };
    this.#times(plan.born, minutes, () => this.#bear(now));
    this.#times(plan.delisted, minutes, () =>
      change(
        this.#any((i) => i.listed),
        (i) => {
          i.listed = false;
          i.known = chance() < 0.5;
        },
      ),
    );
    this.#times(plan.relisted, minutes, () =>
      change(
        this.#any((i) => !i.listed),
        (i) => {
          i.listed = true;
          i.known = true;
        },
      ),
    );
    this.#times(plan.crossed, minutes, () =>
      change(
        this.#any((i) => i.listed),
        (i) => (i.source = i.source === 'live' ? 'snapshot' : 'live'),
      ),
    );
    this.#times(plan.renamed, minutes, () =>
      change(
        this.#any(() => true),
        (i) => (i.product.name = `Shoe ${whole(chance, 10_000, 99_999)}`),
      ),
    );
    this.#times(plan.resized, minutes, () =>
      change(
        this.#any(() => true),
        (i) => (i.sizeType = oneOf(chance, SIZE_TYPES)),
      ),
    );
    this.#times(plan.withdrawn, minutes, () =>
      change(
        this.#any((i) => i.sizes.size > 0),
        (i) => i.sizes.clear(),
      ),
    );
  }

  /** Builds a snapshot of the market's current state. */
  build(now: number): Build {
    const lines = new Map<string, Line>();
    for (const item of this.items.values()) {
      if (!item.listed) continue;
      const text = JSON.stringify([...item.sizes].toSorted(([a], [b]) => Number(a) - Number(b)));
      const hash = createHash('sha1')
        .update(item.sku + text)
        .digest('hex')
        .slice(0, 16);
      const { sku, source, touchedAt: updatedAt } = item;
      lines.set(sku, {
        sku,
        source,
        updatedAt,
        sizes: new Map(item.sizes),
        hash: source === 'live' ? null : hash,
      });
    }
    const build = { id: this.idForm(this.builds.length + 1), at: now, lines };
    this.builds.push(build);
    return build;
  }

  /** Returns the price of each size that the price routes answer for a SKU now. */
  sizesNow(item: Item): ReadonlyMap<string, number> {
    const line = this.builds.at(-1)?.lines.get(item.sku);
    const built = this.plan.answersAsBuilt && item.source === 'snapshot' && line?.source === 'snapshot';
    return built ? line.sizes : item.sizes;
  }
}

/** Returns what a delta from the first build to the last reports. Compares consecutive builds, or only the two ends. */
export function deltaBetween(builds: readonly Build[], everyStep: boolean) {
  const changed = new Set<string>();
  const removed = new Set<string>();
  const last = builds.at(-1);
  const steps = everyStep ? builds : [builds[0], last];
  for (const [i, to] of steps.entries()) {
    const from = steps[i - 1];
    if (from === undefined || to === undefined) continue;
    for (const line of to.lines.values()) {
      const before = from.lines.get(line.sku);
      if (before?.hash !== line.hash || before?.source !== line.source) changed.add(line.sku);
    }
  }
  for (const build of builds)
    for (const sku of build.lines.keys())
      if (last !== undefined && !last.lines.has(sku)) {
        changed.delete(sku);
        removed.add(sku);
      }
  const nowLive = [...changed].filter((sku) => last?.lines.get(sku)?.source === 'live');
  return { changed: [...changed], removed: [...removed], nowLive };
}
