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

/** The state to which a confirmation leads, by the states that accept one (partner rule 3.4). */
const CONFIRMED: Partial<Record<OrderStatus, OrderStatus>> = { process: 'matched', pre_order: 'process' };

/** Share of steps that move an order on. */
const STEPS_THAT_MOVE = 0.3;

/** Share of moves out of a state that are failures. Which two states can fail is the sandbox's choice. */
const FAILURES: Partial<Record<OrderStatus, number>> = { pending: 0.05, process: 0.05 };

/** Minimum of steps in a state, so that a client that polls once a step sees each. */
const MIN_STEPS = 3;

/** All orders, of the account and of another supplier. In memory and seeded; time comes from the settings. */
export class Orders {
  readonly #orders: Order[] = [];
  readonly #byId = new Map<string, Order>();
  readonly #confirmed = new Set<Order>();
  /** Orders that fail if they are not confirmed in time. */
  readonly #waiting = new Set<Order>();
  /** When the first of them fails. */
  #nextDeadline = Infinity;
  #steps = 0;
  readonly #settings: Settings;
  readonly #account: SupplierAccount;
  readonly #rng: Rng;

  /** `draw` finds goods to sell; null if the catalog has none. */
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

  /** Iterates over all orders in their present state, in the order of their ids; `own` tells whose they are. */
  [Symbol.iterator](): Iterator<Readonly<Order>> {
    this.#mature();
    return this.#orders.values();
  }

  /** Returns one order of any seller, in its present state. */
  find(id: string): Readonly<Order> | undefined {
    this.#mature();
    return this.#byId.get(id);
  }

  /** Places a buyer's order: a new order of the account in `pending`, unless told otherwise. */
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

  /** Moves an order by hand, as the service's operator can. Cancels a move that was under way, and a confirmation. */
  setStatus(id: string, status: OrderStatus): void {
    const order = this.#known(id);
    order.movesAt = null;
    order.confirmed = false;
    this.#confirmed.delete(order);
    this.#move(order, status, this.#settings.now());
  }

  /** Sets the time for the confirmation of an order that waits for it; returns false if it does not wait. */
  setDeadline(id: string, withinMs: number): boolean {
    const order = this.#known(id);
    if (!awaitsConfirmation(order)) return false;
    this.#await(order, this.#settings.now() + withinMs);
    return true;
  }

  /**
   * Confirms an order (partner rules 4.4), which the caller has checked to exist and to be the account's. Every
   * call records a fee, and deducts it if the seller ships; the move that the first call started stays as it is.
   * Returns false, and records nothing, in a status that allows no confirmation.
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

  /** Lets time pass: in some steps an order of the account moves, rarely to `failed`. */
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

  /** Returns whether the order moves by itself; without a confirmation only if the settings need none. */
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

  /** Makes an order fail at that moment if it is not confirmed before; null cancels that. */
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
    // For the initial orders too, the time to confirm begins now.
    const { updatedAt } = order;
    this.#move(order, order.status, this.#settings.now());
    order.updatedAt = updatedAt;
    return order;
  }

  /** Returns an order that the caller has found before. */
  #known(id: string): Order {
    const order: Order | undefined = this.find(id);
    if (order === undefined) throw new Error(`no such order: ${id}`);
    return order;
  }

  /** Applies the moves whose time has come, which makes them asynchronous for a client without a timer here. */
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

/** Returns the next state if nothing fails (partner rules 3). */
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
