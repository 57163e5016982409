import type { Sql } from '../connection/db.ts';

/**
 * The partner's ceiling on live computations, as learned (partner rules 4.1.3, 8.open). Times are epoch milliseconds,
 * by the database's clock.
 */
export interface LiveCeiling {
  /** Counts the changes: what a call teaches is stored only where no other call has taught since it was planned. */
  readonly step: number;
  /** Live computations a minute that were allowed at `since`; null while no ceiling has been met. */
  readonly perMinute: number | null;
  readonly since: number;
  /** How many cycles in a row have measured about the same, up to a bound. */
  readonly alike: number;
  /** While nothing is computed: since when, and when that was last seen. */
  readonly blockedAt: number | null;
  readonly failedAt: number | null;
  /** The first computation after the last block. */
  readonly cycleFrom: number;
}

/** As long as no ceiling has been met. */
export const NO_CEILING: LiveCeiling = {
  step: 0,
  perMinute: null,
  since: 0,
  alike: 0,
  blockedAt: null,
  failedAt: null,
  cycleFrom: 0,
};

/** SQL: the columns of catalog_internal.live_ceiling as a LiveCeiling. */
export function ceilingColumns(sql: Sql) {
  const ms = (column: string) => sql`(extract(epoch from ${sql(column)}) * 1000)::float8`;
  return sql`json_build_object('step', step, 'perMinute', per_minute, 'since', ${ms('since')}, 'alike', alike,
    'blockedAt', ${ms('blocked_at')}, 'failedAt', ${ms('failed_at')}, 'cycleFrom', ${ms('cycle_from')})`;
}

/**
 * SQL: an UPDATE that stores a ceiling, unless another call has changed it meanwhile. What may be asked for grows
 * from the end of a block.
 */
export function storingCeiling(sql: Sql, ceiling: LiveCeiling | null) {
  const at = (ms: number | null) => sql`to_timestamp(${ms === null ? null : ms / 1000}::float8)`;
  const { step, perMinute, since, alike, blockedAt, failedAt, cycleFrom } = ceiling ?? NO_CEILING;
  return sql`
    update catalog_internal.live_ceiling set step = ${step}::int, per_minute = ${perMinute}::float8, since = ${at(since)},
      alike = ${alike}::int, blocked_at = ${at(blockedAt)}, failed_at = ${at(failedAt)}, cycle_from = ${at(cycleFrom)},
      credit_from = case when blocked_at is not null and ${blockedAt === null} then clock_timestamp() else credit_from end
    where step = ${step}::int - 1 and ${ceiling !== null}`;
}

/** Stores a ceiling. False where another call has changed it meanwhile. */
export async function storeCeiling(sql: Sql, ceiling: LiveCeiling): Promise<boolean> {
  return (await sql`${storingCeiling(sql, ceiling)}`).count > 0;
}
