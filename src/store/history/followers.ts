import type { LoneClient } from '../connection/db.ts';
import type { OwnSession } from '../connection/own-session.ts';
import { isPrivilegeLacking, POSITION_LOST, sqlState } from '../connection/sql-errors.ts';

/*
 * Positions of `catalog-mirror follow`, by name. The session in a name's row holds the name for as long as it is
 * alive. Every statement about a delivery uses that session, so its success proves that the session still holds the
 * name; if somebody else has taken the name, it finds no row.
 */

/** More are hardly needed, and each has its own series in the metrics. */
export const MAX_FOLLOWERS = 50;

export type FollowerProblem = 'held' | 'taken' | 'too-many' | 'unknown' | 'position-lost';

/** Why a follower cannot continue. The message says why, `hint` what to do. */
export class FollowerError extends Error {
  override readonly name = 'FollowerError';
  readonly kind: FollowerProblem;
  readonly hint: string;

  constructor(kind: FollowerProblem, text: string, hint: string, cause?: unknown) {
    super(text, { cause });
    this.kind = kind;
    this.hint = hint;
  }
}

/** How far a follower is. */
export interface Place {
  readonly position: bigint;
  /** While the first copy is being sent: the SKU up to which it is delivered. */
  readonly afterSku: string | null;
  /** The end of the batch that was being delivered. */
  readonly sendingTo: bigint | null;
  readonly failures: number;
  readonly refusals: number;
  /** How long before the name was taken that batch first failed because of a wrong clock. */
  readonly clockFailingForMs?: number;
  /** The newest position that the receiver may have been told of, as far as this process knows. */
  readonly shownTo?: bigint;
}

export type Delivery = 'stdout' | 'webhook';

/** Where a follower begins if it has no position yet. */
export type Beginning = 'now' | 'oldest' | 'start' | bigint;

export interface FollowerOptions {
  readonly name: string;
  readonly delivery: Delivery;
  /** Null if it has begun already: a database that does not know the name then has lost it. */
  readonly from: Beginning | null;
  /** Begin at `from` even if a position is kept. */
  readonly reset: boolean;
  /** Who holds the name, for others to read. */
  readonly heldBy: string;
}

/** What a process holds names with: its number, and its sessions, the last of which is the present one. */
export interface Holder {
  readonly number: string;
  readonly sessions: readonly OwnSession[];
}

interface Row {
  readonly position: string;
  readonly after_sku: string | null;
  readonly sending_to: string | null;
  readonly failures: number;
  readonly refusals: number;
  readonly clock_failing_for_ms: number | null;
  readonly is_held: boolean;
  readonly held_by: string | null;
  readonly holder: string | null;
}

const placeOf = (row: Row): Place => ({
  position: BigInt(row.position),
  afterSku: row.after_sku,
  sendingTo: row.sending_to === null ? null : BigInt(row.sending_to),
  failures: row.failures,
  refusals: row.refusals,
  ...(row.clock_failing_for_ms !== null && { clockFailingForMs: row.clock_failing_for_ms }),
});

/**
 * Records which database this is if it is not the one last written to (as after a restore), before a position is
 * judged or given out. Otherwise a position from before the restore could pass for one of this database until
 * something is written, and a copy would get a position older than the lost changes that the receiver has. A
 * reader's role may not do this; the daemon does it when it starts.
 */
export async function noteLineage(client: LoneClient): Promise<void> {
  await client
    .query(
      `select catalog_internal.lock_changes()
       where current_setting('transaction_read_only') = 'off' and not catalog_internal.lineage_holds()`,
    )
    .catch((error: unknown) => {
      if (!isPrivilegeLacking(sqlState(error))) throw error;
    });
}

/**
 * Returns the position that a beginning means now.
 *
 * @throws FollowerError `position-lost`
 */
export async function beginningOf(client: LoneClient, from: Beginning): Promise<bigint> {
  const of = from === 'oldest' ? 'catalog.changes_oldest()' : 'catalog.changes_position()';
  if (typeof from === 'bigint') {
    await client.query('select from catalog.changes($1, 1)', [String(from)]).catch((error: unknown) => {
      if (sqlState(error) !== POSITION_LOST) throw error;
      throw new FollowerError(
        'position-lost',
        `position ${from} is no longer kept, or is none of this database`,
        'use --from oldest, --from start or --from now',
        error,
      );
    });
    return from;
  }
  const { rows } = await client.query<{ position: string }>(`select ${of} as position`);
  return BigInt(rows[0]?.position ?? 0);
}

/**
 * Draws a number under which no other process has held a name, as far as this database knows: after a restore it
 * draws the same numbers again.
 */
