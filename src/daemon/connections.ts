/** How many connections to Postgres each part of a daemon may have. */
export interface ConnectionCounts {
  readonly pool: number;
  /** For the queues, where they are in Postgres; else 0. */
  readonly queues: number;
}

/**
 * The one that says that the daemon lives, and the one of a manifest. While a daemon starts, its migrations have as
 * many.
 */
const LONE = 2;
/** From here on one more for the queues is worth more than one more for the pool. */
const ROOMY = 8;

/**
 * Divides DATABASE_POOL_MAX: together they open no more connections than that. Its least value, 5, leaves the pool
 * two, so that a statement that waits for a lock does not hold up all others.
 */
export function divideConnections(most: number, queuesInPostgres: boolean): ConnectionCounts {
  const queues = queuesInPostgres ? (most < ROOMY ? 1 : 2) : 0;
  return { pool: most - LONE - queues, queues };
}
