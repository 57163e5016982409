import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Batch, follow, FollowError } from '../../src/client/follow.ts';
import { eventually, pause } from '../support/eventually.ts';
import { runs } from '../support/soak.ts';
import { Servers } from './servers.ts';

/* A consumer of the package's `follow` that crashes while its servers change: drawn histories. */

type Crash = 'before' | 'between' | 'after';
type Step =
  | { readonly kind: 'write'; readonly skus: readonly string[] }
  | { readonly kind: 'crash'; readonly when: Crash }
  | { readonly kind: 'cut'; readonly times: number }
  | { readonly kind: 'restore'; readonly isNoted: boolean }
  | {
      readonly kind: 'away' | 'backup' | 'replicate' | 'standby' | 'primary' | 'promote' | 'drop' | 'settle';
    };

const SKUS = ['A', 'B', 'C', 'D'];
const constant = <T extends string>(kind: T) => fc.constant({ kind });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      skus: fc.array(fc.constantFrom(...SKUS), { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('crash' as const),
      when: fc.constantFrom<Crash[]>('before', 'between', 'after'),
    }),
  },
  fc.record({ kind: fc.constant('cut' as const), times: fc.integer({ min: 1, max: 2 }) }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('restore' as const), isNoted: fc.boolean() }) },
  { weight: 6, arbitrary: constant('settle') },
  { weight: 2, arbitrary: constant('backup') },
  { weight: 2, arbitrary: constant('replicate') },
  { weight: 2, arbitrary: constant('standby') },
  { weight: 2, arbitrary: constant('promote') },
  constant('away'),
  constant('primary'),
  constant('drop'),
);

const history = fc.record({
  begins: fc.constantFrom('start', 'now'),
  batch: fc.constantFrom(1, 2, 11, 30),
  /** Each with how many turns of the event loop pass before the next step; a statement takes one or two. */
  steps: fc.array(fc.tuple(step, fc.nat(8)), { minLength: 3, maxLength: 25 }),
});
type History = typeof history extends fc.Arbitrary<infer T> ? T : never;

class Crashed extends Error {}
/** Errors of servers that are away, cut off or behind. */
const PASSING = new Set(['ECONNREFUSED', 'CONNECTION_CLOSED', '40001']);

/** A program that keeps a copy of the prices, and the position with it. */
class Consumer {
  position: string;
  crash: Crash | null = null;
  told = 0;
  readonly copy = new Map<string, number>();
  /** Prices that came as changes (each exists once), and the position after which they started. */
  readonly seen = new Set<number>();
  #from: bigint | null;
  readonly #of: Servers;
  readonly #batch: number;
  readonly #stop = new AbortController();
  #failures = { inARow: 0, read: 0 };

  constructor(of: Servers, { begins, batch }: History) {
    [this.#of, this.position, this.#batch] = [of, begins, batch];
    this.#from = begins === 'now' ? 0n : null;
  }

  /** Restarts after each crash, until it is told to end. */
  async run(): Promise<void> {
    while (!this.#stop.signal.aborted)
      await this.#once().catch((error: unknown) => {
        if (error instanceof Crashed) return;
        if (error instanceof FollowError && error.kind === 'position-lost') this.#beginAnew();
        // The very first read ends with this error: whatever supervises the program restarts it.
        else if (!PASSING.has((error as { code?: string }).code ?? '')) throw error;
        return pause(20);
      });
  }

  async end(running: Promise<void>): Promise<void> {
    this.#stop.abort();
    await running;
  }

  /** Returns whether it has all present prices, and each change since it started. */
  isUpToDate({ state }: Servers['primary']): boolean {
    const from = this.#from;
    const missed = state.rows.filter(
      ({ position, price }) => from !== null && position > from && !this.seen.has(price),
    );
    const { copy } = this;
    return (
      missed.length === 0 &&
      copy.size === state.prices.size &&
      [...state.prices].every(([sku, price]) => copy.get(sku) === price)
    );
  }

