import type { Keyset } from '../answer.ts';
import type { Settings } from '../options.ts';
import type { Rng } from '../rng.ts';

/** The states of an order (partner rules 3). */
export type OrderStatus = 'pending' | 'pre_order' | 'process' | 'matched' | 'settled' | 'failed';

/** What an order was sold from. The sandbox's choice of names: the partner does not document them. */
export type ListingType = 'ask' | 'preorder';

/** Part of the price that the marketplace keeps. The sandbox's choice: the partner does not document it. */
const COMMISSION = 0.1;

/** The fee of one shipping leg, whole baht. The sandbox's choice: the partner does not document it. */
export const SHIPPING_FEE = 60;

/** What changes hands: one size of a SKU at a price in whole baht. */
export interface Goods {
  readonly sku: string;
  readonly size: string;
  readonly price: number;
}

/** One order. Times are epoch milliseconds, amounts whole baht. */
export interface Order extends Keyset, Goods {
  readonly id: string;
  /** Whether it belongs to the sandbox's account, and not to another supplier. */
  readonly own: boolean;
  readonly listingType: ListingType;
  status: OrderStatus;
  updatedAt: number;
  /** Every shipping-leg fee recorded so far: one a confirmation. */
  shippingFees: number;
  /** The part of them that was deducted from the payout. */
  deducted: number;
  /** It was confirmed, so it goes on by itself. */
  confirmed: boolean;
  /** When it fails unless it is confirmed before (epoch milliseconds); null = never. */
  confirmBy: number | null;
  /** The step of the orders from which on it may move by itself. */
  restsUntil: number;
  /** When the move that a confirmation started takes place; null = none is under way. */
  movesAt: number | null;
  tracking: { readonly number: string; readonly courier: string | null } | null;
}

export function commissionOf({ price }: Goods): number {
  return Math.round(price * COMMISSION);
}

/** What the seller gets, after fees. May be below zero where fees were recorded again and again. */
export function expectedPayout(order: Order): number {
  return order.price - commissionOf(order) - order.deducted;
}

/** Whether the order is on the processing list: it is neither settled nor failed (the sandbox's choice). */
export function isOpen({ status }: Order): boolean {
  return status !== 'settled' && status !== 'failed';
}

/** The supplier account's levers. They hold from the next request on. */
export class SupplierAccount {
  /** No ask listing is created (partner rule 7.4.4). */
  vacation: boolean;
  /** The shipping-leg fee of a confirmation is deducted from the payout (partner rules 4.4). */
  sellerShipping: boolean;

  constructor(vacation: boolean, sellerShipping: boolean) {
    this.vacation = vacation;
    this.sellerShipping = sellerShipping;
  }

  setVacation(on: boolean): void {
    this.vacation = on;
  }

  setSellerShipping(on: boolean): void {
    this.sellerShipping = on;
  }
}

/** Whether only a confirmation takes an order on from here (partner rule 3.4). */
export function awaitsConfirmation({ status, confirmed }: Pick<Order, 'status' | 'confirmed'>): boolean {
  return !confirmed && (status === 'process' || status === 'pre_order');
}

/** The message about an order or listing that does not exist. */
export function notFound(id: string): string {
  return `not Found order ID: ${id}`;
}

/** The message about another seller's order on label and tracking (partner rule 7.4.2). */
export function unauthorized(id: string): string {
  return `Unauthorized: order ${id} does not belong to this supplier`;
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

/**
 * What the orders are at start, oldest first, the other supplier's among them. Deterministic in seed and start time.
 */
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
