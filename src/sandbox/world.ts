import { HintTeller, type ToldHints } from './hints.ts';
import { Market, type Item, type PriceSource } from './market.ts';
import { ExampleMoves, type ProductLine, type Released, releaseLine, stepMarket } from './moves.ts';
import type { Settings } from './options.ts';
import type { Rng } from './rng.ts';
import type { Details, Product, Sizes } from './skus.ts';
import type { AddOptions } from './skus.ts';
import { SnapshotChain, type CatalogCode, type Delta, type Snapshot } from './snapshots.ts';

const DRAW_TRIES = 64;

/** What is true about one SKU: the tests' oracle. */
export interface TruthRow {
  sku: string;
  /** What the price routes answer now. */
  answer: 'record' | 'not_found';
  listed: boolean;
  /** Its cohort in the newest snapshot; null if not listed. */
  priceSource: PriceSource | null;
  /** Its hash in the newest snapshot; null if live or not listed. */
  hash: string | null;
  /** Present prices in whole baht by size; null for an entry without one. Empty if the price routes answer 0009. */
  sizeMap: Record<string, number | null>;
  /** `size_map.size_type` now. */
  sizeType: string;
  product: Product;
}

/** One line of the manifest file (partner rules 2.6). */
export interface ManifestLine {
  sku: string;
  sizes: number;
  hash: string | null;
  price_source: PriceSource;
  updated_at: string;
}

/** How the price routes see a SKU now. `live`: the answer takes a live computation. */
export type Quote =
  | { result: 'record'; live: boolean; sizes: Sizes; details: Details }
  | { result: 'not_found' }
  | { result: 'failing' };

/**
 * The partner's world: the present market, and the snapshots built from it. Seeded, no I/O. The price routes answer
 * the present market (partner rule 4.2.1); manifest and delta answer what the last `buildSnapshot` froze. Moves by
 * hand throw a `SandboxError` of kind `unknown_sku` for a SKU that the world does not know.
 */
export class World {
  /** Increases with `revokeUrls`: presigned URLs of an older generation answer 403. */
  urlGeneration = 0;
  readonly #market: Market;
  readonly #chain: SnapshotChain;
  readonly #moves: number;
  readonly #examples: ExampleMoves;
  readonly #hints: HintTeller;

  constructor(settings: Settings) {
    this.#moves = settings.marketMoves;
    this.#market = new Market(settings);
    this.#examples = new ExampleMoves(this.#market);
    this.#hints = new HintTeller(this.#market, settings);
    this.#chain = new SnapshotChain(this.#market, settings);
    if (settings.initialSnapshot) this.#chain.build();
  }

