import type { Settings } from '../options.ts';
import { createRng, mix, type Rng } from '../rng.ts';
import {
  awaitsConfirmation,
  bornOrders,
  type Goods,
  isOpen,
  type ListingType,
  type Order,
  type OrderStatus,
  SHIPPING_FEE,
  type SupplierAccount,
} from './order.ts';

/** Where a confirmation takes an order, by the states in which it is accepted (partner rule 3.4). */
const CONFIRMED: Partial<Record<OrderStatus, OrderStatus>> = { process: 'matched', pre_order: 'process' };

/** Part of the steps that move an order on. */
const STEPS_THAT_MOVE = 0.3;

/** Part of the moves out of a state that are failures. Which two states can fail is the sandbox's choice. */
const FAILURES: Partial<Record<OrderStatus, number>> = { pending: 0.05, process: 0.05 };

/** Steps for which an order keeps a state at least, so that whoever polls once a step sees each. */
const MIN_STEPS = 3;

/**
 * Every order there is, of the account and of another supplier. State in memory, seeded; time comes from the settings.
 */
export class Orders {
  readonly #orders: Order[] = [];
  readonly #byId = new Map<string, Order>();
  readonly #confirmed = new Set<Order>();
  /** Those that fail unless they are confirmed in time. */
  readonly #waiting = new Set<Order>();
  /** When the first of them does. */
  #nextDeadline = Infinity;
  #steps = 0;
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

  /**
   * Moves an order by hand, as the service's operator can; a move that was under way is off, and so is a confirmation.
   */
  setStatus(id: string, status: OrderStatus): void {
    const order = this.#known(id);
    order.movesAt = null;
    order.confirmed = false;
    this.#confirmed.delete(order);
    this.#move(order, status, this.#settings.now());
  }

  /** Gives an order that waits for its confirmation so much time from now; false where it does not wait. */
  setDeadline(id: string, withinMs: number): boolean {
    const order = this.#known(id);
    if (!awaitsConfirmation(order)) return false;
    this.#await(order, this.#settings.now() + withinMs);
    return true;
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
    this.#charge(order);
    order.updatedAt = now;
    order.movesAt ??= now + this.#settings.confirmDelayMs;
    this.#confirmed.add(order);
    this.#await(order, null);
    return true;
  }

  track(id: string, number: string, courier: string | null): void {
    const order = this.#known(id);
    order.tracking = { number, courier };
    order.updatedAt = this.#settings.now();
  }

  /** Time goes on: in some of the steps an order of the account moves, seldom to `failed`. */
  step(steps = 1): void {
    for (let done = 0; done < steps; done += 1) {
      this.#steps += 1;
      if (this.#rng.chance(STEPS_THAT_MOVE)) this.#moveOne();
    }
  }

  #moveOne(): void {
    this.#mature();
    const [first, ...rest] = this.#orders.filter((order) => this.#movesByItself(order));
    if (first === undefined) return;
    const order = this.#rng.pick([first, ...rest]);
    const fails = this.#rng.chance(order.confirmed ? 0 : (FAILURES[order.status] ?? 0));
    if (!fails && awaitsConfirmation(order)) this.#charge(order);
    this.#move(order, fails ? 'failed' : nextOf(order), this.#settings.now());
  }

  /** Without a confirmation an order waits, unless the settings say that none is needed. */
  #movesByItself(order: Order): boolean {
    if (!order.own || !isOpen(order) || order.movesAt !== null || order.restsUntil > this.#steps)
      return false;
    return this.#settings.autoConfirm || !awaitsConfirmation(order);
  }

  #charge(order: Order): void {
    order.confirmed = true;
    order.shippingFees += SHIPPING_FEE;
    if (this.#account.sellerShipping) order.deducted += SHIPPING_FEE;
  }

  #move(order: Order, to: OrderStatus, at: number): void {
    order.status = to;
    order.updatedAt = at;
    order.restsUntil = this.#steps + MIN_STEPS;
    const { confirmDeadlineMs, autoConfirm } = this.#settings;
    const waits = order.own && !autoConfirm && awaitsConfirmation(order);
    this.#await(order, waits && confirmDeadlineMs !== null ? at + confirmDeadlineMs : null);
  }

  /** Has an order fail at that moment unless it is confirmed before; null = not for that. */
  #await(order: Order, confirmBy: number | null): void {
    order.confirmBy = confirmBy;
    if (confirmBy === null) {
      this.#waiting.delete(order);
      return;
    }
    this.#waiting.add(order);
    this.#nextDeadline = Math.min(this.#nextDeadline, confirmBy);
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
      confirmed: shipped,
      confirmBy: null,
      restsUntil: this.#steps,
      movesAt: null,
      tracking: null,
    };
    this.#orders.push(order);
    this.#byId.set(order.id, order);
    // Of those at start too, the time to confirm begins now.
    const { updatedAt } = order;
    this.#move(order, order.status, this.#settings.now());
    order.updatedAt = updatedAt;
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
    const now = this.#settings.now();
    for (const order of this.#confirmed) {
      if (order.movesAt === null || order.movesAt > now) continue;
      const at = order.movesAt;
      order.movesAt = null;
      this.#confirmed.delete(order);
      this.#move(order, CONFIRMED[order.status] ?? order.status, at);
    }
    if (this.#nextDeadline <= now && !this.#settings.autoConfirm) this.#failUnconfirmed(now);
  }

  #failUnconfirmed(now: number): void {
    this.#nextDeadline = Infinity;
    for (const order of this.#waiting) {
      if (order.confirmBy === null || order.confirmBy <= now) {
        this.#move(order, 'failed', order.confirmBy ?? now);
        continue;
      }
      this.#nextDeadline = Math.min(this.#nextDeadline, order.confirmBy);
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
