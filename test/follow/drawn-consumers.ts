import { followOn } from '../../src/cli/follow/following.ts';
import type { Follow } from '../../src/cli/follow/wanted.ts';
import { type Batch as Read, follow, followInto, FollowError } from '../../src/client/follow.ts';
import { openSource } from '../../src/client/source.ts';
import type { Batch } from '../../src/follow/batch.ts';
import type { Result } from '../../src/follow/delivery.ts';
import { parseFilters } from '../../src/follow/filter.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { carried } from '../../src/store/connection/sql-errors.ts';
import { FollowerError } from '../../src/store/history/followers.ts';
import { pause } from '../support/eventually.ts';
import type { Proxy } from '../support/proxy.ts';
import type { Servers } from './drawn-servers.ts';
import { OK } from './session.ts';

/* Programs that follow the mirror, each in its own way, and crash at any point. */

/** Before any work on a batch, after it, or after its position is stored. */
export type Crash = 'before' | 'between' | 'after';

class Crashed extends Error {}

/**
 * Error codes with which a program's first read may fail while servers are away, behind or replaced. It is
 * restarted.
 */
const BEGINNINGS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'CONNECTION_CLOSED',
  'CONNECT_TIMEOUT',
  'ANSWER_TIMEOUT',
  '3D000',
  '40001',
  '42P01',
  '55P03',
  '57P01',
  '57P02',
  '57P03',
]);

/** Time limit of an answer, and time until the next poll if a dead connection has not been noticed. */
const WITHIN_MS = 1500;
const POLL_MS = 2000;

export abstract class Drawn {
  protected readonly servers: Servers;
  readonly proxy: Proxy;
  protected readonly url: string;
  protected readonly stop = new AbortController();
  crash: Crash | null = null;
  /** How often it was told that its position is lost. */
  told = 0;
  /** Its copy of the prices. */
  protected readonly copy = new Map<string, number>();
  readonly #seen = new Set<number>();
  protected readonly newest = new Map<string, number>();
  #running: Promise<void> = Promise.resolve();

  constructor(servers: Servers, { proxy, url }: { readonly proxy: Proxy; readonly url: string }) {
    [this.servers, this.proxy, this.url] = [servers, proxy, url];
  }

  /** Runs its process from a start to an end or a crash. */
  protected abstract once(): Promise<void>;
  /** Returns what is missing in its copy, or null if nothing is. */
  abstract missing(): Promise<string | null>;

  /** Runs the process again and again. Rejects with an error that must not end it. */
  begin(): Promise<void> {
    this.#running = this.#run();
    return this.#running;
  }

  async end(): Promise<void> {
    this.stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.stop.signal.aborted)
      await this.once().catch((error: unknown) => {
        if (error instanceof Crashed) return;
        if (error instanceof FollowerError && error.kind === 'held') return;
        if (isLost(error)) return this.lost();
        const code = carried(error, 'code') ?? '';
        if (!BEGINNINGS.has(code) && !(error instanceof FollowError && error.kind === 'invalid')) throw error;
        return pause(50);
      });
  }

  /** Empties its copy and starts again. */
  protected lost(): void {
    this.told += 1;
    this.newest.clear();
  }

  /** Crashes if it is to crash at this point. */
  protected crashes(...when: readonly Crash[]): void {
    if (this.crash === null || !when.includes(this.crash)) return;
    this.crash = null;
    throw new Crashed();
  }

  /** Checks that a change that comes for the first time is newer than everything that has come for its SKU. */
  protected inOrder(sku: string, price: number): void {
    const newest = this.newest.get(sku) ?? 0;
    if (!this.#seen.has(price) && price < newest)
      throw new Error(`${price} of ${sku} came for the first time after ${newest}`);
    this.#seen.add(price);
    this.newest.set(sku, Math.max(price, newest));
  }

  protected async missingInCopy(): Promise<string | null> {
    const rows = await this.servers.sql<
      { sku: string; price: number }[]
    >`select sku, price from catalog.prices`;
    const missing = rows.filter(({ sku, price }) => this.copy.get(sku) !== price);
    return missing.length === 0
      ? null
      : missing.map(({ sku, price }) => `${sku} ${this.copy.get(sku)} is ${price}`).join();
  }
}

const isLost = (error: unknown): boolean =>
  (error instanceof FollowError && error.kind === 'position-lost') ||
  (error instanceof FollowerError && (error.kind === 'position-lost' || error.kind === 'unknown'));

/** The package's `follow`, with the position stored beside the copy. */
export class Follows extends Drawn {
  #position = 'start';

  protected override async once(): Promise<void> {
    const { sql, close } = openSource({ url: this.url }, WITHIN_MS);
    if (this.#position === 'start') this.copy.clear();
    const options = { sql, position: this.#position, batch: 20, pollMs: POLL_MS, signal: this.stop.signal };
    try {
      for await (const batch of follow(options)) this.#take(batch);
    } finally {
      await close();
    }
  }

  #take({ changes, position, isCopy }: Read): void {
    this.crashes('before');
    for (const { kind, sku, new_price: price } of changes) {
      if (kind !== 'price' || price === null) continue;
      if (!isCopy) this.inOrder(sku, price);
      this.copy.set(sku, price);
    }
    this.crashes('between');
    this.#position = position;
    this.crashes('after');
  }

  protected override lost(): void {
    super.lost();
    this.#position = 'start';
  }

  override missing = () => this.missingInCopy();
}

/** `followInto`, with its copy in the mirror's own database. Two of them take turns. */
export class Into extends Drawn {
  /** It was told in a transaction that may not have been committed: then it is told again. */
  #isTold = false;

