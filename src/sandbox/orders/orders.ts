import {
  type SupplierAccount,
  type Goods,
  isOpen,
  type ListingType,
  type Order,
  type OrderStatus,
  SHIPPING_FEE,
} from './order.ts';
import type { Settings } from '../options.ts';
import { createRng, mix, type Rng } from '../rng.ts';

/** Where a confirmation takes an order, by the states in which it is accepted (partner rule 3.4). */
const CONFIRMED: Partial<Record<OrderStatus, OrderStatus>> = { process: 'matched', pre_order: 'process' };

/** Part of the steps that move an order on. */
const STEPS_THAT_MOVE = 0.3;

/** Part of the moves out of a state that are failures. Which two states can fail is the sandbox's choice. */
const FAILURES: Partial<Record<OrderStatus, number>> = { pending: 0.05, process: 0.05 };

/** Every order there is, of the account and of another supplier. State in memory, seeded; time comes from the settings. */
export class Orders {
  readonly #orders: Order[] = [];
  readonly #byId = new Map<string, Order>();
  readonly #confirmed = new Set<Order>();
  readonly #settings: Settings;
  readonly #account: SupplierAccount;
  readonly #rng: Rng;

  /** `draw` finds goods to sell; null where the catalog has none. */
  constructor(settings: Settings, account: SupplierAccount, draw: (rng: Rng) => Goods | null) {
    this.#settings = settings;
    this.#account = account;
    this.#rng = createRng(mix(settings.seed, 21));
    for (const born of bornOrders(settings, this.#rng)) {
      const goods = draw(this.#rng);
      if (goods === null) break;
      this.#add(goods, born);
    }
  }

  /** Every order as it stands now, in the order of their ids; `own` tells whose it is. */
  [Symbol.iterator](): Iterator<Readonly<Order>> {
    this.#mature();
    return this.#orders.values();
  }

  /** One order of any seller, in its present state. */
  find(id: string): Readonly<Order> | undefined {
    this.#mature();
    return this.#byId.get(id);
  }

  /** A buyer takes something: a new order of the account in `pending`, unless told otherwise. */
  place(
    goods: Goods,
    as: { own?: boolean; listingType?: ListingType; status?: OrderStatus } = {},
  ): Readonly<Order> {
    const now = this.#settings.now();
    const born = {
      own: true,
      listingType: 'ask',
      status: 'pending',
      createdAt: now,
      updatedAt: now,
    } as const;
    return this.#add(goods, { ...born, ...as });
  }

  /** Moves an order by hand, as the service's operator can; a move that was under way is off. */
  setStatus(id: string, status: OrderStatus): void {
    const order = this.#known(id);
    order.movesAt = null;
    this.#confirmed.delete(order);
    move(order, status, this.#settings.now());
  }

  /**
   * Confirms an order (partner rules 4.4); the caller has seen to it that it exists and is the account's. Every call
   * records a fee, and deducts it where the seller ships; the move that the first of them started stays as it is.
   * Returns false, with nothing recorded, in a status that allows no confirmation.
   */
  confirm(id: string): boolean {
    const order = this.#known(id);
    if (CONFIRMED[order.status] === undefined) return false;
    const now = this.#settings.now();
    order.shippingFees += SHIPPING_FEE;
    if (this.#account.sellerShipping) order.deducted += SHIPPING_FEE;
    order.updatedAt = now;
    order.movesAt ??= now + this.#settings.confirmDelayMs;
    this.#confirmed.add(order);
    return true;
  }

  track(id: string, number: string, courier: string | null): void {
    const order = this.#known(id);
    order.tracking = { number, courier };
    order.updatedAt = this.#settings.now();
  }

  /** Time goes on: in some of the steps an order of the account moves, seldom to `failed`. */
  step(steps = 1): void {
    for (let done = 0; done < steps; done += 1) if (this.#rng.chance(STEPS_THAT_MOVE)) this.#moveOne();
  }

  #moveOne(): void {
    this.#mature();
    const movable = this.#orders.filter((order) => order.own && isOpen(order) && order.movesAt === null);
    const [first, ...rest] = movable;
    if (first === undefined) return;
    const order = this.#rng.pick([first, ...rest]);
    const fails = this.#rng.chance(FAILURES[order.status] ?? 0);
    move(order, fails ? 'failed' : nextOf(order), this.#settings.now());
  }

  #add(
    { sku, size, price }: Goods,
    born: Pick<Order, 'own' | 'listingType' | 'status' | 'createdAt' | 'updatedAt'>,
  ): Order {
    const seq = this.#orders.length + 1;
    const shipped = born.status === 'matched' || born.status === 'settled';
    const order: Order = {
      sku,
      size,
      price,
      ...born,
      id: `O-${String(seq).padStart(6, '0')}`,
      seq,
      shippingFees: shipped ? SHIPPING_FEE : 0,
      deducted: shipped && this.#account.sellerShipping ? SHIPPING_FEE : 0,
      movesAt: null,
      tracking: null,
    };
    this.#orders.push(order);
    this.#byId.set(order.id, order);
    return order;
  }

  /** An order that the caller has found before. */
  #known(id: string): Order {
    const order: Order | undefined = this.find(id);
    if (order === undefined) throw new Error(`no such order: ${id}`);
    return order;
  }

  /** Lets the moves take place whose time has come: asynchronous for a client, without a timer here. */
  #mature(): void {
    if (this.#confirmed.size === 0) return;
    const now = this.#settings.now();
    for (const order of this.#confirmed) {
      if (order.movesAt === null || order.movesAt > now) continue;
      move(order, CONFIRMED[order.status] ?? order.status, order.movesAt);
      order.movesAt = null;
      this.#confirmed.delete(order);
    }
  }
}

/** The state that follows when nothing fails (partner rules 3). */
function nextOf({ status, listingType }: Order): OrderStatus {
  switch (status) {
    case 'pending':
      return listingType === 'preorder' ? 'pre_order' : 'process';
    case 'pre_order':
      return 'process';
    case 'process':
      return 'matched';
    case 'matched':
    case 'settled':
      return 'settled';
    case 'failed':
      return 'failed';
  }
}

function move(order: Order, to: OrderStatus, at: number): void {
  order.status = to;
  order.updatedAt = at;
}

const DAY_MS = 86_400_000;

/** What a hundred seeded orders are. Each status is among the first six, so that six orders show all. */
const OF_A_HUNDRED: readonly (readonly [OrderStatus, ListingType, number])[] = [
  ['settled', 'ask', 36],
  ['process', 'ask', 17],
  ['matched', 'ask', 12],
  ['pending', 'preorder', 3],
  ['pre_order', 'preorder', 8],
  ['failed', 'ask', 3],
  ['pending', 'ask', 9],
  ['settled', 'preorder', 7],
  ['process', 'preorder', 3],
  ['matched', 'preorder', 2],
];

type Born = Pick<Order, 'own' | 'listingType' | 'status' | 'createdAt' | 'updatedAt'>;

/** What the orders are at start, oldest first, the other supplier's among them. Deterministic in seed and start time. */
export function bornOrders(settings: Settings, rng: Rng): Born[] {
  const now = settings.now();
  const own = Array.from({ length: settings.orders }, (_, index) => born(index, true, now, rng));
  const foreign = Array.from({ length: settings.foreignOrders }, (_, index) => born(index, false, now, rng));
  return [...own, ...foreign].toSorted((left, right) => left.createdAt - right.createdAt);
}

function born(index: number, own: boolean, now: number, rng: Rng): Born {
  const { status, listingType } = kindOf(index);
  const closed = status === 'settled' || status === 'failed';
  const createdAt = now - Math.floor((closed ? 15 + rng.next() * 60 : rng.next() * 14) * DAY_MS);
  const updatedAt = createdAt + Math.floor(rng.next() * (now - createdAt));
  return { own, listingType, status, createdAt, updatedAt };
}

/** One of each kind first; then the shares, exact in every hundred. */
function kindOf(index: number): Pick<Born, 'status' | 'listingType'> {
  let left = (index * 61) % 100;
  for (const [at, [status, listingType, share]] of OF_A_HUNDRED.entries()) {
    left -= share;
    if (index < OF_A_HUNDRED.length ? index === at : left < 0) return { status, listingType };
  }
  return { status: 'settled', listingType: 'ask' };
}
