import type { Settings } from './options.ts';
import { createRng, mix, type Rng } from './rng.ts';
import {
  type AddOptions,
  bornDetails,
  bornSizes,
  type Details,
  drawSizes,
  drawSku,
  EXAMPLES,
  exampleSizes,
  HOSTILE_SKUS,
  MIN_SKUS_WITH_EXAMPLES,
  movedSizes,
  type Product,
  type Sizes,
} from './skus.ts';

/** Where a SKU's price comes from (partner rules 2.6). */
export type PriceSource = 'snapshot' | 'live';

/** One SKU of the present world. A null member has its initial value, derived from the seed on demand. */
export interface Item {
  readonly sku: string;
  readonly seed: number;
  readonly bornLive: boolean;
  live: boolean;
  /** Listed as `snapshot`, but priced from the live source. */
  readonly mislisted: boolean;
  /** The price routes answer with a record, not with 0009. */
  priceable: boolean;
  /** It has rows in the market-state store, so the next snapshot lists it. */
  rows: boolean;
  market: { readonly sizes: Sizes; changedAt: number } | null;
  /** What it was last offered for before a withdrawal; null if it never was withdrawn. */
  former: Sizes | null;
  details: Details | null;
  /** Its line in the newest snapshot; `born` if derived from the seed, null if not listed. */
  line: FrozenLine | 'born' | null;
}

/** A call that the sandbox's state does not allow. */
class SandboxError extends Error {
  readonly kind: 'unknown_sku' | 'sku_exists';
  constructor(kind: SandboxError['kind'], sku: string) {
    super(`${kind}: ${sku}`);
    this.name = 'SandboxError';
    this.kind = kind;
  }
}

