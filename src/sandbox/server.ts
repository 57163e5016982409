import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Ambiguities } from './ambiguities.ts';
import { SandboxClock } from './clock.ts';
import { baseOf, urlOf } from './control/guard.ts';
import { ControlRoutes } from './control/routes.ts';
import { Exchanges } from './exchange.ts';
import type { Faults, Route } from './faults.ts';
import type { Intake } from './intake.ts';
import type { Listings } from './listings.ts';
import { resolveOptions, type SandboxOptions, type Settings } from './options.ts';
import type { SupplierAccount } from './orders/order.ts';
import type { Orders } from './orders/orders.ts';
import type { RequestRecord } from './requests.ts';
import type { Services } from './routing.ts';
import { createState, type State, stepState } from './state.ts';
import type { World } from './world.ts';

/** The parts of a sandbox that can be changed by hand. */
type Levers = Pick<State, 'world' | 'account' | 'orders' | 'listings' | 'intake' | 'faults' | 'ambiguities'>;

/** A running sandbox: its address and credential, access to its world, and what it has seen. */
export interface Sandbox extends AsyncDisposable, Levers {
  /** `{base_url}`, without a trailing slash. */
  readonly url: string;
  /** Where the server listens. */
  readonly address: { readonly host: string; readonly port: number };
  readonly apiKey: string;
  readonly secret: string;
  readonly options: Readonly<Settings>;
  /** The last 20,000 requests, oldest first. */
  readonly requests: readonly RequestRecord[];
  /** The most API requests in any rolling window so far, refused ones included. */
  maxRequestsInWindow(): number;
  /** Number of requests so far, of one route or of all (`*`). */
  counts(route?: Route | '*'): number;
  /** Replaces the secret; the old one stays valid for `overlapMs` more (partner rule 5.4). */
  rotateSecret(next: string, overlapMs?: number): void;
  configureAccount(configured: boolean): void;
  /** Returns to the initial state, with the same seed or another. */
  reset(seed?: number): void;
  /** Does what happens at every `marketIntervalMs`: the market moves, a listing may sell, an order may move on. */
  step(): void;
  /** Stops timers and server, and destroys every open connection. */
  close(): Promise<void>;
}

/** Starts a sandbox. Rejects with SandboxOptionsError, or the server's error if it cannot listen on the address. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = new SandboxServer(resolveOptions(options));
  await sandbox.listen();
  return sandbox;
}

class SandboxServer implements Sandbox {
  url = '';
  address = { host: '', port: 0 };
  readonly clock: SandboxClock;
  readonly #atStart: Settings;
  readonly #server: Server;
  readonly #closing = new AbortController();
  #state: State;

  constructor(settings: Settings) {
    this.clock = new SandboxClock(settings.now, settings.startAt);
    this.#atStart = { ...settings, now: this.clock.now };
    this.#state = createState({ ...this.#atStart });
    const exchanges = new Exchanges((host) => this.#services(host), this.#closing.signal);
    const control = new ControlRoutes(this);
    this.#server = createServer((request, response) => {
      void (control.serves(request) ? control.serve(request, response) : exchanges.serve(request, response));
    });
    this.#server.keepAliveTimeout = 60_000;
  }

  get state(): State {
    return this.#state;
  }

  get options(): Settings {
    return this.#state.settings;
  }

  get world(): World {
    return this.#state.world;
  }

  get account(): SupplierAccount {
    return this.#state.account;
  }

  get orders(): Orders {
    return this.#state.orders;
  }

  get listings(): Listings {
    return this.#state.listings;
  }

  get intake(): Intake {
    return this.#state.intake;
  }

  get faults(): Faults {
    return this.#state.faults;
  }

  get ambiguities(): Ambiguities | null {
    return this.#state.ambiguities;
  }

  get apiKey(): string {
    return this.options.apiKey;
  }

  get secret(): string {
    return this.#state.gate.authorizer.secret;
  }

  get requests(): readonly RequestRecord[] {
    return this.#state.log.records;
  }

  maxRequestsInWindow(): number {
    return this.#state.gate.peak;
  }

  counts(route: Route | '*' = '*'): number {
    return this.#state.log.count(route);
  }

  rotateSecret(next: string, overlapMs = 0): void {
    this.#state.gate.authorizer.rotate(next, overlapMs, this.options.now());
  }

  configureAccount(configured: boolean): void {
    this.#state.gate.authorizer.configured = configured;
  }

  reset(seed: number = this.#atStart.seed): void {
    this.clock.reset();
    this.#state = createState({ ...this.#atStart, seed });
  }

  step(): void {
    stepState(this.#state);
  }

  async listen(): Promise<void> {
    const { host, port, publicUrl, marketIntervalMs, snapshotIntervalMs } = this.options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    this.address = { host, port: (this.#server.address() as AddressInfo).port };
    this.url = publicUrl ?? urlOf(host, this.address.port);
    this.clock.every(marketIntervalMs, () => this.step());
    this.clock.every(snapshotIntervalMs, () => {
      if (this.world.builderRuns()) this.world.buildSnapshot();
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.clock.stop();
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #services(host: string | undefined): Services {
    const base = this.options.publicUrl ?? baseOf(host) ?? this.url;
    return { ...this.#state, base, secret: this.secret };
  }
}
