import { onTestFinished } from 'vitest';
import type { Batch, Limits } from '../../src/follow/batch.ts';
import type { Result } from '../../src/follow/delivery.ts';
import { parseFilters } from '../../src/follow/filter.ts';
import { follow, type FollowEvent, type Following } from '../../src/follow/follower.ts';
import { messageOf } from '../../src/follow/webhook.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { connectAlone, type LoneClient } from '../../src/store/connection/db.ts';
import { readOwnSession } from '../../src/store/connection/own-session.ts';
import { type FollowerNow, readFollowers } from '../../src/store/history/follower-list.ts';
import { NameHeld } from '../../src/store/history/follower-name.ts';
import {
  drawHolder,
  type FollowerOptions,
  type Holder,
  type Place,
  takeName,
} from '../../src/store/history/followers.ts';
import type { TestStore } from '../store/support.ts';

const OPEN = parseFilters([], []);

/** Opens a session of its own until the end of the test. */
export async function session({ url }: Pick<TestStore, 'url'>): Promise<LoneClient> {
  const client = await connectAlone(url, { application_name: 'a follower' });
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}

export const options = (more: Partial<FollowerOptions> = {}): FollowerOptions => ({
  name: 'shop',
  delivery: 'webhook',
  from: 'now',
  reset: false,
  heldBy: 'a test',
  ...more,
});

/** Returns how a process of this session holds a name. `before`: as it held it, with its earlier sessions. */
export const holding = async (client: LoneClient, before?: Holder): Promise<Holder> => ({
  number: before?.number ?? (await drawHolder(client)),
  sessions: [...(before?.sessions ?? []), await readOwnSession(client)],
});

/** Takes a name, which must be free, for a session. */
export async function taken(client: LoneClient, more: Partial<FollowerOptions> = {}, before?: Holder) {
  const holder = await holding(client, before);
  const place = await takeName(client, holder, options(more));
  if (!('position' in place)) throw new Error(`held by ${place.heldBy}`);
  return { place, held: new NameHeld(client, more.name ?? 'shop', holder), holder };
}

export const OK: Result = { outcome: 'delivered', status: 200, said: null, retryAfterMs: null };
export const answer = (outcome: Result['outcome'], status: number | null): Result => ({
  outcome,
  status,
  said: 'so it is',
  retryAfterMs: null,
});

/**
 * Follows until caught up, with a receiver that answers as told. Returns what it has taken, in order, and the
 * events.
 */
export async function run(
  client: LoneClient,
  held: NameHeld | null,
  place: Place,
  answers: (batch: Batch, attempt: number) => Result | Promise<Result>,
  { limits = { changes: 4, bytes: 100_000 }, ...more }: Partial<Following> & { limits?: Limits } = {},
) {
  const delivered: Batch[] = [];
  const events: FollowEvent[] = [];
  let attempt = 0;
  const at = { place };
  const never = new AbortController().signal;
  const end = await follow(
    {
      client,
      held,
      sink: {
        limits,
        letterOf: (batch) => messageOf('shop', batch),
        async deliver(batch) {
          attempt += 1;
          const result = await answers(batch, attempt);
          if (result.outcome === 'delivered') delivered.push(batch);
          return result;
        },
        async close() {},
      },
      filter: OPEN,
      attempts: 1000,
      once: true,
      clock: { ...systemClock, async sleep() {} },
      random: () => 0,
      stopped: never,
      patience: never,
      tell: (event) => void events.push(event),
      ...more,
    },
    at,
  );
  const positions = delivered.flatMap(({ lines }) =>
    lines.map((line) => (JSON.parse(line) as { position: number }).position),
  );
  return { end, positions, delivered, events, place: at.place };
}

/** Returns the present state of the first follower. */
export async function only(store: TestStore): Promise<FollowerNow> {
  const [first] = await readFollowers(store.sql);
  if (first === undefined) throw new Error('there is no follower');
  return first;
}
