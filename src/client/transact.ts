import type { Sql, TransactionSql } from 'postgres';
import { isConnectionLost } from '../store/connection/sql-errors.ts';

/*
 * Transactions over a client of somebody else's, whose driver may be the published postgres.js. When a connection
 * is lost, that driver ends the transaction but leaves the work running. What the work still sends, and the COMMIT
 * or ROLLBACK after it, goes into whatever transaction the connection serves next, and statements that were under
 * way may stay unanswered for ever.
 */

/** A statement of the driver, sent by its `handler` and cancelled by its `canceller`. */
interface Statement {
  canceller?: ((statement: Statement) => unknown) | null;
  handler: (statement: Statement) => unknown;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

const isStatement = (made: unknown): made is Statement =>
  made instanceof Promise && 'handler' in made && typeof made.handler === 'function';

type Callable = (...given: unknown[]) => unknown;

/** The statements of one transaction. Refuses any after its end, and rejects those that are unanswered then. */
class Transaction {
  /** A statement has failed outside of any savepoint: the driver will roll back. */
  hasFailed = false;
  readonly #sent = new Set<Statement>();
  readonly #ended = Promise.withResolvers<never>();
  #end: { readonly error: unknown } | null = null;

  constructor() {
    // Perhaps nobody awaits it.
    this.#ended.promise.catch(() => {});
  }

  get isOver(): boolean {
    return this.#end !== null;
  }

  /** Rejects with the error that has ended the transaction. */
  get ended(): Promise<never> {
    return this.#ended.promise;
  }

  end(error: unknown): void {
    if (this.#end !== null) return;
    this.#end = { error };
    for (const statement of this.#sent) statement.reject(error);
    this.#sent.clear();
    this.#ended.reject(error);
  }

  /** Asks Postgres to cancel the statements under way. They reject; the transaction itself does not end. */
  cancel(): void {
    for (const statement of this.#sent) {
      const { canceller } = statement;
      // Like the driver's own `cancel`, which ignores what becomes of the connection that it makes: nobody could
      // catch the error if that is refused or reset.
      statement.canceller = null;
      Promise.resolve(canceller?.(statement)).catch(() => {});
    }
  }

  /** Returns `tx` with statements that are refused once this transaction has ended. */
  guard(tx: TransactionSql, isSavepoint = false): TransactionSql {
    const made = (result: unknown) => (isStatement(result) ? this.#watch(result, isSavepoint) : result);
    return new Proxy(tx, {
      apply: (target, self, given) => made(Reflect.apply(target as unknown as Callable, self, given)),
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (name === 'savepoint') return this.#savepoint(target);
        if (name !== 'unsafe' && name !== 'file') return value;
        return (...given: unknown[]) => made((value as Callable)(...given));
      },
    });
  }

  /** Settles like `work` while the transaction lives, and never after that, so that the driver sends nothing more. */
  settle<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      work.then(
        (result) => this.isOver || resolve(result),
        (error: unknown) => this.isOver || reject(error as Error),
      );
    });
  }

  #savepoint(tx: TransactionSql): Callable {
    return (...given) => {
      // The driver sends statements of its own for a savepoint.
      if (this.isOver) return this.ended;
      const work = given.pop() as (tx: TransactionSql) => unknown;
      const guarded = (inner: TransactionSql) => this.settle(workOf(() => work(this.guard(inner, true))));
      const saved = (tx.savepoint as unknown as Callable)(...given, guarded) as Promise<unknown>;
      return Promise.race([saved, this.ended]);
    };
  }

  /** Follows a statement. It is sent when somebody awaits it, which may be later than it is created. */
  #watch(statement: Statement, isSavepoint: boolean): Statement {
    const send = statement.handler;
    statement.handler = (sent) => {
      if (this.#end !== null) return sent.reject(this.#end.error);
      const { resolve, reject } = sent;
      this.#sent.add(sent);
      sent.resolve = (result) => {
        this.#sent.delete(sent);
        resolve(result);
      };
      sent.reject = (error) => {
        this.#sent.delete(sent);
        this.hasFailed ||= !isSavepoint;
        reject(error);
        // Noticed here first, so that the work does not answer the error with another statement.
        if (isConnectionLost(error)) this.end(error);
      };
      return send(sent);
    };
    return statement;
  }
}

/** Awaits a function's result like the driver: an array element by element. */
export async function workOf(work: () => unknown): Promise<unknown> {
  const result = await work();
  return Array.isArray(result) ? await Promise.all(result) : result;
}

class Over extends Error {
  override readonly name = 'Over';
  readonly code = 'TRANSACTION_OVER';

  constructor() {
    super('the transaction is over');
  }
}

/**
 * Settings of the transaction. Without the first, a server that ends idle transactions would end each one of a slow
 * receiver. The keep-alives make a session whose host is gone hold the position's lock for a minute, not for hours.
 */
const SETTINGS = `
  select set_config('idle_in_transaction_session_timeout', '0', true), set_config('tcp_keepalives_idle', '30', true),
    set_config('tcp_keepalives_interval', '10', true), set_config('tcp_keepalives_count', '3', true)`;

/** A transaction that is under way. */
export interface Underway {
  /** Returns whether its connection was lost. */
  readonly isLost: () => boolean;
  /** Asks Postgres to cancel the current statement. */
  readonly cancel: () => void;
}

/** Leaves an empty transaction for the driver to end. */
const COMMIT = 'commit; begin';

/**
 * Runs `work` in a transaction. After its connection is lost, nothing of the work reaches Postgres any more, and
 * this rejects once the work has ended. `commits`: the driver's own COMMIT cannot be relied on.
 */
export async function transact<T>(
  sql: Sql,
  work: (tx: TransactionSql, under: Underway) => Promise<T>,
  commits = false,
): Promise<T> {
  const transaction = new Transaction();
  let working: Promise<T> | null = null;
  const begun = sql.begin((tx) => {
    const guarded = transaction.guard(tx);
    working = (async () => {
      await guarded.unsafe(SETTINGS);
      const under = { isLost: () => transaction.isOver, cancel: () => transaction.cancel() };
      const result = await work(guarded, under);
      if (commits && !transaction.hasFailed) await guarded.unsafe(COMMIT);
      return result;
    })();
    return transaction.settle(working);
  }) as Promise<T>;
  begun.catch((error: unknown) => transaction.end(error));
  try {
    return await Promise.race([begun, transaction.ended]);
  } finally {
    transaction.end(new Over());
    await (working as Promise<T> | null)?.catch(() => {});
  }
}
