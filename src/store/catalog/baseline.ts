import { finished } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { failpoint } from '../../lib/failpoint.ts';
import { orEnd } from '../connection/answer-limit.ts';
import {
  answerLimitOf,
  askAfter,
  connectAlone,
  type DatabaseUrl,
  type LoneClient,
  SCAN_WITHIN_MS,
  type Sql,
  TRANSACTION_TRIES,
} from '../connection/db.ts';
import { boundMirror, ownMirror, refuseMirror, PRESENT_SERVER } from '../connection/own-mirror.ts';
import { isConflict, isConnectionLost, sqlState } from '../connection/sql-errors.ts';
import {
  type BaselineApplied,
  BaselineSuperseded,
  type BaselineToken,
  mergeStaged,
  type Run,
} from './baseline-merge.ts';
import * as compare from './compare-sql.ts';
import { copyText, type StagedLine } from './compare-sql.ts';

export interface StagedCounts {
  /** Distinct SKUs staged. */
  readonly skus: number;
  /** SKUs with more than one line. */
  readonly duplicates: number;
  /** Lines of live SKUs. */
  readonly live: number;
  readonly listedBefore: number;
}

interface ComparedCounts {
  readonly listedBefore: number;
  /** Listed SKUs without a line. */
  readonly absent: number;
  /** SKUs with lines that the mirror does not count as listed, and the number of their lines. */
  readonly unlisted: number;
  readonly unlistedLines: number;
}

const COPY_BYTES = 256 * 1024;
const UNIQUE_VIOLATION = '23505';

/** Whether it is a conflict, or a SKU was inserted without our locks: by an older daemon, or manually. */
const isRetryable = (error: unknown): boolean => isConflict(error) || sqlState(error) === UNIQUE_VIOLATION;

/**
 * One manifest on its way into the mirror: COPY stages its lines in a temporary table, invisible to all other
 * sessions, and one transaction merges them at the end. Closing it at any moment before that leaves the mirror as it
 * was. Uses a connection of its own, through the `pg` driver, whose COPY survives a server that rejects after the end
 * of data.
 */
export class Baseline {
  readonly #client: LoneClient;
  readonly #databaseUrl: DatabaseUrl;
  /** The daemon's pool, which is bound to the account that it mirrors. */
  readonly #pool: Sql | undefined;
  #staged = 0;
  #live = 0;
  /** Rows in COPY's text format that are yet to be sent: the first `#filled` bytes. */
  #rows = Buffer.allocUnsafeSlow(COPY_BYTES);
  #filled = 0;
  /** Rows being sent, so that lines are read here while Postgres stores the previous ones. */
  #sending = Promise.resolve();
  /** When a manifest was last applied before this one was asked for; null if never, or not read yet. */
  #appliedBefore: string | null = null;
  #sentRows = Buffer.allocUnsafeSlow(COPY_BYTES);

  private constructor(client: LoneClient, databaseUrl: DatabaseUrl, pool: Sql | undefined) {
    this.#client = client;
    this.#pool = pool;
    this.#databaseUrl = databaseUrl;
  }

  /**
   * Opens a connection whose statements may take any time; `aside` is the pool asked whether Postgres is at work on
   * one.
   */
  static async open(databaseUrl: DatabaseUrl, aside?: Sql): Promise<Baseline> {
    const client = await openManifestConnection(databaseUrl, aside === undefined ? {} : answerLimitOf(aside));
    await orEnd(client, async () => {
      if (aside === undefined) client.answers.withinMs = SCAN_WITHIN_MS;
      else await askAfter(client, aside);
      await client.query(compare.CREATE_STAGING);
    });
    return new Baseline(client, databaseUrl, aside);
  }