export async function drawHolder(client: LoneClient): Promise<string> {
  const { rows } = await client.query<{ holder: string }>(
    "select nextval('catalog_internal.claim_numbers')::text as holder",
  );
  return rows[0]?.holder ?? '';
}

export const followerSession = (name: string | null): string =>
  `catalog-mirror follow${name === null ? '' : ` ${name}`}`;

/**
 * Whether a session is still a follower's. A pooler keeps the session of a client that has died, for itself or for
 * another client, which names it differently. `$5` is the application name that a follower of this name uses. It
 * decides only if session names reach the server.
 */
const IS_FOLLOWING = `(
  not starts_with(current_setting('application_name'), left($5, 63))
  or pid <> pg_backend_pid() and exists (
    select from pg_stat_activity a where a.pid = followers.pid and starts_with(a.application_name, left($5, 63))))`;

/**
 * Takes the name for the present session, and creates it if nobody has used it. Returns `heldBy` if a living session
 * of another process holds it.
 *
 * @throws FollowerError `too-many`, `unknown`, `position-lost`
 */
export async function takeName(
  client: LoneClient,
  { number, sessions }: Holder,
  { name, delivery, from, reset, heldBy }: FollowerOptions,
): Promise<Place | { readonly heldBy: string }> {
  const present = sessions.at(-1);
  await client.query('begin');
  try {
    // Names are created one at a time, so that they can be counted.
    await client.query('lock table catalog_internal.followers in share row exclusive mode');
    const begun =
      reset || !(await isKnown(client, name)) ? await beginningOf(client, begunAt(name, from)) : null;
    if (begun !== null) await makeName(client, name, delivery, begun);
    const { rows } = await client.query<Row>(
      `select *, catalog_internal.session_lives(pid, backend_start) and (holder is distinct from $2
         or (pid, backend_start) not in (select * from unnest($3::int[], $4::timestamptz[]))) and ${IS_FOLLOWING} as is_held
       from catalog_internal.followers where name = $1`,
      [
        name,
        number,
        sessions.map(({ pid }) => pid),
        sessions.map(({ began }) => began),
        followerSession(name),
      ],
    );
    const row = rows[0] as Row;
    if (row.is_held) {
      await client.query('rollback');
      return { heldBy: row.held_by ?? 'another process' };
    }
    if (begun !== null)
      await client.query(
        `update catalog_internal.followers set position = $2, after_sku = $3, sending_to = null,
           failures = 0, refusals = 0, failing_since = null, clock_failing_since = null
         where name = $1`,
        [name, String(begun), from === 'start' ? '' : null],
      );
    // The dead letters are older than the copy that comes now.
    if (begun !== null && from === 'start')
      await client.query('delete from catalog_internal.dead_letters where follower = $1', [name]);
    const taken = await client.query<Row>(
      `update catalog_internal.followers set holder = $2, pid = $5, backend_start = $6, held_by = $3, delivery = $4, updated_at = now()
       where name = $1
       returning *, (1000 * extract(epoch from clock_timestamp() - clock_failing_since))::float8 as clock_failing_for_ms`,
      [name, number, heldBy, delivery, present?.pid, present?.began],
    );
    await client.query('commit');
    return placeOf(taken.rows[0] as Row);
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

function begunAt(name: string, from: Beginning | null): Beginning {
  if (from !== null) return from;
  throw new FollowerError(
    'unknown',
    `the database does not know ${name} any more: it was restored, or somebody has forgotten this follower`,
    'begin again: empty the receiver, then --from start sends the present state and then the changes; --from oldest what is still kept',
  );
}

async function isKnown(client: LoneClient, name: string): Promise<boolean> {
  const { rowCount } = await client.query('select from catalog_internal.followers where name = $1', [name]);
  return rowCount !== 0;
}

async function makeName(client: LoneClient, name: string, delivery: Delivery, at: bigint): Promise<void> {
  const { rowCount } = await client.query(
    `insert into catalog_internal.followers (name, position, delivery)
     select $1, $2, $3
     where (select count(*) from catalog_internal.followers) < $4
       or exists (select from catalog_internal.followers where name = $1)
     on conflict (name) do nothing`,
    [name, String(at), delivery, MAX_FOLLOWERS],
  );
  if (rowCount === 0 && !(await isKnown(client, name)))
    throw new FollowerError(
      'too-many',
      `there are ${MAX_FOLLOWERS} followers already`,
      'forget one that is not used any more: `catalog-mirror follow --list`, `catalog-mirror follow --name NAME --forget`',
    );
}
