import { afterAll, beforeAll } from 'vitest';
import type { Clock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { Pacer } from '../../src/pace/permit.ts';
import type { SandboxOptions } from '../../src/sandbox/index.ts';
import { createObservers } from '../../src/store/answer/observers.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { CREATE_REFILL } from '../support/seed.ts';
import { type SettingsEnv, settingsWith } from '../support/settings.ts';
import { UNPACED } from '../support/unpaced.ts';
import { CHUNKS } from './ages.ts';
import { BACKUPS } from './backups.ts';
import { SELLERS_TRIGGER } from './neighbours.ts';
import { SimPartner } from './partner.ts';
import { createSimDatabase, type SimDatabase, SimTime } from './time.ts';
import { Crash, type Daemon, Worker } from './worker.ts';

/** The defaults, except that deltas are polled whenever the scheduler likes. */
const SETTINGS: SettingsEnv = {
  DELTA_INTERVAL: '100ms',
  SWEEP_MIN_AGE: '6h',
  PARTNER_DOWNLOAD_TIMEOUT: '60s',
};

/** A catalog with something of everything: snapshot-priced and live SKUs, ghosts, mislisted and unlisted SKUs. */
const CATALOG: SandboxOptions = {
  seed: 7,
  skus: 10,
  liveShare: 0.3,
  ghostShare: 0.1,
  mislistedShare: 0.1,
  unlistedShare: 0.1,
  noopShare: 0.5,
};

/** Where histories take place: a database with a clock of its own, filled from a small catalog, and the partner. */
export class Rig {
  readonly partner = new SimPartner();
  readonly #counts = new Map<string, number>();
  #database: SimDatabase | undefined;
  #time: SimTime | undefined;
  #pools: Sql[] = [];
  #tables: readonly string[] = [];
  #filledAt = 0;
  #born = 0;
  /** Chunks of the history, the last position drawn, and the last one dropped, as every history finds them. */
  #chunks: readonly [number, string, string] = [0, '1', '0'];
  /** Whether the history has dropped chunks, or begun new ones. */
  hasAged = false;
  /** The time of a pause of requests, as known to whoever requested it. Null without a pause. */
  pause: { readonly since: number; readonly until: number } | null = null;

  get sql(): Sql {
    if (this.#database === undefined) throw new Error('not open');
    return this.#database.sql;
  }

  get url(): string {
    return this.#database?.url ?? '';
  }

  get time(): SimTime {
    if (this.#time === undefined) throw new Error('not open');
    return this.#time;
  }

  /** Opens it, and lets `fill` bring the mirror to where every history begins. */
  async open(fill: () => Promise<void>): Promise<void> {
    this.#database = await createSimDatabase();
    await this.sql.unsafe(SELLERS_TRIGGER);
    await this.sql.unsafe(BACKUPS);
    await this.sql.unsafe(CHUNKS);
    this.#time = new SimTime(this.sql);
    this.#pools = [0, 1, 2, 3, 4, 5].map(() => connect(this.#database?.url ?? '', { max: 1 }));
    await this.partner.open();
    this.partner.note = (what) => this.note(what);
    const tables = await this.sql<{ name: string }[]>`
      select schemaname || '.' || tablename as name from pg_tables
      where schemaname in ('catalog', 'catalog_internal') and tablename <> 'migrations'
      -- First the SKUs, with which others go, and whose prices are written into the history.
      order by tablename <> 'skus'`;
    this.#tables = tables.map(({ name }) => name);
    this.newWorld({});
    await fill();
    this.#filledAt = this.time.at;
    const [{ chunks, drawn, dropped }] = await this.sql<[{ chunks: number; drawn: string; dropped: string }]>`
      select (select count(*)::int from pg_inherits where inhparent = 'catalog.price_history'::regclass) as chunks, p.last_value as drawn,
        case when d.is_called then d.last_value else 0 end as dropped
      from catalog_internal.change_positions p, catalog_internal.dropped_positions d`;
    this.#chunks = [chunks, drawn, dropped];
    // An ambiguous partner dates its snapshots at the start of a build, including the first one.
    await this
      .sql`update catalog_internal.sync set snapshot_generated_at = snapshot_generated_at - interval '6 minutes'`;
    await this.sql.unsafe(
      `create schema seed; ${CREATE_REFILL}; ${this.#each((t) => `create table seed."${t}" as table ${t}`)}`,
    );
  }

  async close(): Promise<void> {
    this.partner.close();
    await Promise.all(this.#pools.map((pool) => pool.end({ timeout: 2 })));
    await this.#database?.drop();
  }

  newWorld(options: SandboxOptions, words: number | null = null): void {
    this.partner.begin({ ...CATALOG, ...options, now: () => this.time.at }, words);
  }

  /** Returns to the beginning: the filled mirror, its world, its time. `words` is as in SimPartner.begin. */
  async reset(options: SandboxOptions, words: number | null = null): Promise<void> {
    await this.sql`delete from sim.objected`;
    const [chunks, drawn, dropped] = this.#chunks;
    if (this.hasAged) await this.sql`select sim.first_chunks(${chunks}, ${drawn}, ${dropped})`;
    this.hasAged = false;
    this.pause = null;
    await this.sql.unsafe(this.#each((t) => `select seed.refill('${t}', '${t}')`));
    await this.time.set(this.#beginning);
    this.newWorld(options, words);
    // The snapshot at the end of the fill: the same world gives it the same name.
    this.partner.world.buildSnapshot();
    await this.time.set(this.#filledAt);
  }

  readonly #beginning = Date.parse('2026-11-20T06:00:00Z');

  #each(statement: (table: string) => string): string {
    return this.#tables.map(statement).join(';');
  }

  /** Creates a worker of a daemon on the nth connection. If `paced`, it uses the ledger of sends. */
  worker(nth: number, daemon: Daemon, settings: SettingsEnv, paced: boolean): [Worker, SyncContext] {
    this.#born += 1;
    const worker = new Worker(`w${this.#born}`, this.#pools[nth] as Sql, daemon);
    const clock = this.time.ofHost(daemon.host);
    const ctx: SyncContext = {
      sql: worker.sql,
      databaseUrl: () => {
        if (!daemon.alive) throw new Crash();
        return this.#database?.url ?? '';
      },
      client: this.partner.clientOf(worker),
      pacer: paced ? this.#pacer(worker, clock) : UNPACED,
      clock,
      random: () => 0.5,
      settings: settingsWith({ ...SETTINGS, PARTNER_BASE_URL: this.partner.base, ...settings }),
      observers: createObservers(this.time),
      floors: new DueFloors(this.time),
      recent: new RecentAnswers(),
      tracer: NO_TRACER,
      emit: (event) => this.#count(event),
    };
    return [worker, ctx];
  }

  #pacer(worker: Worker, clock: Clock): Pacer {
    const limits = { maxPerWindow: 120, windowMs: 60_000, backoffMs: 60_000 };
    const pacer = createPacer(worker.sql, clock, limits, {}, undefined, () => 0.5);
    return {
      acquire: async (...asked) => {
        const acquired = await pacer.acquire(...asked);
        if (acquired.kind === 'granted') this.#permitted();
        return acquired;
      },
    };
  }

  /** Throws if a permit is granted while requests are paused. The simulation's time is known to within a second. */
  #permitted(): void {
    const { pause, time } = this;
    if (pause === null || time.ahead !== 0) return;
    const { since, until } = pause;
    if (time.at >= since && time.at < until - 1000)
      throw new Error(`a request is permitted at ${time.at}, and paused from ${since} to ${until}`);
  }

  /** Counts an event. */
  note(what: string, times = 1): void {
    this.#counts.set(what, this.count(what) + times);
  }

  /** Returns how often an event happened so far. */
  count(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  #count(event: SyncEvent): void {
    this.note(event.event);
    if (event.event !== 'bulk.applied') return;
    for (const what of ['late', 'deferred', 'omitted', 'contradictory', 'unreadable', 'unexpected'] as const)
      this.note(`bulk ${what}`, event[what]);
  }
}

/** Sets up a rig for the test file. Must be called at a file's top level. */
export function useRig(fill: (rig: Rig) => Promise<void>): Rig {
  const rig = new Rig();
  beforeAll(() => rig.open(() => fill(rig)));
  afterAll(() => rig.close());
  return rig;
}

/** Sets up rigs that play side by side: each of them waits for Postgres most of its time. */
export function useRigs(fill: (rig: Rig) => Promise<void>, count = 2): readonly [Rig, ...Rig[]] {
  const more = Array.from({ length: count - 1 }, () => useRig(fill));
  return [useRig(fill), ...more];
}

/** Counts an event over all rigs. */
export function countIn(rigs: readonly Rig[], what: string): number {
  return rigs.reduce((sum, rig) => sum + rig.count(what), 0);
}
