import { connect, type Sql } from '../../src/store/db.ts';
import { migrateDatabase } from '../../src/store/migrations.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { createDatabase } from '../support/db.ts';

/** Milliseconds at which every history begins: a moment like any other. */
const BEGINNING = Date.parse('2026-11-20T06:00:00Z');

/**
 * Postgres on a clock of the simulation's own: `now()` and `clock_timestamp()` of `pg_catalog` are others, in this database
 * alone. A sequence tells the time, since it is read at once by everybody and rolled back by nobody; reading
 * `clock_timestamp()` takes a millisecond. Functions of the mirror that are parsed once mean these, too.
 */
const CLOCK = `
  create schema sim;
  create sequence sim.clock;
  select setval('sim.clock', ${BEGINNING});
  set allow_system_table_mods = on;
  alter function pg_catalog.now() rename to machine_now;
  alter function pg_catalog.clock_timestamp() rename to machine_clock_timestamp;
  create function pg_catalog.now() returns timestamptz language sql volatile as
    $$ select to_timestamp(pg_sequence_last_value('sim.clock'::regclass) / 1000.0) $$;
  create function pg_catalog.clock_timestamp() returns timestamptz language sql volatile as
    $$ select to_timestamp(nextval('sim.clock') / 1000.0) $$;
  reset allow_system_table_mods`;

export interface SimDatabase {
  readonly url: string;
  /** For the simulation itself: no replica sends anything over it. */
  readonly sql: Sql;
  drop(): Promise<void>;
}

/** A migrated database in which time is the simulation's. */
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

/** The clock of the simulated world: Postgres has it, this is what everyone else knows of it. */
export class SimTime implements Clock {
  at = BEGINNING;
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

  /** Lets `ms` milliseconds go by. */
  async pass(ms: number): Promise<void> {
    const { sql } = this;
    const [row] = await sql<[{ at: string }]>`
      select setval('sim.clock', last_value + ${Math.ceil(ms)}) as at from sim.clock`;
    this.at = Number(row.at);
  }

  /** Sets the clock, also back: a new history begins. */
  async set(at: number): Promise<void> {
    const { sql } = this;
    await sql`select setval('sim.clock', ${at})`;
    this.at = at;
  }
}
