import type { FrozenLine, Item, Market } from './market.ts';
import type { Settings } from './options.ts';
import { createRng, fingerprint, mix, type Rng } from './rng.ts';
import { bornSizes, type Sizes } from './skus.ts';

const BORN_SPREAD_MS = 30 * 86_400_000;

type Frozen = FrozenLine | 'born' | null;

/** One snapshot of the catalog, linked to the one built after it. */
export interface Snapshot {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly generatedAt: number;
  readonly skuCount: number;
  readonly liveCount: number;
  /** Items listed here whose fingerprint or cohort changed since the previous snapshot, including no-ops. */
  readonly changed: ReadonlySet<Item>;
  /** Items listed by the previous snapshot but not here. */
  readonly removed: ReadonlySet<Item>;
  /** Lines of this snapshot that `next` replaced: older snapshots are reconstructed backwards from the newest. */
  readonly replaced: Map<Item, Frozen>;
  next: Snapshot | null;
  broken: boolean;
}

/** Why the catalog routes refuse (partner rules 7.3). */
export type CatalogCode = '0010' | '0011' | '0012' | '0013' | '0014';

/** Changes between two snapshots (partner rules 2.8), as arrays of SKUs. */
export interface Delta {
  changed: string[];
  removed: string[];
  nowLive: string[];
  toSnapshot: string;
}

/** Returns the fingerprint of market state (partner rule 4.2.2): only sizes and their prices. */
function marketHash(sizes: Sizes): string {
  return fingerprint(sizes.entries().map(([size, price]) => `${size}=${price ?? ''}`));
}

/** Returns the fingerprint of which SKUs exist, how each is priced, and at what prices. */
function catalogHash(items: readonly Item[]): string {
  const line = ({ sku, seed, live, rows, market }: Item) =>
    `${sku}/${seed}/${live}/${rows}/${market === null ? '' : marketHash(market.sizes)}`;
  return fingerprint(items.values().map(line));
}

function isLiveLine(item: Item, line: Frozen): boolean {
  return line === 'born' ? item.bornLive : line?.hash === null;
}

/** The chain of snapshots of a market: builds them, keeps the last ones, and computes what changed between two. */
export class SnapshotChain {
  builderStopped = false;
  readonly #market: Market;
  readonly #settings: Settings;
  readonly #rng: Rng;
  readonly #bornAt: number;
  /** Oldest first. */
  #retained: Snapshot[] = [];
  /** The last one built, even if it is no longer retained. */
  #tip: Snapshot | null = null;
  /** Identifies the catalog with which the chain began, and when, so that two chains never share an identifier. */
  #origin = '';
  #noopsDue = 0;

  constructor(market: Market, settings: Settings) {
    this.#market = market;
    this.#settings = settings;
    this.#rng = createRng(mix(settings.seed, 12));
    this.#bornAt = settings.now();
  }

  /** The newest retained snapshot; null if there is none. */
  get newest(): Snapshot | null {
    return this.#retained.at(-1) ?? null;
  }

  find(id: string): Snapshot | undefined {
    return this.#retained.find((snapshot) => snapshot.id === id);
  }

