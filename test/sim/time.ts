import type { Clock } from '../../src/lib/clock.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { createDatabase } from '../support/db.ts';

/** The time in milliseconds at which every history begins: a moment like any other. */
const BEGINNING = Date.parse('2026-11-20T06:00:00Z');

const DAY_MS = 86_400_000;

/**
 * Returns the next midnight. Connections have existed since a time by the machine's clock, and hourly counts must
 * be the same each time.
 */
export const nextMidnight = (): number => Math.ceil(Date.now() / DAY_MS) * DAY_MS;

/**
 * Postgres on a clock of the simulation's own: `now()`, `statement_timestamp()` and `clock_timestamp()` of
 * `pg_catalog` are replaced, only in this database. A sequence holds the time, because everybody reads it at once
 * and nobody rolls it back. Reading `clock_timestamp()` takes a millisecond if it may write. A second sequence
 * holds how far Postgres's clock is wrongly ahead. A third one identifies the server, which a replica may replace.
 * Functions of the mirror that are parsed only once use these, too.
 */
const CLOCK = `
  create schema sim;
  create sequence sim.clock;
  select setval('sim.clock', ${BEGINNING});
  create sequence sim.ahead minvalue -9000000000000000 start 0;
  select setval('sim.ahead', 0);
  set allow_system_table_mods = on;
  alter function pg_catalog.now() rename to machine_now;
  alter function pg_catalog.statement_timestamp() rename to machine_statement_timestamp;
  alter function pg_catalog.clock_timestamp() rename to machine_clock_timestamp;
  create function pg_catalog.now() returns timestamptz language sql volatile as
    $$ select to_timestamp((pg_sequence_last_value('sim.clock'::regclass) + pg_sequence_last_value('sim.ahead'::regclass)) / 1000.0) $$;
  create function pg_catalog.statement_timestamp() returns timestamptz language sql volatile as $$ select now() $$;
  create function pg_catalog.clock_timestamp() returns timestamptz language sql volatile as
    $$ select to_timestamp((
      case current_setting('transaction_read_only') when 'on' then pg_sequence_last_value('sim.clock'::regclass) else nextval('sim.clock') end
      + pg_sequence_last_value('sim.ahead'::regclass)) / 1000.0) $$;
  create sequence sim.started;
  select nextval('sim.started');
  alter function pg_catalog.pg_postmaster_start_time() rename to machine_postmaster_start_time;
  create function pg_catalog.pg_postmaster_start_time() returns timestamptz language sql stable as
    $$ select to_timestamp(pg_sequence_last_value('sim.started'::regclass)) $$;
  reset allow_system_table_mods`;

export interface SimDatabase {
  readonly url: string;
  /** For the simulation itself: no replica sends anything over it. */
  readonly sql: Sql;
  drop(): Promise<void>;
}

/** Creates a migrated database on the simulation's time. */
export async function createSimDatabase(): Promise<SimDatabase> {
  const database = await createDatabase();
  const setup = connect(database.url, { max: 1 });
  await setup.unsafe(CLOCK);
  const name = new URL(database.url).pathname.slice(1);
  // Ten SKUs: planning anew for each value took longer than running the statements.
  await setup.unsafe(`alter database ${name} set plan_cache_mode = force_generic_plan`);
  await setup.end();
  await migrateDatabase(database.url);
  const sql = connect(database.url, { max: 1 });
  return {
    url: database.url,
    sql,
    async drop() {
      await sql.end({ timeout: 2 });
      await database.drop();
    },
  };
}

/** The clock of the simulated world, which is right. Postgres holds it; this is what everyone else knows of it. */
export class SimTime implements Clock {
  at = BEGINNING;
  /** How many milliseconds Postgres's own clock is ahead of the world's. */
  ahead = 0;
  private readonly sql: Sql;

  constructor(sql: Sql) {
    this.sql = sql;
  }

  now(): number {
    return this.at;
  }

  monotonic(): number {
    return this.at;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (!signal?.aborted) await this.pass(ms);
  }

  /** Lets `ms` milliseconds pass. */
  async pass(ms: number): Promise<void> {
    const { sql } = this;
    const [row] = await sql<[{ at: string }]>`
      select setval('sim.clock', last_value + ${Math.ceil(ms)}) as at from sim.clock`;
    this.at = Number(row.at);
  }

  /** Sets the clock for a new history, possibly back. */
  async set(at: number): Promise<void> {
    const { sql } = this;
    await sql`select setval('sim.clock', ${at}), setval('sim.ahead', 0), setval('sim.started', 1)`;
    this.at = at;
    this.ahead = 0;
  }

  /** Sets Postgres's clock ahead of the world's by `ms`, or behind it if negative. */
  async setAhead(ms: number): Promise<void> {
    const { sql } = this;
    await sql`select setval('sim.ahead', ${ms})`;
    this.ahead = ms;
  }

  /** Returns the clock of a machine that is `ahead` milliseconds ahead. */
  ofHost(host: { readonly ahead: number }): Clock {
    return {
      now: () => this.at + host.ahead,
      monotonic: () => this.at,
      sleep: (ms, signal) => this.sleep(ms, signal),
    };
  }
}
