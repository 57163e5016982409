import { hostname } from 'node:os';
import { backOffMs } from '../../follow/delivery.ts';
import { type End, follow, type Following } from '../../follow/follower.ts';
import { connectAlone, type LoneClient } from '../../store/connection/db.ts';
import { isLockNotAvailable } from '../../store/connection/locks.ts';
import {
  DEATH_NOTICED_WITHIN_MS,
  type OwnSession,
  readOwnSession,
} from '../../store/connection/own-session.ts';
import { remedyOf } from '../../store/connection/remedies.ts';
import {
  DatabaseAway,
  isAnswer,
  isConflict,
  isConnectionLost,
  storeFailure,
} from '../../store/connection/sql-errors.ts';
import { checkNotSetBack, checkReached, newestOf } from '../../store/history/feed.ts';
import { NameHeld } from '../../store/history/follower-name.ts';
import {
  beginningOf,
  type Delivery,
  drawHolder,
  FollowerError,
  followerSession,
  noteLineage,
  type Place,
  takeName,
} from '../../store/history/followers.ts';
import type { Follow } from './wanted.ts';

export interface Lifetime extends Omit<Following, 'client' | 'held'> {
  readonly wanted: Follow;
  /** Returns the current URL of Postgres, which may have changed. */
  readonly url: () => Promise<string>;
  readonly started: (place: Place, delivery: Delivery) => void;
  readonly storeLost: (error: unknown, retryInMs: number) => void;
  readonly storeBack: () => void;
}

const CHECK_MS = 15_000;
const RETAKE_MS = 250;
/** How many sessions are remembered, because Postgres may still consider lost ones alive. */
const OWN_SESSIONS = 100;

/**
 * Follows until it is told to stop, over as many sessions as it takes. Once it has followed, it waits for a Postgres
 * that is away; with `once`, for as many tries as for a receiver. Returns why it ended, and the place.
 *
 * @throws FollowerError; errors of connecting, if it has not followed yet; DatabaseAway
 */
export async function followOn(life: Lifetime): Promise<{ readonly end: End; readonly place: Place | null }> {
  const { clock, stopped, random, once, attempts } = life;
  const known: Known = { place: null, number: null, sessions: [] };
  let isAway = false;
  let failures = 0;
  // A Postgres that can be reached but not read is not back, so each wait for it is longer. So is each wait for one
  // that is lost again before it has stored anything.
  const hasRead = () => {
    if (isAway) life.storeBack();
    isAway = false;
  };
  const hasKept = () => {
    failures = 0;
  };
  for (;;) {
    const session: Session = { client: null, ended: false };
    try {
      const end = await orGivenUp(followOnce(life, known, session, { hasRead, hasKept }), life.patience);
      return { end, place: known.place };
    } catch (error) {
      if (stopped.aborted) return { end: 'stopped', place: known.place };
      if (known.place === null || error instanceof FollowerError || !mayPass(error, session)) throw error;
      isAway = true;
      failures += 1;
      if (once && failures >= attempts)
        throw isAnswer(error) ? error : new DatabaseAway(error, remedyOf(error));
      const retryInMs = backOffMs(failures, null, random());
      life.storeLost(error, retryInMs);
      await clock.sleep(retryInMs, stopped);
      if (stopped.aborted) return { end: 'stopped', place: known.place };
    } finally {
      await session.client?.end().catch(() => {});
    }
  }
}

/** Returns how `following` ends, or stops once patience runs out, so that a hanging Postgres does not delay the end. */
async function orGivenUp(following: Promise<End>, patience: AbortSignal): Promise<End> {
  const { promise, resolve } = Promise.withResolvers<End>();
  const giveUp = () => resolve('stopped');
  patience.addEventListener('abort', giveUp, { once: true });
  if (patience.aborted) giveUp();
  try {
    return await Promise.race([following, promise]);
  } finally {
    patience.removeEventListener('abort', giveUp);
  }
}

/** What outlives a session: the place, and the identity by which it holds its name. */
interface Known {
  place: Place | null;
  number: string | null;
  sessions: OwnSession[];
}

