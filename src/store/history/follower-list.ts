import type { Queryable, Sql } from '../connection/db.ts';
import type { Delivery } from './followers.ts';

/** A follower as it stands, for people and metrics. */
export interface FollowerNow {
  readonly name: string;
  readonly delivery: Delivery;
  readonly position: string;
  /** While the first copy is being sent: the SKU up to which it is delivered. */
  readonly afterSku: string | null;
  /**
   * Changes after its position, 10,000 at most are counted, and how long the first has waited; null: the position is
   * lost.
   */
  readonly behind: number | null;
  readonly behindSeconds: number | null;
  readonly lost: boolean;
  /** Null: no process follows under this name at present. */
  readonly heldBy: string | null;
  readonly failures: number;
  readonly failingSince: Date | null;
  readonly lastStatus: number | null;
  readonly lastSaid: string | null;
  readonly lastAt: Date | null;
  readonly deadLetters: number;
}

/** Every follower, in order of name. */
export async function readFollowers(sql: Queryable): Promise<FollowerNow[]> {
  return await sql<FollowerNow[]>`
    select name, delivery, position::text, after_sku as "afterSku", behind, behind_seconds as "behindSeconds",
      lost, held_by as "heldBy", failures,
      failing_since as "failingSince", last_status as "lastStatus", last_said as "lastSaid",
      last_at as "lastAt", dead_letters as "deadLetters"
    from catalog_internal.followers_now() order by name`;
}

/**
 * Forgets a follower, its position and its dead letters; how many these were, null where there is none of this name.
 */
export async function forgetFollower(sql: Sql, name: string): Promise<number | null> {
  const [row] = await sql<{ letters: number }[]>`
    with letters as (select count(*)::int as letters from catalog_internal.dead_letters where follower = ${name})
    delete from catalog_internal.followers using letters where name = ${name} returning letters.letters`;
  return row?.letters ?? null;
}
