import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Ambiguities } from './ambiguities.ts';
import { SupplierAccount } from './orders/order.ts';
import { Exchanges } from './exchange.ts';
import { Faults, type Route } from './faults.ts';
import { Presigner } from './files.ts';
import { Gate, LiveLimiter } from './gate.ts';
import { Intake } from './intake.ts';
import { Labels } from './labels.ts';
import { Listings } from './listings/listings.ts';
import { resolveOptions, type SandboxOptions, type Settings } from './options.ts';
import { Orders } from './orders/orders.ts';
import { createRng, mix, type Rng } from './rng.ts';
import { RequestLog, type RequestRecord } from './requests.ts';
import type { Services } from './routing.ts';
import { World } from './world.ts';

/** A running sandbox: its address and credential, the levers on its world, and what it has seen. */
export interface Sandbox extends AsyncDisposable {
  /** `{base_url}`, without a trailing slash. */
  readonly url: string;
  readonly apiKey: string;
  readonly secret: string;
  readonly options: Readonly<Settings>;
  readonly world: World;
  readonly account: SupplierAccount;
  readonly orders: Orders;
  readonly listings: Listings;
  readonly intake: Intake;
  readonly faults: Faults;
  /** How it answers where it was started with `ambiguous`; else null. */
  readonly ambiguities: Ambiguities | null;
  /** The last 20,000 requests, oldest first. */
  readonly requests: readonly RequestRecord[];
  /** The most API requests that any rolling window held so far, refused ones included. */
  maxRequestsInWindow(): number;
  /** Requests so far; of one route, or of all (`*`). */
  counts(route?: Route | '*'): number;
  /** Replaces the secret; the old one authenticates for `overlapMs` more (partner rule 5.4). */
  rotateSecret(next: string, overlapMs?: number): void;
  configureAccount(configured: boolean): void;
  /** What happens at every `marketIntervalMs`: the market moves, a listing may sell, an order may move on. */
  step(): void;
  /** Stops timers and server, and destroys every open connection. */
  close(): Promise<void>;
}

/** Starts a sandbox. Rejects with the server's error where the address cannot be listened on. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = new SandboxServer(resolveOptions(options));
  await sandbox.listen();
  return sandbox;
}

class SandboxServer implements Sandbox {
  readonly world: World;
  readonly account: SupplierAccount;
  readonly orders: Orders;
  readonly listings: Listings;
  readonly intake = new Intake();
  readonly faults = new Faults();
  readonly ambiguities: Ambiguities | null;
  readonly options: Settings;
  url = '';
  readonly #log = new RequestLog();
  readonly #gate: Gate;
  readonly #ceiling: LiveLimiter;
  readonly #presigner = new Presigner();
  readonly #labels = new Labels();
  readonly #rng: Rng;
  readonly #server: Server;
  readonly #closing = new AbortController();
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(settings: Settings) {
    this.options = settings;
    this.world = new World(settings);
    this.account = new SupplierAccount(settings.vacation, settings.sellerShipping);
    this.orders = new Orders(settings, this.account, (rng) => this.world.draw(rng));
    this.listings = new Listings(settings, (rng) => this.world.draw(rng));
    this.#rng = createRng(mix(settings.seed, 31));
    this.ambiguities = settings.ambiguous ? new Ambiguities(createRng(mix(settings.seed, 32))) : null;
    this.#gate = new Gate(settings);
    this.#ceiling = new LiveLimiter(settings.liveCeilingPerMinute);
    const exchanges = new Exchanges(() => this.#services(), {
      gate: this.#gate,
      faults: this.faults,
      log: this.#log,
      closing: this.#closing.signal,
    });
    this.#server = createServer((request, response) => void exchanges.serve(request, response));
    this.#server.keepAliveTimeout = 60_000;
  }

  get apiKey(): string {
    return this.options.apiKey;
  }

  get secret(): string {
    return this.#gate.authorizer.secret;
  }

  get requests(): readonly RequestRecord[] {
    return this.#log.records;
  }

  maxRequestsInWindow(): number {
    return this.#gate.peak;
  }

  counts(route: Route | '*' = '*'): number {
    return this.#log.count(route);
  }

  rotateSecret(next: string, overlapMs = 0): void {
    this.#gate.authorizer.rotate(next, overlapMs, this.options.now());
  }

  configureAccount(configured: boolean): void {
    this.#gate.authorizer.configured = configured;
  }

  step(): void {
    this.world.step();
    if (this.ambiguities !== null) this.#emptySize();
    const sold = this.listings.step();
    if (sold !== null) this.orders.place(sold, { listingType: sold.listingType });
    this.orders.step();
  }

  async listen(): Promise<void> {
    const { host, port, marketIntervalMs, snapshotIntervalMs } = this.options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    const address = this.#server.address() as AddressInfo;
    this.url = `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
    this.#every(marketIntervalMs, () => this.step());
    this.#every(snapshotIntervalMs, () => {
      if (this.world.builderRuns()) this.world.buildSnapshot();
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const timer of this.#timers) clearInterval(timer);
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** A size keeps its entry without an ask, as the market leaves it only now and then. */
  #emptySize(): void {
    const drawn = this.world.draw(this.#rng);
    if (drawn !== null) this.world.setPrice(drawn.sku, drawn.size, null);
  }

  #every(intervalMs: number, act: () => void): void {
    if (intervalMs > 0) this.#timers.push(setInterval(act, intervalMs).unref());
  }

  #services(): Services {
    return {
      settings: this.options,
      world: this.world,
      ceiling: this.#ceiling,
      presigner: this.#presigner,
      ambiguities: this.ambiguities,
      base: this.url,
      account: this.account,
      orders: this.orders,
      listings: this.listings,
      intake: this.intake,
      labels: this.#labels,
      secret: this.secret,
    };
  }
}
