import type { LoneClient, Queryable, Sql } from '../connection/db.ts';
import { readOwnSession } from '../connection/own-session.ts';
import { sqlState } from '../connection/sql-errors.ts';

/*
 * Positions of `catalog-mirror follow`, by name. A name is held by the session that its row has, as long as that is
 * alive. Every statement that delivers goes over that session, so that what answers still holds the name, unless
 * somebody has taken it meanwhile: then no row is found.
 */

/** More are hardly wanted, and each has series of its own in the metrics. */
export const MAX_FOLLOWERS = 50;
/** Of one follower. A receiver that refuses as many refuses everything: what comes next waits. */
export const MAX_DEAD_LETTERS = 100;

/**
 * Postgres may notice only some seconds later that a process is dead, and until then that process seems to hold its
 * name.
 */
export const DEAD_FOR_SURE_MS = 10_000;

/** SQLSTATE: the changes after a position are no longer kept, or the position is of another history. */
export const POSITION_LOST = 'CM001';

export type FollowerProblem = 'held' | 'taken' | 'too-many' | 'unknown' | 'position-lost';

/** Why a follower cannot go on. The message says it; `hint`, what to do. */
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

/** Where a follower is. */
export interface Place {
  readonly position: bigint;
  /** While the first copy is being sent: the SKU up to which it is delivered. */
  readonly afterSku: string | null;
  /** The end of a batch that was being delivered. */
  readonly sendingTo: bigint | null;
  readonly failures: number;
  readonly refusals: number;
}

export type Delivery = 'stdout' | 'webhook';

/** Where a follower begins that has no position yet. */
export type Beginning = 'now' | 'oldest' | 'start' | bigint;

export interface FollowerOptions {
  readonly name: string;
  readonly delivery: Delivery;
  /** Null: it has begun, so that somebody who does not know the name has lost it. */
  readonly from: Beginning | null;
  /** Begin at `from` although a position is kept. */
  readonly reset: boolean;
  /** Who holds the name, for others to read. */
  readonly heldBy: string;
}

interface Row {
  readonly position: string;
  readonly after_sku: string | null;
  readonly sending_to: string | null;
  readonly failures: number;
  readonly refusals: number;
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
});

/**
 * The position that a beginning means now.
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

/** A number that no other process has held a name by. */
export async function drawHolder(client: LoneClient): Promise<string> {
  const { rows } = await client.query<{ holder: string }>(
    "select nextval('catalog_internal.claim_numbers')::text as holder",
  );
  return rows[0]?.holder ?? '';
}

/**
 * Takes the name for this session, and makes it where nobody has used it. Null: a living session of another process
 * holds it.
 *
 * @throws FollowerError `too-many`, `unknown`, `position-lost`
 */
