import type { Keyset } from '../answer.ts';
import type { Settings } from '../options.ts';
import type { Rng } from '../rng.ts';

/** The states of an order (partner rules 3). */
export type OrderStatus = 'pending' | 'pre_order' | 'process' | 'matched' | 'settled' | 'failed';

/** The kind of listing that an order was sold from. The names are the sandbox's choice; the partner documents none. */
export type ListingType = 'ask' | 'preorder';

/** Share of the price that the marketplace keeps. The sandbox's choice; the partner does not document it. */
const COMMISSION = 0.1;

/** The fee of one shipping leg, whole baht. The sandbox's choice; the partner does not document it. */
export const SHIPPING_FEE = 60;

/** What is sold: one size of a SKU at a price in whole baht. */
export interface Goods {
  readonly sku: string;
  readonly size: string;
  readonly price: number;
}

/** One order. Times are epoch milliseconds, amounts whole baht. */
export interface Order extends Keyset, Goods {
  readonly id: string;
  /** Whether it belongs to the sandbox's account rather than to another supplier. */
  readonly own: boolean;
  readonly listingType: ListingType;
  status: OrderStatus;
  updatedAt: number;
  /** All shipping-leg fees recorded so far, one per confirmation. */
  shippingFees: number;
  /** The part of them that was deducted from the payout. */
  deducted: number;
  /** It was confirmed, so it moves on by itself. */
  confirmed: boolean;
  /** When it fails if it is not confirmed before (epoch milliseconds); null for never. */
  confirmBy: number | null;
  /** The step from which on the order may move by itself. */
  restsUntil: number;
  /** When the move that a confirmation started takes place; null if none is under way. */
  movesAt: number | null;
  tracking: { readonly number: string; readonly courier: string | null } | null;
}

export function commissionOf({ price }: Goods): number {
  return Math.round(price * COMMISSION);
}

/** Returns what the seller gets after fees. May be below zero after repeated fees. */
export function expectedPayout(order: Order): number {
  return order.price - commissionOf(order) - order.deducted;
}

/** Returns whether the order is on the processing list: neither settled nor failed (the sandbox's choice). */
export function isOpen({ status }: Order): boolean {
  return status !== 'settled' && status !== 'failed';
}

/** Settings of the supplier account. They apply from the next request on. */
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

/** Returns whether only a confirmation moves an order on from here (partner rule 3.4). */
export function awaitsConfirmation({ status, confirmed }: Pick<Order, 'status' | 'confirmed'>): boolean {
  return !confirmed && (status === 'process' || status === 'pre_order');
}

/** Returns the message about an order or listing that does not exist. */
export function notFound(id: string): string {
  return `not Found order ID: ${id}`;
}

/** Returns the message about another supplier's order on label and tracking (partner rule 7.4.2). */
export function unauthorized(id: string): string {
  return `Unauthorized: order ${id} does not belong to this supplier`;
}

const DAY_MS = 86_400_000;

/** How a hundred seeded orders are distributed. The first six contain every status, so six orders show all. */
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

/** Returns the initial orders, oldest first, including the other supplier's. Deterministic in seed and start time. */
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

/** Returns one of each kind first, then the exact shares of every hundred. */
function kindOf(index: number): Pick<Born, 'status' | 'listingType'> {
  let left = (index * 61) % 100;
  for (const [at, [status, listingType, share]] of OF_A_HUNDRED.entries()) {
    left -= share;
    if (index < OF_A_HUNDRED.length ? index === at : left < 0) return { status, listingType };
  }
  return { status: 'settled', listingType: 'ask' };
}
