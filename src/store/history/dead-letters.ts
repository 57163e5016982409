import type { Sql } from '../connection/db.ts';

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

/** The dead letters of a follower, oldest first, without what they hold. */
export async function listDeadLetters(sql: Sql, follower: string): Promise<DeadLetter[]> {
  return await sql<DeadLetter[]>`
    select id, message_id as "messageId", position_from as "positionFrom", position_to as "positionTo", changes, attempts,
      last_status as "lastStatus", last_said as "lastSaid", failing_since as "failingSince", buried_at as "buriedAt"
    from catalog_internal.dead_letters where follower = ${follower} order by id`;
}

/** What one of them holds, as it was sent; null where it is gone. */
export async function readLetter(
  sql: Sql,
  id: string,
): Promise<{ readonly messageId: string; readonly body: string } | null> {
  const [row] = await sql<{ messageId: string; body: string }[]>`
    select message_id as "messageId", body from catalog_internal.dead_letters where id = ${id}`;
  return row ?? null;
}

/** One was tried again, in vain. */
export async function noteAttempt(
  sql: Sql,
  id: string,
  { status, said }: { readonly status: number | null; readonly said: string | null },
): Promise<void> {
  await sql`
    update catalog_internal.dead_letters set attempts = attempts + 1, last_status = ${status}, last_said = ${said} where id = ${id}`;
}

/** Deletes one; nothing where it is gone. */
export async function deleteLetter(sql: Sql, id: string): Promise<void> {
  await sql`delete from catalog_internal.dead_letters where id = ${id}`;
}

/** Deletes all of a follower; returns how many. */
export async function discardLetters(sql: Sql, follower: string): Promise<number> {
  const { count } = await sql`delete from catalog_internal.dead_letters where follower = ${follower}`;
  return count;
}
