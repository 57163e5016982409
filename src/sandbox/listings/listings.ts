import type { Keyset } from '../answer.ts';
import type { Settings } from '../options.ts';
import type { Goods, ListingType } from '../orders/order.ts';
import { createRng, mix, type Rng } from '../rng.ts';

/** Lowest price that a new listing is stored with, whole baht (partner rule 8.create-floor). */
const MIN_NEW = 50;

/** Lowest price that an edited listing is stored with, whole baht (partner rule 8.edit-floor). */
const MIN_EDITED = 100;

/** Part of the steps in which a listing sells. */
const STEPS_THAT_SELL = 0.1;

const DAY_MS = 86_400_000;

/** One live listing. Times are epoch milliseconds, the price whole baht. */
export interface Listing extends Keyset, Goods {
  readonly id: string;
  /** Whether it belongs to the sandbox's account, and not to another supplier. */
  readonly own: boolean;
  readonly listingType: ListingType;
  price: number;
  quantity: number;
  updatedAt: number;
}

type Terms = Pick<Listing, 'own' | 'listingType' | 'quantity' | 'createdAt' | 'updatedAt'>;

/**
 * Every live listing, of the account and of another supplier. A world of its own: what is listed here moves no lowest
 * price. State in memory, seeded; time comes from the settings.
 */
export class Listings {
  readonly #byId = new Map<string, Listing>();
  readonly #settings: Settings;
  readonly #rng: Rng;
  #seq = 0;

  /** `draw` finds goods to list; null where the catalog has none. */
  constructor(settings: Settings, draw: (rng: Rng) => Goods | null) {
    this.#settings = settings;
    this.#rng = createRng(mix(settings.seed, 22));
    for (const terms of this.#born()) {
      const goods = draw(this.#rng);
      if (goods === null) break;
      this.#add(goods, terms);
    }
  }

  /** Every live listing, in the order of their ids; `own` tells whose it is. */
  [Symbol.iterator](): Iterator<Readonly<Listing>> {
    return this.#byId.values();
  }

  /** One live listing, of any seller. */
  find(id: string): Readonly<Listing> | undefined {
    return this.#byId.get(id);
  }

  /** A new listing of the account, a price below the floor raised to it (partner rules 4.4). */
  create(goods: Goods, listingType: ListingType, quantity: number): Readonly<Listing> {
    const now = this.#settings.now();
    const price = Math.max(MIN_NEW, goods.price);
    return this.#add(
      { ...goods, price },
      { own: true, listingType, quantity, createdAt: now, updatedAt: now },
    );
  }

  /** Sets a listing's price, raised to the floor of edits; null where there is no such listing. */
  edit(id: string, price: number): Readonly<Listing> | null {
    const listing = this.#byId.get(id);
    if (listing === undefined) return null;
    listing.price = Math.max(MIN_EDITED, price);
    listing.updatedAt = this.#settings.now();
    return listing;
  }

  /** Time goes on: in some of the steps one piece of a listing of the account is sold. */
  step(): Readonly<Listing> | null {
    if (!this.#rng.chance(STEPS_THAT_SELL)) return null;
    const [first, ...rest] = [...this.#byId.values()].filter(({ own }) => own);
    return first === undefined ? null : this.sell(this.#rng.pick([first, ...rest]).id);
  }

  /** Sells one piece of a listing, the last of which takes it off; null where there is no such listing. */
  sell(id: string): Readonly<Listing> | null {
    const sold = this.#byId.get(id);
    if (sold === undefined) return null;
    sold.quantity -= 1;
    sold.updatedAt = this.#settings.now();
    if (sold.quantity === 0) this.#byId.delete(sold.id);
    return sold;
  }

  #add({ sku, size, price }: Goods, terms: Terms): Listing {
    this.#seq += 1;
    const id = `L-${String(this.#seq).padStart(6, '0')}`;
    const listing = { ...terms, id, seq: this.#seq, sku, size, price };
    this.#byId.set(id, listing);
    return listing;
  }

  /** What is listed at start, oldest first: of the account's nine of ten as ask, of the other supplier's one of two. */
  #born(): Terms[] {
    const { listings, foreignOrders } = this.#settings;
    const now = this.#settings.now();
    const born = (own: boolean, listingType: ListingType): Terms => {
      const createdAt = now - Math.floor(this.#rng.next() * 30 * DAY_MS);
      return { own, listingType, quantity: 1 + this.#rng.int(3), createdAt, updatedAt: createdAt };
    };
    const own = Array.from({ length: listings }, (_, index) =>
      born(true, index % 10 === 1 ? 'preorder' : 'ask'),
    );
    const foreign = Array.from({ length: foreignOrders }, (_, index) =>
      born(false, index % 2 === 1 ? 'preorder' : 'ask'),
    );
    return [...own, ...foreign].toSorted((left, right) => left.createdAt - right.createdAt);
  }
}