interface Session {
  client: LoneClient | null;
  ended: boolean;
}

/**
 * Returns whether waiting may help: the session is gone or was not made, or Postgres takes no writes for the moment.
 */
function mayPass(error: unknown, { client, ended }: Session): boolean {
  return (
    client === null ||
    ended ||
    isConnectionLost(error) ||
    storeFailure(error) !== null ||
    isConflict(error) ||
    isLockNotAvailable(error)
  );
}

async function followOnce(
  life: Lifetime,
  known: Known,
  session: Session,
  told: Pick<Following, 'hasRead' | 'hasKept'>,
): Promise<End> {
  const { wanted } = life;
  const client = await connectAlone(await life.url(), {
    application_name: followerSession(wanted.name),
    checkIdleMs: CHECK_MS,
  });
  if (life.patience.aborted) {
    await client.end().catch(() => {});
    return 'stopped';
  }
  session.client = client;
  // If the session ends while it is idle, the driver refuses further statements with an error that has no code,
  // possibly before it reports the end.
  for (const event of ['error', 'end'] as const)
    client.once(event, () => {
      session.ended = true;
    });
  const isFirst = known.place === null;
  const held = await placed(life, known, client);
  const at = known as { place: Place };
  if (isFirst) life.started(at.place, wanted.webhook === null ? 'stdout' : 'webhook');
  const end = await follow({ ...life, client, held, ...told }, at);
  await held?.release();
  return end;
}

/**
 * Checks that the database contains everything that was delivered. If not, it stores what was delivered, so that the
 * next process finds the same, unless another process has moved the name on: then the next one continues from there.
 */
async function goneOn(client: LoneClient, held: NameHeld, delivered: Place, kept: Place): Promise<void> {
  await checkNotSetBack(client, delivered, kept).catch(async (error: unknown) => {
    const newest = newestOf(delivered);
    if (error instanceof FollowerError && kept.position <= newest)
      await held.delivered(newest, newest > delivered.position ? null : delivered.afterSku, null);
    throw error;
  });
}

/** Finds where to continue, and takes the name; after a lost session again, unless another process has it now. */
async function placed(life: Lifetime, known: Known, client: LoneClient): Promise<NameHeld | null> {
  const { wanted, clock, stopped } = life;
  const { name, from } = wanted;
  await noteLineage(client);
  if (name === null) {
    // Each reading checks this, too. But a database that is behind is not back, so each wait for it has to be longer.
    if (known.place !== null) await checkReached(client, known.place);
    known.place ??= {
      position: await beginningOf(client, from),
      afterSku: from === 'start' ? '' : null,
      sendingTo: null,
      failures: 0,
      refusals: 0,
    };
    return null;
  }
  const number = (known.number ??= await drawHolder(client));
  // Noted before Postgres knows it, so that what a lost answer has stored is recognized as this process's own.
  known.sessions = [...known.sessions, await readOwnSession(client)].slice(-OWN_SESSIONS);
  const holder = { number, sessions: known.sessions };
  const options = {
    name,
    from: known.place === null ? from : null,
    reset: wanted.reset && known.place === null,
    delivery: wanted.webhook === null ? ('stdout' as const) : ('webhook' as const),
    heldBy: `${hostname()} (process ${process.pid})`,
  };
  const until = clock.monotonic() + DEATH_NOTICED_WITHIN_MS;
  for (;;) {
    const taken = await takeName(client, holder, options);
    if ('position' in taken) {
      const held = new NameHeld(client, name, holder);
      if (known.place !== null) await goneOn(client, held, known.place, taken);
      const shownTo = known.place?.shownTo;
      known.place = { ...taken, ...(shownTo !== undefined && { shownTo }) };
      return held;
    }
    if (clock.monotonic() >= until || stopped.aborted)
      throw new FollowerError(
        'held',
        `${taken.heldBy} follows as ${name} already`,
        'let one process follow under a name; end the other, or use another --name',
      );
    await clock.sleep(RETAKE_MS, stopped);
  }
}