  #beginAnew(): void {
    this.told += 1;
    this.position = 'start';
  }

  async #once(): Promise<void> {
    const { signal } = this.#stop;
    this.#failures = { inARow: 0, read: 0 };
    const onRetry = (_: unknown, inMs: number) => {
      const { read } = this.#of;
      this.#failures = { inARow: this.#failures.read === read ? this.#failures.inARow + 1 : 1, read };
      expect(inMs).toBeGreaterThanOrEqual(50 * 2 ** Math.min(6, this.#failures.inARow - 1));
    };
    if (this.position === 'start') {
      this.copy.clear();
      this.#from = null;
    }
    const options = {
      sql: this.#of.sql,
      position: this.position,
      batch: this.#batch,
      pollMs: 10,
      signal,
      onRetry,
    };
    for await (const batch of follow(options)) this.#take(batch);
  }

  #take({ changes, position, isCopy }: Batch): void {
    const crash = changes.length === 0 ? null : this.crash;
    if (crash !== null) this.crash = null;
    if (crash === 'before') throw new Crashed();
    for (const { new_price: price } of changes) if (!isCopy) this.#inOrder(price ?? 0);
    if (crash === 'between') throw new Crashed();
    // In one transaction.
    for (const { sku, new_price: price } of changes) this.copy.set(sku, price ?? 0);
    if (isCopy) this.#from ??= BigInt(/^\d+/.exec(position)?.[0] ?? 0);
    this.position = position;
    if (crash === 'after') throw new Crashed();
  }

  /**
   * Checks that a change that comes for the first time is newer than all that have come. Repetitions are in order
   * as well.
   */
  #inOrder(price: number): void {
    const newest = Math.max(0, ...this.seen);
    if (!this.seen.has(price) && price <= newest)
      throw new Error(`${price} came for the first time after ${newest}`);
    this.seen.add(price);
  }
}

/**
 * Returns whether a consumer at this address can have everything, or be told of what it cannot have: the next
 * write does that.
 */
const isWell = (servers: Servers) =>
  !servers.isAway && servers.at === servers.primary && servers.primary.isNoted;

async function take(next: Step, servers: Servers, consumer: Consumer): Promise<void> {
  if (next.kind === 'write') for (const sku of next.skus) servers.write(sku);
  else if (next.kind === 'crash') consumer.crash = next.when;
  else if (next.kind === 'cut') servers.cut = next.times;
  else if (next.kind === 'restore') servers.restore(next.isNoted);
  else if (next.kind === 'away') servers.isAway = true;
  else if (next.kind === 'backup') servers.keep();
  else if (next.kind === 'replicate') servers.replicate();
  else if (next.kind === 'standby') servers.lead('standby');
  else if (next.kind === 'primary') servers.lead('primary');
  else if (next.kind === 'promote') servers.promote();
  else if (next.kind === 'drop') servers.dropOld();
  else if (isWell(servers))
    await eventually(() => consumer.isUpToDate(servers.primary), { what: 'up to date' });
  else await pause(60).then(() => (servers.isAway = false));
}

async function play(drawn: History): Promise<void> {
  const servers = new Servers();
  // So that there is something to copy, and an earlier backup.
  if (drawn.begins === 'start') for (const sku of SKUS) servers.write(sku);
  servers.keep();
  const consumer = new Consumer(servers, drawn);
  const running = consumer.run();
  const failed = running.then(
    () => new Promise<never>(() => {}),
    (error: unknown) => Promise.reject(error as Error),
  );
  const live = async () => {
    await eventually(() => consumer.position !== 'now', { what: 'a position' });
    for (const [next, until] of drawn.steps) {
      await take(next, servers, consumer);
      for (let n = 0; n < until; n += 1) await setImmediate();
    }
    servers.lead('primary');
    servers.write('A');
    await eventually(() => consumer.isUpToDate(servers.primary), { what: 'up to date in the end' });
  };
  try {
    await Promise.race([live(), failed]);
  } finally {
    await consumer.end(running);
  }
  expect(consumer.told).toBeLessThanOrEqual(servers.losses);
}

test('whatever servers its address points to, a consumer gets each change in order or is told of a loss', async () => {
  // Many at once, since each mostly waits.
  const many = fc.array(history, { minLength: 25, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(many, async (all) => {
      for (const played of await Promise.allSettled(all.map(play)))
        if (played.status === 'rejected') throw played.reason;
    }),
    { numRuns: runs(2) },
  );
});
