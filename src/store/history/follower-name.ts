import type { LoneClient } from '../connection/db.ts';
import { FollowerError, type Holder, type Place } from './followers.ts';

/** For one follower. A receiver that refuses this many batches refuses everything, so later ones wait. */
export const MAX_DEAD_LETTERS = 100;

/** The result of the last delivery, for people. */
export interface Said {
  readonly status: number | null;
  readonly said: string | null;
}

/**
 * Whether a row is still this session's. Its number alone does not tell: after a restore another process may draw it
 * again.
 */
const IS_MINE = 'name = $1 and holder = $2 and pid = $3 and backend_start = $4';

/** A session that holds a name, and what it may write. */
export class NameHeld {
  readonly #client: LoneClient;
  readonly #name: string;
  readonly #mine: readonly unknown[];

  constructor(client: LoneClient, name: string, { number, sessions }: Holder) {
    this.#client = client;
    this.#name = name;
    this.#mine = [name, number, sessions.at(-1)?.pid, sessions.at(-1)?.began];
  }

  /** Notes that a batch whose last change is at `to` is about to be delivered. The counts are of this batch only. */
  async sending(to: bigint, { failures, refusals }: Pick<Place, 'failures' | 'refusals'>): Promise<void> {
    await this.#update(
      `sending_to = $5, failures = $6, refusals = $7,
       failing_since = case when $6 = 0 then null else failing_since end,
       clock_failing_since = case when $6 = 0 then null else clock_failing_since end`,
      [String(to), failures, refusals],
    );
  }

  /** Notes that a batch is delivered, or that nothing up to there passes the filter (`said` null). */
  async delivered(position: bigint, afterSku: string | null, said: Said | null): Promise<void> {
    const noted = ', last_status = $7, last_said = $8, last_at = clock_timestamp()';
    await this.#update(
      `position = $5, after_sku = $6, sending_to = null, updated_at = clock_timestamp(),
       failures = 0, refusals = 0, failing_since = null, clock_failing_since = null ${said === null ? '' : noted}`,
      [String(position), afterSku, ...(said === null ? [] : [said.status, said.said])],
    );
  }

  /** Notes that a batch was not delivered; `isByClock`: because a clock is wrong. */
  async failed(
    failures: number,
    refusals: number,
    { status, said, isByClock = false }: Said & { readonly isByClock?: boolean },
  ): Promise<void> {
    await this.#update(
      `failures = $5, refusals = $6, last_status = $7, last_said = $8, last_at = clock_timestamp(),
       failing_since = coalesce(failing_since, clock_timestamp()),
       clock_failing_since = coalesce(clock_failing_since, case when $9 then clock_timestamp() end)`,
      [failures, refusals, status, said, isByClock],
    );
  }

  /**
   * Makes a batch a dead letter and moves the position past it. Returns false if there are too many, or the name is
   * lost.
   */
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
         select name, $5, $6, $7, $8, $9, last_status, last_said, coalesce(failing_since, now()), $10 from catalog_internal.followers
         where ${IS_MINE}
           and (select count(*) from catalog_internal.dead_letters d where d.follower = $1) < $13
         returning follower
       )
       update catalog_internal.followers f set position = $11, after_sku = $12, sending_to = null,
         failures = 0, refusals = 0, failing_since = null, clock_failing_since = null,
         updated_at = clock_timestamp()
       from buried where f.name = buried.follower`,
      [
        ...this.#mine,
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

  /** Releases the name, so that the next process need not wait. */
  async release(): Promise<void> {
    await this.#client.query(
      `update catalog_internal.followers set holder = null, pid = null, backend_start = null, held_by = null
       where ${IS_MINE}`,
      [...this.#mine],
    );
  }

  async #update(set: string, values: readonly unknown[]): Promise<void> {
    const { rowCount } = await this.#client.query(
      `update catalog_internal.followers set ${set} where ${IS_MINE}`,
      [...this.#mine, ...values],
    );
    if (rowCount === 0)
      throw new FollowerError(
        'taken',
        `another process follows as ${this.#name} now, or somebody has forgotten this follower`,
        'see `catalog-mirror follow --list`; let one process follow under a name',
      );
  }
}
