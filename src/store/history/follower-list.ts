import type { Queryable, Sql } from '../connection/db.ts';
import type { Delivery } from './followers.ts';

/** The current state of a follower, for people and metrics. */
export interface FollowerNow {
  readonly name: string;
  readonly delivery: Delivery;
  readonly position: string;
  /** While the first copy is being sent: the SKU up to which it is delivered. */
  readonly afterSku: string | null;
  /**
   * Changes after its position, counted up to 10,000, and how long the first has waited; null: the position is lost.
   */
  readonly behind: number | null;
  readonly behindSeconds: number | null;
  readonly lost: boolean;
  /** Null if no process follows under this name at present. */
  readonly heldBy: string | null;
  readonly failures: number;
  readonly failingSince: Date | null;
  readonly lastStatus: number | null;
  readonly lastSaid: string | null;
  readonly lastAt: Date | null;
  readonly deadLetters: number;
}

/** Reads all followers, in order of name. */
export async function readFollowers(sql: Queryable): Promise<FollowerNow[]> {
  return await sql<FollowerNow[]>`
    select name, delivery, position::text, after_sku as "afterSku", behind, behind_seconds as "behindSeconds",
      lost, held_by as "heldBy", failures,
      failing_since as "failingSince", last_status as "lastStatus", last_said as "lastSaid",
      last_at as "lastAt", dead_letters as "deadLetters"
    from catalog_internal.followers_now() order by name`;
}

/**
 * Deletes a follower, its position and its dead letters; returns how many these were, null if there is no such name.
 */
export async function forgetFollower(sql: Sql, name: string): Promise<number | null> {
  const [row] = await sql<{ letters: number }[]>`
    with letters as (select count(*)::int as letters from catalog_internal.dead_letters where follower = ${name})
    delete from catalog_internal.followers using letters where name = ${name} returning letters.letters`;
  return row?.letters ?? null;
}

/** A batch that a receiver has refused for good. */
export interface DeadLetter {
  readonly id: string;
  readonly messageId: string;
  readonly positionFrom: string;
  readonly positionTo: string;
  readonly changes: number;
  readonly attempts: number;
  readonly lastStatus: number | null;
  readonly lastSaid: string | null;
  readonly failingSince: Date;
  readonly buriedAt: Date;
}

/** Reads the dead letters of a follower, oldest first, without their bodies. */
export async function listDeadLetters(sql: Sql, follower: string): Promise<DeadLetter[]> {
  return await sql<DeadLetter[]>`
    select id, message_id as "messageId", position_from as "positionFrom", position_to as "positionTo", changes, attempts,
      last_status as "lastStatus", last_said as "lastSaid", failing_since as "failingSince", buried_at as "buriedAt"
    from catalog_internal.dead_letters where follower = ${follower} order by id`;
}

/** Reads a dead letter's body as it was sent; null if the letter is gone. */
export async function readLetter(
  sql: Sql,
  id: string,
): Promise<{ readonly messageId: string; readonly body: string } | null> {
  const [row] = await sql<{ messageId: string; body: string }[]>`
    select message_id as "messageId", body from catalog_internal.dead_letters where id = ${id}`;
  return row ?? null;
}

/** Counts another failed attempt at a dead letter. */
export async function noteAttempt(
  sql: Sql,
  id: string,
  { status, said }: { readonly status: number | null; readonly said: string | null },
): Promise<void> {
  await sql`
    update catalog_internal.dead_letters set attempts = attempts + 1, last_status = ${status}, last_said = ${said} where id = ${id}`;
}

/** Deletes a dead letter if it still exists. */
export async function deleteLetter(sql: Sql, id: string): Promise<void> {
  await sql`delete from catalog_internal.dead_letters where id = ${id}`;
}

/** Deletes all dead letters of a follower; returns how many. */
export async function discardLetters(sql: Sql, follower: string): Promise<number> {
  const { count } = await sql`delete from catalog_internal.dead_letters where follower = ${follower}`;
  return count;
}
