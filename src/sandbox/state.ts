import { Ambiguities } from './ambiguities.ts';
import { Faults } from './faults.ts';
import { Presigner, Signatures } from './files.ts';
import { Gate, LiveLimiter } from './gate.ts';
import { Intake } from './intake.ts';
import { Labels } from './labels.ts';
import { Listings } from './listings.ts';
import type { Settings } from './options.ts';
import { SupplierAccount } from './orders/order.ts';
import { Orders } from './orders/orders.ts';
import { RequestLog } from './requests.ts';
import { createRng, mix, type Rng } from './rng.ts';
import { World } from './world.ts';

/** The whole state of a sandbox except its server and its clock. A reset creates it again. */
export interface State {
  readonly settings: Settings;
  readonly world: World;
  readonly account: SupplierAccount;
  readonly orders: Orders;
  readonly listings: Listings;
  readonly intake: Intake;
  readonly faults: Faults;
  /** How it answers if it was started with `ambiguous`; else null. */
  readonly ambiguities: Ambiguities | null;
  readonly gate: Gate;
  readonly ceiling: LiveLimiter;
  readonly presigner: Presigner;
  readonly labels: Labels;
  readonly log: RequestLog;
  readonly rng: Rng;
}

/** Creates the initial state of a sandbox: the same for the same settings and the same moment. */
export function createState(settings: Settings): State {
  const world = new World(settings);
  const account = new SupplierAccount(settings.vacation, settings.sellerShipping);
  const signatures = new Signatures(`${settings.seed}/${settings.apiKey}/${settings.secret}`);
  return {
    settings,
    world,
    account,
    orders: new Orders(settings, account, (rng) => world.draw(rng)),
    listings: new Listings(settings, (rng) => world.draw(rng)),
    intake: new Intake(),
    faults: new Faults(),
    ambiguities: settings.ambiguous ? new Ambiguities(createRng(mix(settings.seed, 32))) : null,
    gate: new Gate(settings),
    ceiling: new LiveLimiter(settings.liveCeilingPerMinute),
    presigner: new Presigner(signatures),
    labels: new Labels(signatures),
    log: new RequestLog(),
    rng: createRng(mix(settings.seed, 31)),
  };
}

/** Does what happens at every market interval: the market moves, a listing may sell, an order may move on. */
export function stepState({ world, ambiguities, listings, orders, rng }: State): void {
  world.step();
  if (ambiguities !== null) emptySize(world, rng);
  const sold = listings.step();
  if (sold !== null) orders.place(sold, { listingType: sold.listingType });
  orders.step();
}

/** Leaves a size its entry without an ask, which the market itself rarely does. */
function emptySize(world: World, rng: Rng): void {
  const drawn = world.draw(rng);
  if (drawn !== null) world.setPrice(drawn.sku, drawn.size, null);
}
