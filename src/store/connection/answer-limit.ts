import { Writable } from 'node:stream';
import type pg from 'pg';

/** How long Postgres may take for a statement until its connection counts as dead. */
export interface AnswerLimit {
  withinMs: number;
  /**
   * Asked after `withinMs`, on another connection: whether Postgres is still at work on the statement, which then gets
   * as long again. Rejects if that is unknown, for example because the other connection does not answer either; then
   * it is asked again soon.
   */
  isWorking: (() => Promise<boolean>) | null;
}

const ASK_AGAIN_MS = 1000;
/** A server that is reachable closes a connection within milliseconds of the client's request. */
const CLOSE_WITHIN_MS = 1000;

type Send = (...statement: readonly unknown[]) => unknown;

/**
 * Closes the client's connection if one of its statements, also a COPY into Postgres, is not answered in time. All
 * statements in progress then fail with the code ANSWER_TIMEOUT. (`query_timeout` of the driver fails the statement and
 * keeps the connection, on which the next one would wait behind it.) Returns a function that says whether a statement
 * is in progress.
 */
export function dropUnanswered(client: pg.Client, limit: AnswerLimit): () => boolean {
  let underWay = 0;
  const send = client.query.bind(client) as Send;
  client.query = ((...statement: readonly unknown[]) => {
    const sent = send(...statement);
    underWay += 1;
    const { withinMs, isWorking } = limit;
    let isAnswered = false;
    const drop = async () => {
      const isAtWork = isWorking !== null && (await isWorking().catch(() => null));
      if (isAnswered) return;
      if (isAtWork !== false) {
        timer = setTimeout(() => void drop(), isAtWork ? withinMs : Math.min(withinMs, ASK_AGAIN_MS));
        return;
      }
      const error = new Error(`Postgres has not answered a statement within ${withinMs} ms`);
      client.connection.stream.destroy(Object.assign(error, { code: 'ANSWER_TIMEOUT' }));
    };
    let timer = setTimeout(() => void drop(), withinMs);
    const answered = () => {
      if (isAnswered) return;
      isAnswered = true;
      underWay -= 1;
      clearTimeout(timer);
    };
    if (sent instanceof Writable)
      sent.once('close', answered).once('finish', answered).once('error', answered);
    else void Promise.resolve(sent).then(answered, answered);
    return sent;
  }) as typeof client.query;
  return () => underWay > 0;
}

/**
 * Runs `work` before the caller gets the connection. If it fails, ends the connection: no other code could, and no
 * timeout of a session (SESSION) would.
 */
export async function orEnd<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
}

/**
 * Closes the client's connection if the server does not when asked to: the driver's `end` would wait for that forever.
 */
export function endSoon(client: pg.Client): void {
  const end = client.end.bind(client);
  client.end = ((...told: Parameters<typeof end>) => {
    const timer = setTimeout(() => client.connection.stream.destroy(), CLOSE_WITHIN_MS);
    client.once('end', () => clearTimeout(timer));
    return end(...told);
  }) as typeof client.end;
}