  protected override async once(): Promise<void> {
    const { sql, close } = openSource({ url: this.url }, WITHIN_MS);
    try {
      await followInto({
        sql,
        table: 'shop.position',
        batch: 20,
        pollMs: POLL_MS,
        signal: this.stop.signal,
        apply: async (tx, { changes, isCopy }) => {
          if (this.#isTold) this.told += 1;
          this.#isTold = false;
          this.crashes('before');
          for (const { kind, sku, position, new_price: price } of changes) {
            if (kind !== 'price') continue;
            if (!isCopy) await tx`insert into shop.log (position, price) values (${position}, ${price})`;
            await tx`insert into shop.copy values (${sku}, ${price}) on conflict (sku) do update set price = excluded.price`;
          }
          this.crashes('between');
          // Its COMMIT may have succeeded or not.
          if (this.crash === 'after') setImmediate(() => this.proxy.reset());
          this.crash = null;
        },
        onLost: async (tx) => {
          this.#isTold = true;
          await tx`delete from shop.copy`;
          await tx`delete from shop.log`;
        },
      });
    } finally {
      await close();
    }
  }

  /** Checks that each change since its copy is applied once and in order. */
  override async missing(): Promise<string | null> {
    const [row] = await this.servers.sql<[{ missing: string | null }]>`
      with feed as (
        select position from catalog.changes(
          (select coalesce(min(position) - 1, catalog.changes_position()) from shop.log), 100000) where kind = 'price'
      ), ordered as (select position, lag(position) over (order by n) as before from shop.log)
      select string_agg(what, ', ') as missing from (
        select p.sku from catalog.prices p left join shop.copy c using (sku) where c.price is distinct from p.price
        union all select 'after ' || before from ordered where before >= position
        union all select 'change ' || coalesce(f.position, l.position)
        from feed f full join shop.log l using (position) where f.position is null or l.position is null
      ) m(what)`;
    return row.missing;
  }
}

const WANTED: Follow = {
  do: 'follow',
  name: null,
  from: 'start',
  reset: false,
  filter: parseFilters([], []),
  once: false,
  webhook: null,
  attempts: 10,
  batch: 500,
};
/** Shortens retries, but not the minute until the next poll. */
const clock = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms < 60_000 ? ms / 20 : ms, signal),
};

/** `catalog-mirror follow`, with a receiver that relies on the rows' positions and on copy_begins. */
export class Command extends Drawn {
  readonly #name: string | null;
  readonly #isOnce: boolean;
  readonly #rows = new Map<string, bigint>();
  #last: bigint | null = null;
  #resets = false;
  /** Losses that it is known to have been told of. */
  #losses: number;

  constructor(
    servers: Servers,
    way: { readonly proxy: Proxy; readonly url: string },
    name: string | null,
    isOnce = false,
  ) {
    super(servers, way);
    [this.#name, this.#isOnce] = [name, isOnce];
    this.#losses = servers.losses;
  }

  protected override async once(): Promise<void> {
    // A process that starts after a loss knows nothing of earlier deliveries: the manual resets each name.
    if (this.#name !== null && this.servers.losses > this.#losses) this.#beginAnew();
    const from = this.#name === null ? (this.#last ?? 'start') : 'start';
    const { end } = await followOn({
      wanted: { ...WANTED, name: this.#name, from, reset: this.#resets, once: this.#isOnce },
      sink: {
        limits: { changes: 4, bytes: 100_000 },
        deliver: (batch) => Promise.resolve(this.#deliver(batch)),
        async close() {},
      },
      filter: WANTED.filter,
      attempts: WANTED.attempts,
      once: this.#isOnce,
      clock,
      random: () => 0.5,
      stopped: this.stop.signal,
      patience: this.stop.signal,
      tell: (told) => {
        if (told.event === 'copied') this.#last = told.position;
      },
      url: () => Promise.resolve(this.url),
      started: () => {
        this.#resets = false;
      },
      storeLost() {},
      storeBack() {},
    });
    // Restarts it like cron.
    if (end === 'caught-up') await pause(100);
  }

  #deliver({ lines, copy, copyBegins, first, to }: Batch): Result {
    this.crashes('before');
    if (copyBegins === true)
      for (const [sku, position] of this.#rows) if (position < first) this.#forget(sku);
    for (const text of lines) {
      const line = JSON.parse(text) as { position: number; kind: string; sku: string; new_price: number };
      if (line.kind !== 'price') continue;
      if (!copy) this.inOrder(line.sku, line.new_price);
      if (BigInt(line.position) <= (this.#rows.get(line.sku) ?? -1n)) continue;
      this.#rows.set(line.sku, BigInt(line.position));
      this.copy.set(line.sku, line.new_price);
    }
    if (!copy) this.#last = to;
    this.crashes('between', 'after');
    return OK;
  }

  #forget(sku: string): void {
    this.#rows.delete(sku);
    this.copy.delete(sku);
  }

  protected override lost(): void {
    super.lost();
    this.#beginAnew();
  }

  /** Starts again with an empty receiver, as the manual says. */
  #beginAnew(): void {
    this.#losses = this.servers.losses;
    this.#resets = this.#name !== null;
    this.#last = null;
    this.newest.clear();
    for (const sku of this.#rows.keys()) this.#forget(sku);
  }

  override missing = () => this.missingInCopy();
}