  /** Freezes the present market. Costs as much as moved since the last build; the first costs the whole catalog. */
  build(): Snapshot {
    const previous = this.#tip;
    const changed = new Set<Item>();
    const removed = new Set<Item>();
    let skuCount = previous?.skuCount ?? 0;
    let liveCount = previous?.liveCount ?? 0;
    for (const item of previous === null ? this.#market.items : this.#market.dirty) {
      const before = item.line;
      const after = this.#freeze(item);
      item.line = after;
      skuCount += Number(after !== null) - Number(before !== null);
      liveCount += Number(isLiveLine(item, after)) - Number(isLiveLine(item, before));
      if (previous === null) continue;
      previous.replaced.set(item, before);
      if (after === null && before !== null) removed.add(item);
      else if (after !== null && !this.#sameHash(item, before, after)) changed.add(item);
    }
    this.#market.dirty.clear();
    if (previous === null) this.#origin = `${this.#bornAt}/${catalogHash(this.#market.items)}`;
    else this.#addNoops(changed);
    const id = `cs-${fingerprint([`${this.#settings.seed}/${this.#origin}/${this.#rng.next()}`])}`;
    const snapshot: Snapshot = {
      id,
      generatedAt: this.#settings.now(),
      skuCount,
      liveCount,
      changed,
      removed,
      replaced: new Map(),
      next: null,
      broken: false,
    };
    if (previous !== null) previous.next = snapshot;
    this.#tip = snapshot;
    this.#retained.push(snapshot);
    this.expire(this.#settings.snapshotRetention);
    return snapshot;
  }

  /** Returns the item's line in a snapshot; null if it is not listed. Correct for any snapshot, retained or not. */
  lineAt(snapshot: Snapshot, item: Item): FrozenLine | null {
    for (let at = snapshot; at.next !== null; at = at.next) {
      const frozen = at.replaced.get(item);
      if (frozen !== undefined) return this.#resolve(item, frozen);
    }
    return this.#resolve(item, item.line);
  }

  /** Returns why no snapshot is servable now (partner rules 4.2.manifest, 4.2.delta: 503); null if one is. */
  unavailable(): '0012' | '0014' | null {
    const { newest } = this;
    if (newest === null) return '0012';
    const { staleAfterMs, now } = this.#settings;
    const stale = staleAfterMs !== null && now() - newest.generatedAt > staleAfterMs;
    return this.builderStopped || stale ? '0014' : null;
  }

  /** Returns the changes since a snapshot (partner rules 2.8, 4.2.2, 4.2.4 to 4.2.7), or the code of the refusal. */
  delta(since: string | null): Delta | CatalogCode {
    if (since === null || since === '') return '0011';
    if (this.unavailable() === '0014') return '0014';
    const from = this.find(since);
    if (from === undefined || from.broken) return '0010';
    if (from.next !== null && this.#tooLarge(from.next)) return '0013';
    const reported = new Set<Item>();
    let to = from;
    for (let hops = 0; to.next !== null && hops < this.#settings.deltaHops; hops += 1) {
      if (this.#tooLarge(to.next)) break;
      to = to.next;
      for (const item of to.changed) reported.add(item);
      for (const item of to.removed) reported.add(item);
    }
    const delta: Delta = { changed: [], removed: [], nowLive: [], toSnapshot: to.id };
    for (const item of reported) {
      const line = this.lineAt(to, item);
      if (line !== null) delta.changed.push(item.sku);
      else if (this.lineAt(from, item) !== null) delta.removed.push(item.sku);
      if (line?.hash === null) delta.nowLive.push(item.sku);
    }
    return delta;
  }

  /** Makes every id older than the newest answer 0010 from now on. */
  breakChain(): void {
    for (const snapshot of this.#retained.slice(0, -1)) snapshot.broken = true;
  }

  expire(keep: number): void {
    this.#retained = keep > 0 ? this.#retained.slice(-keep) : [];
  }

  #tooLarge(hop: Snapshot): boolean {
    const { deltaMaxChanges } = this.#settings;
    return deltaMaxChanges !== null && hop.changed.size + hop.removed.size > deltaMaxChanges;
  }

  #freeze(item: Item): Frozen {
    if (!item.rows) return null;
    const live = this.#market.isLive(item);
    if (item.market === null) {
      if (live === item.bornLive) return 'born';
      const born = this.#born(item);
      return {
        ...born,
        hash: live ? null : marketHash(bornSizes(item.seed)),
        updatedAt: this.#settings.now(),
      };
    }
    const { sizes, changedAt } = item.market;
    return { sizes: sizes.size, hash: live ? null : marketHash(sizes), updatedAt: changedAt };
  }

  /** Two live lines are the same, whatever their market did (partner rule 4.2.6). */
  #sameHash(item: Item, before: Frozen, after: Frozen): boolean {
    return before !== null && this.#resolve(item, before)?.hash === this.#resolve(item, after)?.hash;
  }

  #resolve(item: Item, frozen: Frozen): FrozenLine | null {
    return frozen === 'born' ? this.#born(item) : frozen;
  }

  #born(item: Item): FrozenLine {
    const sizes = bornSizes(item.seed);
    const updatedAt = this.#bornAt - (item.seed % BORN_SPREAD_MS);
    return { sizes: sizes.size, hash: item.bornLive ? null : marketHash(sizes), updatedAt };
  }

  /** Over-reports (partner rules 2.8) some snapshot-priced SKUs that did not move. */
  #addNoops(changed: Set<Item>): void {
    this.#noopsDue += changed.size * this.#settings.noopShare;
    const { items } = this.#market;
    for (let tries = this.#noopsDue * 20; tries >= 1 && this.#noopsDue >= 1; tries -= 1) {
      const item = items[this.#rng.int(items.length)];
      if (item === undefined || changed.has(item)) continue;
      const line = this.#resolve(item, item.line);
      if (line === null || line.hash === null) continue;
      changed.add(item);
      this.#noopsDue -= 1;
    }
  }
}