export async function takeName(
  client: LoneClient,
  holder: string,
  { name, delivery, from, reset, heldBy }: FollowerOptions,
): Promise<Place | { readonly heldBy: string }> {
  const { pid, began } = await readOwnSession(client);
  await client.query('begin');
  try {
    // Names are made one at a time, so that they can be counted.
    await client.query('lock table catalog_internal.followers in share row exclusive mode');
    const begun =
      reset || !(await isKnown(client, name)) ? await beginningOf(client, begunAt(name, from)) : null;
    if (begun !== null) await makeName(client, name, delivery, begun);
    const { rows } = await client.query<Row>(
      `select *, holder is distinct from $2 and catalog_internal.session_lives(pid, backend_start) as is_held
       from catalog_internal.followers where name = $1`,
      [name, holder],
    );
    const row = rows[0] as Row;
    if (row.is_held) {
      await client.query('rollback');
      return { heldBy: row.held_by ?? 'another process' };
    }
    if (begun !== null && reset)
      await client.query(
        `update catalog_internal.followers set position = $2, after_sku = $3, sending_to = null,
           failures = 0, refusals = 0, failing_since = null
         where name = $1`,
        [name, String(begun), from === 'start' ? '' : null],
      );
    // What they hold is older than the copy that comes now.
    if (begun !== null && from === 'start')
      await client.query('delete from catalog_internal.dead_letters where follower = $1', [name]);
    if (begun !== null && !reset && from === 'start')
      await client.query("update catalog_internal.followers set after_sku = '' where name = $1", [name]);
    const taken = await client.query<Row>(
      `update catalog_internal.followers set holder = $2, pid = $5, backend_start = $6, held_by = $3, delivery = $4, updated_at = now()
       where name = $1 returning *`,
      [name, holder, heldBy, delivery, pid, began],
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

/** What the last delivery came to, for people. */
export interface Said {
  readonly status: number | null;
  readonly said: string | null;
}

/** A session that holds a name, and what it may write. */
export class NameHeld {
  readonly #client: LoneClient;
  readonly #name: string;
  readonly #holder: string;

  constructor(client: LoneClient, name: string, holder: string) {
    this.#client = client;
    this.#name = name;
    this.#holder = holder;
  }

  /** Before a batch that ends at `to` is delivered. */
  async sending(to: bigint): Promise<void> {
    await this.#update('sending_to = $3', [String(to)]);
  }

  /** A batch is delivered, or nothing up to there passes the filter (`said` null: nothing was sent). */
  async delivered(position: bigint, afterSku: string | null, said: Said | null): Promise<void> {
    const noted = `, failures = 0, refusals = 0, failing_since = null,
       last_status = $5, last_said = $6, last_at = clock_timestamp()`;
    await this.#update(
      `position = $3, after_sku = $4, sending_to = null, updated_at = clock_timestamp()
       ${said === null ? '' : noted}`,
      [String(position), afterSku, ...(said === null ? [] : [said.status, said.said])],
    );
  }

  /** A batch was not delivered. */
  async failed(failures: number, refusals: number, { status, said }: Said): Promise<void> {
    await this.#update(
      `failures = $3, refusals = $4, last_status = $5, last_said = $6, last_at = clock_timestamp(),
       failing_since = coalesce(failing_since, clock_timestamp())`,
      [failures, refusals, status, said],
    );
  }

  /** A batch becomes a dead letter, and the position goes on behind it; false where there are too many of them. */
  async bury(letter: {
    readonly messageId: string;
    readonly first: bigint;
    readonly last: bigint;
    readonly changes: number;
    readonly attempts: number;
    readonly body: string;
    readonly to: bigint;
    readonly afterSku: string | null;
  }): Promise<boolean> {
    const { rowCount } = await this.#client.query(
      `with buried as (
         insert into catalog_internal.dead_letters
           (follower, message_id, position_from, position_to, changes, attempts, last_status, last_said, failing_since, body)
         select name, $3, $4, $5, $6, $7, last_status, last_said, coalesce(failing_since, now()), $8 from catalog_internal.followers
         where name = $1 and holder = $2
           and (select count(*) from catalog_internal.dead_letters d where d.follower = $1) < $11
         returning follower
       )
       update catalog_internal.followers f set position = $9, after_sku = $10, sending_to = null,
         failures = 0, refusals = 0, failing_since = null,
         updated_at = clock_timestamp()
       from buried where f.name = buried.follower`,
      [
        this.#name,
        this.#holder,
        letter.messageId,
        String(letter.first),
        String(letter.last),
        letter.changes,
        letter.attempts,
        letter.body,
        String(letter.to),
        letter.afterSku,
        MAX_DEAD_LETTERS,
      ],
    );
    return rowCount !== 0;
  }

  /** Gives the name back, so that the next process need not wait. */
  async release(): Promise<void> {
    await this.#client.query(
      `update catalog_internal.followers set holder = null, pid = null, backend_start = null, held_by = null
       where name = $1 and holder = $2`,
      [this.#name, this.#holder],
    );
  }

  async #update(set: string, values: readonly unknown[]): Promise<void> {
    const { rowCount } = await this.#client.query(
      `update catalog_internal.followers set ${set} where name = $1 and holder = $2`,
      [this.#name, this.#holder, ...values],
    );
    if (rowCount === 0)
      throw new FollowerError(
        'taken',
        `another process follows as ${this.#name} now, or somebody has forgotten this follower`,
        'see `catalog-mirror follow --list`; let one process follow under a name',
      );
  }
}

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