  /** Reads database time and the present token; to be called before the manifest is asked for. */
  async moment(): Promise<{ at: Date; token: string | null }> {
    const { rows } = await this.#client.query<{ at: Date; token: string | null; applied: string | null }>(
      'select clock_timestamp() as at, snapshot_id as token, manifest_applied_at::text as applied from catalog_internal.sync',
    );
    const { at, token, applied } = rows[0] as (typeof rows)[number];
    this.#appliedBefore = applied;
    return { at, token };
  }

  /** Stages lines, and the SKUs of rejected lines, whose rows stay as they are and which are asked about. */
  async stage(lines: readonly StagedLine[], rejectedSkus: readonly string[]): Promise<void> {
    this.#staged += lines.length;
    for (const { priceSource } of lines) this.#live += Number(priceSource === 'live');
    // Written at once into one buffer: rows waiting on the heap would make it grow for good.
    const text = lines.map(copyText).join('');
    const bytes = Buffer.byteLength(text);
    if (this.#filled + bytes > this.#rows.length) await this.#sendFilled();
    if (bytes > this.#rows.length) await this.#send(Buffer.from(text));
    else this.#filled += this.#rows.write(text, this.#filled);
    if (rejectedSkus.length > 0) {
      await this.#sending;
      await this.#client.query('insert into rejected_skus select unnest($1::text[])', [rejectedSkus]);
    }
  }

  /** Sends the filled buffer once the previous one has arrived, and continues in that one, which is then free. */
  async #sendFilled(): Promise<void> {
    const rows = this.#rows;
    const filled = rows.subarray(0, this.#filled);
    await this.#sending;
    [this.#rows, this.#sentRows, this.#filled] = [this.#sentRows, rows, 0];
    if (filled.length > 0) await this.#send(filled);
  }

  /** Starts to send rows once the previous ones have arrived. An error on the way is thrown by the next wait. */
  async #send(rows: Buffer): Promise<void> {
    await this.#sending;
    this.#sending = this.#copy(rows);
    this.#sending.catch(() => {});
  }

  /**
   * Runs one COPY per piece: one for the whole file would hold back VACUUM everywhere for as long as the download
   * takes. When it is done, the rows have been sent and their buffer is free.
   */
  async #copy(rows: Buffer): Promise<void> {
    const copy = this.#client.query(copyFrom(compare.COPY_STAGING));
    copy.end(rows);
    await finished(copy);
  }

  /** Compares the staged lines with the mirror, one line per SKU, and counts. Call this once, after the last line. */
  async count(): Promise<StagedCounts> {
    await this.#sendFilled();
    await this.#sending;
    const compared = await this.#compare();
    const { listedBefore, absent, unlisted, unlistedLines } = compared;
    const doubled = unlisted < unlistedLines || this.#staged - unlistedLines !== listedBefore - absent;
    let duplicates = 0;
    let skus = this.#staged;
    if (doubled) {
      await this.#client.query('drop table differing');
      duplicates = (await this.#client.query(compare.NOTE_DUPLICATES)).rowCount ?? 0;
      skus -= (await this.#client.query(compare.DROP_DUPLICATES)).rowCount ?? 0;
      await this.#compare();
    }
    await this.#client.query('drop table staging; analyze differing');
    return { skus, duplicates, live: this.#live, listedBefore };
  }

  async #compare(): Promise<ComparedCounts> {
    await this.#client.query(compare.BEGIN_COMPARE);
    await this.#client.query(compare.COMPARE);
    const { rows } = await this.#client.query<ComparedCounts>(compare.COUNT_COMPARED);
    await this.#client.query('commit');
    return rows[0] as ComparedCounts;
  }

  /**
   * Merges the staged lines, marks what must be priced, and moves the token, all in one transaction; repeats it from
   * its start if a deadlock or conflict ended it.
   */
  async merge(token: BaselineToken): Promise<BaselineApplied> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#mergeOnce(token);
      } catch (error) {
        // On a lost connection there is nothing to roll back; the error that reports the loss is the one to throw.
        await this.#client.query('rollback').catch(() => {});
        if (attempt >= TRANSACTION_TRIES || !isRetryable(error)) throw error;
      }
    }
  }

  async #mergeOnce(token: BaselineToken): Promise<BaselineApplied> {
    const run: Run = (text, values = []) => this.#client.query(text, values);
    await run('begin');
    // Whether it is superseded is judged only with the lock held: a condition of the locking statement itself would
    // not wait for another merge, whose manifest is not visible yet. Times alone do not decide, because a manifest is
    // dated by the start of its transaction.
    await run('select from catalog_internal.sync for update');
    const server = await this.#confirm(run, token);
    const applied = await mergeStaged(run, token, this.#live);
    const { rows: transactions } = await run('select pg_current_xact_id()::text as id');
    const { id } = transactions[0] as { id: string };
    failpoint('manifest.token-moved');
    try {
      await run('commit');
    } catch (error) {
      const answered = error instanceof pg.DatabaseError && !isConnectionLost(error);
      if (answered || !(await this.#committed(id, server).catch(() => false))) throw error;
    }
    return applied;
  }

  /** Refuses another account's mirror and an outdated manifest; returns the server that it is merged on. */
  async #confirm(run: Run, { requestedAt, server: seenOn }: BaselineToken): Promise<string> {
    const pool = this.#pool;
    const { rows } = await run(
      `select ${PRESENT_SERVER} as server, ${ownMirror('$3')} as own, exists (
        select from catalog_internal.sync where manifest_applied_at > $1 or manifest_applied_at::text is distinct from $2
      ) as superseded`,
      [requestedAt, this.#appliedBefore, pool === undefined ? null : boundMirror(pool)],
    );
    const { server, own, superseded } = rows[0] as { server: string; own: boolean; superseded: boolean };
    if (pool !== undefined && !own) refuseMirror(pool);
    if (superseded || (seenOn ?? server) !== server) throw new BaselineSuperseded();
    return server;
  }

  /**
   * Returns whether a transaction whose COMMIT went unanswered was committed, read over a connection of its own. False
   * if another server answers, such as a standby promoted since, because the number may be another transaction's
   * there.
   */
  async #committed(transaction: string, server: string): Promise<boolean> {
    const client = await openManifestConnection(this.#databaseUrl);
    try {
      // The transaction's first row lock is released only when it has ended one way or the other.
      await client.query('select from catalog_internal.sync for share');
      const { rows } = await client.query<{ committed: boolean }>(
        `select case when ${PRESENT_SERVER} = $2 then pg_xact_status($1::xid8) = 'committed' end as committed`,
        [transaction, server],
      );
      return rows[0]?.committed === true;
    } finally {
      await client.end().catch(() => {});
    }
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => {});
  }
}

const openManifestConnection = (
  databaseUrl: DatabaseUrl,
  limit: ReturnType<typeof answerLimitOf> = {},
): Promise<LoneClient> =>
  connectAlone(databaseUrl, { application_name: 'catalog-mirror manifest', ...limit });
