/** The supplier account's levers. They hold from the next request on. */
export class Account {
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
