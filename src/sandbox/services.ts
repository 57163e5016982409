import type { Account } from './account.ts';
import type { CatalogContext } from './catalog/handlers.ts';
import type { Orders } from './orders/orders.ts';

/** Everything that handlers work on. */
export interface Services extends CatalogContext {
  readonly account: Account;
  readonly orders: Orders;
}
