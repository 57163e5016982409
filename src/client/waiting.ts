import type { Sql } from 'postgres';

const CHANNEL = 'catalog_changes';
/** Without notifications. */
const POLL_UNHEARD_MS = 5000;

/** Waits for news: a notification, the next poll, or the end. */
export interface News {
  /** Resolves as soon as something may be new, or `signal` aborts. */
  wait(): Promise<void>;
  close(): Promise<void>;
}

/**
 * A standby refuses LISTEN, and the driver remembers a refusal, and each listener, for as long as its connection
 * lives: also beyond a promotion.
 */
async function takesListeners(sql: Sql): Promise<boolean> {
  const rows = await sql
    .unsafe('select pg_is_in_recovery()::text')
    .values()
    .catch(() => []);
  return (rows as unknown[][])[0]?.[0] === 'false';
}

/**
 * Listens for notifications of changes. Where that cannot be done, as behind a pooler, or no longer, it polls more
 * often, and tries to listen again with each poll: the driver gives up after one try. On a standby it does not try.
 * `sleep` ends early, without an error, when its signal aborts.
 */
export function listenForNews(
  sql: Sql,
  {
    pollMs,
    sleep,
    signal,
  }: {
    readonly pollMs: number;
    readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
    readonly signal: AbortSignal | undefined;
  },
): News {
  let isNews = false;
  let isPolled = false;
  let wake = () => {};
  const tell = () => {
    isNews = true;
    wake();
  };
  let listening: { unlisten(): Promise<void> } | null = null;
  const listen = async () => {
    const before = listening;
    // Once it listens there may be what nobody has told of.
    listening = (await takesListeners(sql)) ? await sql.listen(CHANNEL, tell, tell).catch(() => null) : null;
    // Not sooner, or the driver would stop listening in between.
    await before?.unlisten().catch(() => {});
  };
  return {
    async wait() {
      if (listening === null || isPolled) await listen();
      const over = new AbortController();
      const stop = () => over.abort();
      wake = stop;
      signal?.addEventListener('abort', stop, { once: true });
      const ms = listening === null ? Math.min(pollMs, POLL_UNHEARD_MS) : pollMs;
      if (!isNews && signal?.aborted !== true) await sleep(ms, over.signal);
      signal?.removeEventListener('abort', stop);
      isPolled = !over.signal.aborted && !isNews;
      isNews = false;
    },
    async close() {
      await listening?.unlisten().catch(() => {});
    },
  };
}
