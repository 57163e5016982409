import type { Settings } from '../options.ts';
import type { Rng } from '../rng.ts';
import type { Order, OrderStatus } from './order.ts';

const DAY_MS = 86_400_000;

/** Statuses of a hundred seeded orders. */
const OF_A_HUNDRED: readonly (readonly [OrderStatus, number])[] = [
  ['settled', 43],
  ['process', 20],
  ['matched', 14],
  ['pending', 12],
  ['pre_order', 8],
  ['failed', 3],
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
  const status = statusOf(index);
  const closed = status === 'settled' || status === 'failed';
  const createdAt = now - Math.floor((closed ? 15 + rng.next() * 60 : rng.next() * 14) * DAY_MS);
  const updatedAt = createdAt + Math.floor(rng.next() * (now - createdAt));
  const preorder = status === 'pre_order' || rng.chance(0.15);
  return { own, listingType: preorder ? 'preorder' : 'ask', status, createdAt, updatedAt };
}

/** One of each status first, so that few orders show all; then the shares, exact in every hundred. */
function statusOf(index: number): OrderStatus {
  const one = OF_A_HUNDRED[index];
  if (one !== undefined) return one[0];
  let left = (index * 61) % 100;
  for (const [status, share] of OF_A_HUNDRED) {
    left -= share;
    if (left < 0) return status;
  }
  return 'settled';
}
