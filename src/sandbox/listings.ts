import {
  type Answer,
  type Call,
  invalid,
  type Keyset,
  type Page,
  pageOf,
  readFields,
  readObject,
} from './answer.ts';
import type { Dialect, Settings } from './options.ts';
import { type Goods, type ListingType, notFound, type SupplierAccount } from './orders/order.ts';
import { createRng, mix, type Rng } from './rng.ts';
import { extra, type Json } from './wire.ts';
import type { World } from './world.ts';

/** Lowest price at which a new listing is stored, whole baht (partner rule 8.create-floor). */
const MIN_NEW = 50;

/** Lowest price at which an edited listing is stored, whole baht (partner rule 8.edit-floor). */
const MIN_EDITED = 100;

/** Share of steps in which a listing sells. */
const STEPS_THAT_SELL = 0.1;

const DAY_MS = 86_400_000;

/** One live listing. Times are epoch milliseconds, the price whole baht. */
export interface Listing extends Keyset, Goods {
  readonly id: string;
  /** Whether it belongs to the sandbox's account rather than to another supplier. */
  readonly own: boolean;
  readonly listingType: ListingType;
  price: number;
  quantity: number;
  updatedAt: number;
}

type Terms = Pick<Listing, 'own' | 'listingType' | 'quantity' | 'createdAt' | 'updatedAt'>;

/**
 * All live listings, of the account and of another supplier. They are separate from the market: a listing moves no
 * lowest price. In memory and seeded; time comes from the settings.
 */
export class Listings {
  readonly #byId = new Map<string, Listing>();
  readonly #settings: Settings;
  readonly #rng: Rng;
  #seq = 0;

  /** `draw` finds goods to list; null if the catalog has none. */
  constructor(settings: Settings, draw: (rng: Rng) => Goods | null) {
    this.#settings = settings;
    this.#rng = createRng(mix(settings.seed, 22));
    for (const terms of this.#born()) {
      const goods = draw(this.#rng);
      if (goods === null) break;
      this.#add(goods, terms);
    }
  }

  /** Iterates over all live listings in the order of their ids; `own` tells whose they are. */
  [Symbol.iterator](): Iterator<Readonly<Listing>> {
    return this.#byId.values();
  }

  /** Returns one live listing, of any seller. */
  find(id: string): Readonly<Listing> | undefined {
    return this.#byId.get(id);
  }

  /** Creates a listing of the account, raising a price below the floor (partner rules 4.4). */
  create(goods: Goods, listingType: ListingType, quantity: number): Readonly<Listing> {
    const now = this.#settings.now();
    const price = Math.max(MIN_NEW, goods.price);
    return this.#add(
      { ...goods, price },
      { own: true, listingType, quantity, createdAt: now, updatedAt: now },
    );
  }

  /** Sets a listing's price, raised to the floor of edits; returns null if there is no such listing. */
  edit(id: string, price: number): Readonly<Listing> | null {
    const listing = this.#byId.get(id);
    if (listing === undefined) return null;
    listing.price = Math.max(MIN_EDITED, price);
    listing.updatedAt = this.#settings.now();
    return listing;
  }

  /** Lets time pass: in some steps one item of a listing of the account is sold. */
  step(): Readonly<Listing> | null {
    if (!this.#rng.chance(STEPS_THAT_SELL)) return null;
    const [first, ...rest] = [...this.#byId.values()].filter(({ own }) => own);
    return first === undefined ? null : this.sell(this.#rng.pick([first, ...rest]).id);
  }

  /** Sells one item of a listing; the last one removes the listing. Returns null if there is no such listing. */
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

  /** Returns the initial listings, oldest first: a tenth of the account's, and half of the other's, are pre-orders. */
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

// The partner documents `nextCursor`, the `order_id` of a creation, and that vacation mode answers only `status`
// (partner rules 2.3, 4.4). All other names, shapes and texts are the sandbox's choice.

/** Values of the path parameter of the live listings that the sandbox accepts. */
export const LISTING_TYPES: readonly ListingType[] = ['ask', 'preorder'];

const CREATION = { sku: 'text', size: 'text', price: 'whole', quantity: 'count?' } as const;

const EDIT = { order_id: 'text', price: 'whole' } as const;

/** Creates one page of live listings (partner rules 2.3). */
function listingPageBody(dialect: Dialect, type: ListingType, { rows, nextCursor }: Page<Listing>): Json {
  return { type, listings: rows.map((listing) => listingBody(dialect, listing)), nextCursor };
}

function createdBody({ id }: Listing): Json {
  return { order_id: id, status: 'created' };
}

/** The answer to a creation in vacation mode: nothing was created (partner rules 4.4). */
const VACATION: Json = { status: 'vacation mode' };

/** Creates the answer to an edit: the price as stored. */
function editedBody({ id, price }: Listing): Json {
  return { order_id: id, price };
}

function listingBody(dialect: Dialect, listing: Listing): Json {
  return {
    order_id: listing.id,
    sku: listing.sku,
    size: listing.size,
    price: listing.price,
    quantity: listing.quantity,
    created_at: new Date(listing.createdAt).toISOString(),
    updated_at: new Date(listing.updatedAt).toISOString(),
    ...extra(dialect, { condition: 'new' }),
  };
}

/** What the answers are made from. */
interface Listed {
  readonly settings: Settings;
  readonly world: World;
  readonly account: SupplierAccount;
  readonly listings: Listings;
}

const PAGE_SIZE = 500;

/** Answers GET /partner/live/listings/{type} (partner rules 4.3). */
export function answerListings({ settings, listings }: Listed, { params, query }: Call): Answer {
  const type = LISTING_TYPES.find((known) => known === params['type']);
  if (type === undefined) return invalid('invalid listing type');
  const rows = [...listings].filter((listing) => listing.own && listing.listingType === type);
  const page = pageOf(rows, { endpoint: `listings:${type}`, cursor: query.get('cursor'), size: PAGE_SIZE });
  if (page === null) return invalid('invalid cursor');
  return { status: 200, body: listingPageBody(settings.dialect, type, page) };
}

/** Answers POST /partner/list/ask and list/preorder (partner rules 4.4). Vacation mode creates no asks. */
export function answerCreate(
  { world, account, listings }: Listed,
  { text }: Call,
  listingType: ListingType,
): Answer {
  const body = readObject(text);
  const goods = typeof body === 'string' ? body : readFields(body, CREATION);
  if (typeof goods === 'string') return invalid(goods);
  const { sku, size, price, quantity = 1 } = goods;
  if (!world.knows(sku)) return invalid(`unknown sku: ${sku}`);
  if (listingType === 'ask' && account.vacation) return { status: 201, body: VACATION };
  return {
    status: 201,
    body: createdBody(listings.create({ sku, size, price }, listingType, quantity)),
  };
}

/** Answers PUT /partner/edit/listing and edit/preorder (partner rules 4.4). The other type is not found. */
export function answerEdit({ listings }: Listed, { text }: Call, listingType: ListingType): Answer {
  const body = readObject(text);
  const edit = typeof body === 'string' ? body : readFields(body, EDIT);
  if (typeof edit === 'string') return invalid(edit);
  const listing = listings.find(edit.order_id);
  if (listing === undefined || listing.listingType !== listingType) return invalid(notFound(edit.order_id));
  if (!listing.own) return invalid('uid not match');
  const edited = listings.edit(listing.id, edit.price);
  return { status: 200, body: editedBody(edited ?? listing) };
}