/** The present market: every SKU, and every move that can happen to one. Pure state, no I/O. */
export class Market {
  readonly items: Item[] = [];
  /** Items moved since the last snapshot. */
  readonly dirty = new Set<Item>();
  /** Items whose prices have moved since hints were given, in order of their last move. */
  readonly moved = new Set<Item>();
  /** Items that were withdrawn or removed, oldest first: candidates for a relisting. */
  readonly gone = new Set<Item>();
  /** The examples of skus.ts, which no random move touches. */
  readonly examples = new Set<Item>();
  readonly failing = new Set<string>();
  readonly refused = new Set<string>();
  incident = false;
  readonly rng: Rng;
  readonly #bySku = new Map<string, Item>();
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.rng = createRng(mix(settings.seed, 11));
    for (const { sku, ...looks } of settings.catalog) this.add(sku, looks);
    this.#populate();
  }

  /** Returns the item of a SKU; undefined if the world does not know it. */
  find(sku: string): Item | undefined {
    return this.#bySku.get(sku);
  }

  /** Returns the present sizes and prices of an item. Must not be modified. */
  sizesOf(item: Item): Sizes {
    return item.market?.sizes ?? bornSizes(item.seed);
  }

  detailsOf(item: Item): Details {
    return item.details ?? bornDetails(item.seed);
  }

  /** Returns whether the next snapshot lists the item as live-priced. */
  isLive(item: Item): boolean {
    return this.incident || item.live;
  }

  setPrice(sku: string, size: string, price: number | null): void {
    const item = this.#known(sku);
    const sizes = this.#touch(item);
    if (sizes.get(size) !== price) this.#noteMove(item);
    sizes.set(size, price);
  }

  dropSize(sku: string, size: string): void {
    const item = this.#known(sku);
    if (this.#touch(item).delete(size)) this.#noteMove(item);
  }

  cross(sku: string, to: PriceSource): void {
    const item = this.#known(sku);
    item.live = to === 'live';
    this.dirty.add(item);
  }

  withdraw(sku: string): void {
    const item = this.#known(sku);
    const sizes = this.#touch(item);
    if (sizes.size > 0) {
      item.former = new Map(sizes);
      this.#noteMove(item);
    }
    sizes.clear();
    this.gone.add(item);
  }

  remove(sku: string, priceable: boolean): void {
    const item = this.#known(sku);
    item.rows = false;
    item.priceable = priceable;
    this.dirty.add(item);
    this.gone.add(item);
  }

  /** Offers a SKU again, at about its previous prices. */
  relist(sku: string): void {
    const item = this.#known(sku);
    const wasRemoved = !item.rows;
    item.rows = true;
    item.priceable = true;
    this.gone.delete(item);
    const sizes = this.#touch(item);
    this.#noteMove(item);
    if (!wasRemoved && sizes.size > 0) return;
    const former = sizes.size > 0 ? new Map(sizes) : item.former;
    sizes.clear();
    const offered =
      former === null ? drawSizes(this.detailsOf(item).sizeType, this.rng) : movedSizes(former, this.rng);
    for (const [size, price] of offered) sizes.set(size, price);
  }

  add(sku: string | undefined, options: AddOptions): string {
    if (sku !== undefined && this.#bySku.has(sku)) throw new SandboxError('sku_exists', sku);
    const item = this.#create(sku ?? this.#freshSku(), {
      live: options.live ?? false,
      priceable: options.priceable ?? true,
      rows: options.listed ?? true,
    });
    const born = bornDetails(item.seed);
    const sizeType = options.sizeType ?? born.sizeType;
    item.details = { sizeType, product: { ...born.product, size_type: sizeType, ...options.product } };
    const sizes = options.sizes ? new Map(Object.entries(options.sizes)) : drawSizes(sizeType, this.rng);
    item.market = { sizes, changedAt: this.#settings.now() };
    this.dirty.add(item);
    return item.sku;
  }

  correctSizeType(sku: string, value: string): void {
    const item = this.#known(sku);
    const { product } = this.detailsOf(item);
    item.details = { sizeType: value, product: { ...product, size_type: value } };
  }

  setProduct(sku: string, partial: Partial<Product>): void {
    const item = this.#known(sku);
    const { sizeType, product } = this.detailsOf(item);
    item.details = { sizeType, product: { ...product, ...partial } };
  }

  setIncident(on: boolean): void {
    if (this.incident === on) return;
    this.incident = on;
    for (const item of this.items) if (item.rows) this.dirty.add(item);
  }

  setFailing(sku: string, on: boolean): void {
    if (on) this.failing.add(this.#known(sku).sku);
    else this.failing.delete(sku);
  }

  #known(sku: string): Item {
    const item = this.#bySku.get(sku);
    if (item === undefined) throw new SandboxError('unknown_sku', sku);
    return item;
  }

  /** Returns the item's own sizes for modification, and marks the item as changed. */
  #touch(item: Item): Sizes {
    item.market ??= { sizes: bornSizes(item.seed), changedAt: 0 };
    item.market.changedAt = this.#settings.now();
    this.dirty.add(item);
    return item.market.sizes;
  }

  #noteMove(item: Item): void {
    this.moved.delete(item);
    this.moved.add(item);
  }

  #freshSku(): string {
    let sku = drawSku(this.rng);
    while (this.#bySku.has(sku) || isExample(sku)) sku = drawSku(this.rng);
    return sku;
  }

  #create(
    sku: string,
    kind: { live?: boolean; mislisted?: boolean; priceable?: boolean; rows?: boolean },
  ): Item {
    const item: Item = {
      sku,
      seed: mix(this.#settings.seed, this.items.length),
      bornLive: kind.live ?? false,
      live: kind.live ?? false,
      mislisted: kind.mislisted ?? false,
      priceable: kind.priceable ?? true,
      rows: kind.rows ?? true,
      market: null,
      former: null,
      details: null,
      line: null,
    };
    this.items.push(item);
    this.#bySku.set(sku, item);
    return item;
  }

  /** Creates exactly the asked number of each kind, spread at random; no SKU is of two kinds (selection sampling). */
  #populate(): void {
    const { skus, liveShare, ghostShare, mislistedShare, unlistedShare } = this.#settings;
    let live = Math.round(skus * liveShare);
    let ghosts = Math.round(skus * ghostShare);
    let mislisted = Math.round(skus * mislistedShare);
    const allLive = live + ghosts + mislisted >= skus;
    for (let left = skus; left > 0; left -= 1) {
      const draw = this.rng.next() * left;
      const sku = this.#bornSku(skus - left);
      if (draw < live) {
        live -= 1;
        this.#createOrdinary(sku, { live: true, mayBeExample: allLive });
      } else if (draw < live + ghosts) {
        ghosts -= 1;
        this.#create(sku, { priceable: false });
      } else if (draw < live + ghosts + mislisted) {
        mislisted -= 1;
        this.#create(sku, { mislisted: true });
      } else this.#createOrdinary(sku, { live: false, mayBeExample: true });
    }
    for (let left = Math.round(skus * unlistedShare); left > 0; left -= 1) {
      this.#create(this.#freshSku(), { rows: false });
    }
    const refused = Math.round(skus * this.#settings.refusedShare);
    for (let nth = 0; nth < refused; nth += 1) {
      const item = this.items[Math.floor(((nth + 0.5) * skus) / refused)];
      if (item !== undefined) this.refused.add(item.sku);
    }
  }

  /** Creates a priceable SKU. The first eligible ones become the examples, which are snapshot-priced if any SKU is. */
  #createOrdinary(sku: string, { live, mayBeExample }: { live: boolean; mayBeExample: boolean }): void {
    const isRoom = mayBeExample && this.#settings.skus >= MIN_SKUS_WITH_EXAMPLES;
    const example = isRoom && !HOSTILE_SKUS.includes(sku) ? this.#nextExample() : undefined;
    const item = this.#create(example?.sku ?? sku, { live });
    if (example === undefined) return;
    item.details = example.details;
    item.market = { sizes: exampleSizes(example), changedAt: this.#settings.now() };
    this.examples.add(item);
  }

  #nextExample(): (typeof EXAMPLES)[number] | undefined {
    return EXAMPLES.find(({ sku }) => !this.#bySku.has(sku));
  }

  #bornSku(index: number): string {
    const hostile = this.#settings.skus >= 50 ? HOSTILE_SKUS[index] : undefined;
    return hostile === undefined || this.#bySku.has(hostile) ? this.#freshSku() : hostile;
  }
}

function isExample(name: string): boolean {
  return EXAMPLES.some(({ sku }) => sku === name);
}

/** One manifest line as a snapshot froze it. `hash` is null if it is live-priced. */
export interface FrozenLine {
  readonly sizes: number;
  readonly hash: string | null;
  /** Epoch milliseconds. */
  readonly updatedAt: number;
}
