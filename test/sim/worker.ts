import type { Sql, Tx } from '../../src/store/connection/db.ts';

/** The process ended here, and whatever it had in memory is gone. */
export class Crash extends Error {
  override readonly name = 'Crash';
}

/** What happens to a replica's statements, as decided by the seed. */
export interface Fortune {
  /** Decides whether the scheduler takes over before this statement. */
  pauses(): boolean;
  /** Statements, including parts of transactions, after which the process ends. */
  readonly lifetime: number;
  /** Decides how a transaction ends. */
  commit(): 'done' | 'conflict' | 'unanswered';
  /**
   * Decides whether the connection goes silent at this statement: before Postgres receives it, or with the answer.
   */
  statement(): 'answered' | 'silent before' | 'silent after';
  /** Waits until a statement without an answer is given up. */
  silence(): Promise<void>;
}

/** Creates an error like those of Postgres or the driver. */
function storeError(code: string): Error {
  return Object.assign(new Error(`injected ${code}`), { code });
}

/** Codes of errors on connections that a failover ends. */
const ENDED: ReadonlySet<unknown> = new Set(['57P01', 'CONNECTION_CLOSED', 'CONNECTION_ENDED']);

/** Decides whether an error was injected into a replica. */
export function isInjected(error: unknown): boolean {
  if (error instanceof Crash) return true;
  if (!(error instanceof Error)) return false;
  return error.message.startsWith('injected ') || ENDED.has((error as { code?: unknown }).code);
}

type Waiting = { readonly go: () => void };

/** A daemon's process, with which all its workers end. */
export interface Daemon {
  alive: boolean;
  statements: number;
  readonly fortune: Fortune;
  /** How many milliseconds the clock of its machine is ahead. */
  readonly host: { ahead: number };
}

/**
 * A worker of a daemon, with a connection of its own. It runs one job at a time, only while the scheduler lets it.
 * It stops before statements if its fortune says so, and wherever it waits for the partner.
 */
export class Worker {
  readonly name: string;
  readonly sql: Sql;
  readonly daemon: Daemon;
  #job: Promise<void> | null = null;
  #gates: Waiting[] = [];
  #answers: (() => void)[] = [];
  #underWay = 0;
  #awaiting = 0;
  #wake: () => void = () => {};

  constructor(name: string, sql: Sql, daemon: Daemon) {
    this.name = name;
    this.daemon = daemon;
    this.sql = this.#gated(sql);
  }

  get busy(): boolean {
    return this.#job !== null;
  }

  /** Whether it has stopped before a statement and can continue. */
  get paused(): boolean {
    return this.#gates.length > 0;
  }

  /** Starts a job and runs it until it stops. */
  async start(job: () => Promise<void>): Promise<void> {
    this.#job = job().finally(() => {
      this.#job = null;
      this.#wake();
    });
    // `rest` waits for it, and a job handles its own errors.
    this.#job.catch(() => {});
    await this.#untilStill();
  }

  /** Continues from the statement before which it has stopped. */
  async go(): Promise<void> {
    for (const { go } of this.#gates.splice(0)) go();
    await this.#untilStill();
  }

  /** Ends with its process: nothing that it has begun will finish. */
  async end(): Promise<void> {
    this.daemon.alive = false;
    for (const { go } of this.#gates.splice(0)) go();
    for (const end of this.#answers.splice(0)) end();
    await this.#untilStill();
  }

  /** Waits for something outside, and continues with it. Rejects if the process ends first. */
  async answer<T>(register: (deliver: (value: T) => Promise<void>) => void): Promise<T> {
    this.#mustLive();
    this.#awaiting += 1;
    try {
      return await new Promise<T>((resolve, reject) => {
        this.#answers.push(() => reject(new Crash()));
        register(async (value) => {
          resolve(value);
          await this.#untilStill();
        });
        this.#wake();
      });
    } finally {
      this.#awaiting -= 1;
    }
  }

  async #untilStill(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => void setImmediate(resolve));
      const stopped = !this.busy || this.paused || this.#awaiting > 0;
      if (stopped && this.#underWay === 0) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        const over = !this.busy || this.paused || this.#awaiting > 0;
        if (over && this.#underWay === 0) resolve();
      });
    }
  }

  #mustLive(): void {
    const { daemon } = this;
    if (daemon.statements >= daemon.fortune.lifetime) daemon.alive = false;
    if (!daemon.alive) throw new Crash();
  }

  async #pass(): Promise<void> {
    this.daemon.statements += 1;
    this.#mustLive();
    if (!this.daemon.fortune.pauses()) return;
    await new Promise<void>((go) => {
      this.#gates.push({ go });
      this.#wake();
    });
    this.#mustLive();
  }

  async #during<T>(work: Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      return await work;
    } finally {
      this.#underWay -= 1;
      setImmediate(() => this.#wake());
    }
  }

  #gated(sql: Sql): Sql {
    const begin = async (work: (tx: Tx) => Promise<unknown>) => {
      await this.#pass();
      const fate = this.daemon.fortune.commit();
      const result = await this.#during(
        sql.begin(async (tx) => {
          const worked = await work(this.#within(tx));
          this.#mustLive();
          if (fate === 'conflict') throw storeError('40001');
          return worked;
        }),
      );
      if (fate === 'unanswered') throw storeError('CONNECTION_CLOSED');
      return result;
    };
    return intercepted(sql, (run) => this.#pass().then(() => this.#during(this.#answered(run))), { begin });
  }

  async #answered(run: Run): Promise<unknown> {
    const luck = this.daemon.fortune.statement();
    const result = luck === 'silent before' ? null : await run();
    if (luck === 'answered') return result;
    await this.daemon.fortune.silence();
    throw storeError('ANSWER_TIMEOUT');
  }

  #within(tx: Tx): Tx {
    return intercepted(tx, async (run) => {
      this.daemon.statements += 1;
      this.#mustLive();
      return await run();
    });
  }
}

type Run = () => Promise<unknown>;

/** Returns the same client, whose statements run when `before` lets them. */
function intercepted<S extends Sql | Tx>(
  sql: S,
  before: (run: Run) => Promise<unknown>,
  own: Readonly<Record<string, unknown>> = {},
): S {
  const handler: ProxyHandler<S> = {
    apply(target, self, args: unknown[]) {
      const query: unknown = Reflect.apply(target as never, self, args);
      const isStatement = Array.isArray(args[0]) && 'raw' in args[0];
      return isStatement ? held(query as Promise<unknown>, before) : query;
    },
    get: (target, key) => own[key as string] ?? Reflect.get(target, key),
  };
  return new Proxy(sql, handler);
}

/**
 * Holds a statement back until it is awaited and `before` lets it run. Until then it may be part of another
 * statement.
 */
function held(query: Promise<unknown>, before: (run: Run) => Promise<unknown>): Promise<unknown> {
  const send = query.then.bind(query);
  const run: Run = () => new Promise((resolve, reject) => void send(resolve, reject));
  const then: Promise<unknown>['then'] = (onValue, onError) => before(run).then(onValue, onError);
  Reflect.set(query, 'then', then);
  return query;
}
