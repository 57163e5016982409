import type { Settings } from '../options.ts';
import type { Rng } from '../rng.ts';
import type { ListingType, Order, OrderStatus } from './order.ts';

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