  /**
   * Runs random moves: price walks, sizes, crossings, withdrawals, relistings, removals, new SKUs, metadata. The
   * examples move on their own.
   */
  step(moves: number = this.#moves): void {
    stepMarket(this.#market, moves);
    this.#examples.step();
    this.#hints.tell();
  }

  /** Returns the hints after an id; by default all that are stored. */
  hints(after = 0): ToldHints {
    return this.#hints.after(after);
  }

  /**
   * Moves most sizes of most listed SKUs of a line now, as in a release; without names, of the line with the most
   * live SKUs. Returns null if there is no such line.
   */
  release(line: Partial<ProductLine> = {}): Released | null {
    return releaseLine(this.#market, line);
  }

  /** Sets the price of a size (whole baht; null for an entry without a price); opens the size if it is missing. */
  setPrice(sku: string, size: string, price: number | null): void {
    this.#market.setPrice(sku, size, price);
  }

  dropSize(sku: string, size: string): void {
    this.#market.dropSize(sku, size);
  }

  /** Moves a SKU to the other cohort (partner rule 4.2.7); the catalog shows it from the next snapshot on. */
  cross(sku: string, to: PriceSource): void {
    this.#market.cross(sku, to);
  }

  /** Withdraws every listing: empty `size_map`, still listed, another hash (partner rule 4.2.4). */
  withdraw(sku: string): void {
    this.#market.withdraw(sku);
  }

  /** Deletes the market rows (partner rule 2.8.removed). The price routes then answer 0009 unless `priceable`. */
  remove(sku: string, options: { priceable?: boolean } = {}): void {
    this.#market.remove(sku, options.priceable ?? false);
  }

  /** Brings back a withdrawn or removed SKU, with new sizes. */
  relist(sku: string): void {
    this.#market.relist(sku);
  }

  /** Adds a new SKU and returns its name, which is drawn by default. Throws `sku_exists` for a known one. */
  add(sku?: string, options: AddOptions = {}): string {
    return this.#market.add(sku, options);
  }

  /** Corrects what the size keys mean, in `size_map` and `product`. Moves no hash (partner rule 4.2.2). */
  correctSizeType(sku: string, value: string): void {
    this.#market.correctSizeType(sku, value);
  }

  /** Changes members of `product` only. Moves no hash. */
  setProduct(sku: string, partial: Partial<Product>): void {
    this.#market.setProduct(sku, partial);
  }

  /** During an incident the whole catalog is live-priced (partner rules 2.7). */
  setIncident(on: boolean): void {
    this.#market.setIncident(on);
  }

  /** Makes the price routes fail for a SKU: 500 singly, `errors` in bulk (partner rules 2.5). */
  setFailing(sku: string, on: boolean): void {
    this.#market.setFailing(sku, on);
  }

  /** Makes bulk calls with a SKU, even an unknown one, answer 400 as a whole (partner rule 7.1.400). */
  setRefused(sku: string, on: boolean): void {
    if (on) this.#market.refused.add(sku);
    else this.#market.refused.delete(sku);
  }

  refuses(sku: string): boolean {
    return this.#market.refused.has(sku);
  }

  /** Freezes the present market as the newest snapshot; returns its id. */
  buildSnapshot(): string {
    return this.#chain.build().id;
  }

  newestSnapshot(): string | null {
    return this.#chain.newest?.id ?? null;
  }

  /** Makes every id older than the newest answer 0010 from now on. */
  breakChain(): void {
    this.#chain.breakChain();
  }

  /** Frees all but the newest `keep` snapshots: older ids answer 0010, their files 404. */
  expireSnapshots(keep: number): void {
    this.#chain.expire(keep);
  }

  /** Stops the builder: manifest and delta answer 0014, scheduled builds are skipped. */
  stopBuilder(): void {
    this.#chain.builderStopped = true;
  }

  startBuilder(): void {
    this.#chain.builderStopped = false;
  }

  builderRuns(): boolean {
    return !this.#chain.builderStopped;
  }

  /** Frees every snapshot: the manifest answers 0012 until the next build. */
  dropSnapshots(): void {
    this.#chain.expire(0);
  }

  /** Makes presigned URLs issued so far answer 403 from now on (partner rule 4.2.9). */
  revokeUrls(): void {
    this.urlGeneration += 1;
  }

  /** Returns what is true now about every SKU that the price routes or the catalog know. */
  truth(): Map<string, TruthRow> {
    return new Map(this.#market.items.map((item) => [item.sku, this.#truthOf(item)]));
  }

  /** Returns the same about one SKU; undefined if the world has never known it. */
  find(sku: string): TruthRow | undefined {
    const item = this.#market.find(sku);
    return item && this.#truthOf(item);
  }

  #truthOf(item: Item): TruthRow {
    const { newest } = this.#chain;
    const line = newest === null ? null : this.#chain.lineAt(newest, item);
    const { sizeType, product } = this.#market.detailsOf(item);
    return {
      sku: item.sku,
      answer: item.priceable ? 'record' : 'not_found',
      listed: line !== null,
      priceSource: line && priceSource(line.hash),
      hash: line?.hash ?? null,
      sizeMap: item.priceable ? Object.fromEntries(this.#market.sizesOf(item)) : {},
      sizeType,
      product: { ...product },
    };
  }

  /** Returns whether the price routes or the catalog know a SKU. */
  knows(sku: string): boolean {
    const item = this.#market.find(sku);
    return item !== undefined && (item.priceable || item.rows);
  }

  /** Draws a size of a SKU that is on the market now, and about its price, by `rng`; null if hardly any is. */
  draw(rng: Rng): { sku: string; size: string; price: number } | null {
    const { items } = this.#market;
    for (let tryNumber = 0; tryNumber < DRAW_TRIES; tryNumber += 1) {
      const item = items[rng.int(items.length)];
      const [first, ...rest] = item?.priceable ? this.#market.sizesOf(item) : [];
      if (item === undefined || first === undefined) continue;
      const [size, price] = rng.pick([first, ...rest]);
      return {
        sku: item.sku,
        size,
        price: Math.max(100, Math.round((price ?? 1000) * (0.95 + rng.next() * 0.1))),
      };
    }
    return null;
  }

  /** Returns how the price routes see a SKU at this instant (partner rules 4.1). */
  quote(sku: string): Quote {
    const item = this.#market.find(sku);
    if (item === undefined || !item.priceable) return { result: 'not_found' };
    if (this.#market.failing.has(sku)) return { result: 'failing' };
    return {
      result: 'record',
      live: this.#market.isLive(item) || item.mislisted,
      sizes: this.#market.sizesOf(item),
      details: this.#market.detailsOf(item),
    };
  }

  /** Returns the newest snapshot, or why none is servable (partner rules 4.2.manifest, 4.2.delta: 503). */
  servable(): Snapshot | '0012' | '0014' {
    const { newest } = this.#chain;
    if (newest === null) return '0012';
    return this.#chain.unavailable() ?? newest;
  }

  /** Returns what changed since a snapshot (partner rules 2.8), or the code of the refusal. */
  delta(since: string | null): Delta | CatalogCode {
    return this.#chain.delta(since);
  }

  /**
   * Returns the lines of a snapshot; null if it is freed. Reading may continue while the market moves, snapshots
   * are built, and this one is freed.
   */
  lines(id: string): Iterable<ManifestLine> | null {
    const snapshot = this.#chain.find(id);
    return snapshot === undefined ? null : this.#linesOf(snapshot);
  }

  *#linesOf(snapshot: Snapshot): Generator<ManifestLine> {
    for (const item of this.#market.items) {
      const line = this.#chain.lineAt(snapshot, item);
      if (line === null) continue;
      const { sizes, hash, updatedAt } = line;
      yield {
        sku: item.sku,
        sizes,
        hash,
        price_source: priceSource(hash),
        updated_at: new Date(updatedAt).toISOString(),
      };
    }
  }
}

function priceSource(hash: string | null): PriceSource {
  return hash === null ? 'live' : 'snapshot';
}
