import type { Account } from './account.ts';
import type { CatalogContext } from './catalog/handlers.ts';
import type { Intake } from './intake/intake.ts';
import type { Labels } from './labels/labels.ts';
import type { Listings } from './listings/listings.ts';
import type { Orders } from './orders/orders.ts';

export interface Services extends CatalogContext {
  readonly account: Account;
  readonly orders: Orders;
  readonly listings: Listings;
  readonly intake: Intake;
  readonly labels: Labels;
  /** The present secret, for the page that shows how to ask. */
  readonly secret: string;
}
