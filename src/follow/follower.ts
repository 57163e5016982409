import type { Clock } from '../lib/clock.ts';
import type { LoneClient } from '../store/connection/db.ts';
import { type Filter, newestOf, type Page, readChanges, readCopy } from '../store/history/feed.ts';
import type { NameHeld } from '../store/history/follower-name.ts';
import type { Place } from '../store/history/followers.ts';
import { type Batch, bytesOf, cut, exceeds, type Limits } from './batch.ts';
import { backOffMs, isTooLarge, judgeByClock, type Result, type Sink } from './delivery.ts';

/** What happens while following, for reports. */
export type FollowEvent =
  | { readonly event: 'delivered'; readonly changes: number; readonly to: bigint; readonly ms: number }
  | {
      readonly event: 'failed';
      readonly to: bigint;
      readonly failures: number;
      readonly result: Result;
      readonly retryInMs: number;
    }
  | {
      readonly event: 'buried';
      readonly first: bigint;
      readonly last: bigint;
      readonly changes: number;
      readonly attempts: number;
      readonly result: Result;
    }
  | { readonly event: 'smaller'; readonly changes: number; readonly bytes: number; readonly result: Result }
  | { readonly event: 'copied'; readonly position: bigint };

/** Why following has ended: stopped, all delivered, no more wanted, or a batch not accepted while `once` is set. */
export type End = 'stopped' | 'caught-up' | 'unwanted' | 'undelivered';

export interface Following {
  /** The session for all reads and writes, and the name that it holds; null if no position is stored. */
  readonly client: LoneClient;
  readonly held: NameHeld | null;
  readonly sink: Sink;
  readonly filter: Filter;
  /** A batch is a dead letter after this many refusals. With `once`, following also ends after this many failures. */
  readonly attempts: number;
  /** Ends once everything is delivered. */
  readonly once: boolean;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Asked to stop: a delivery under way may finish, unless `patience` has aborted. */
  readonly stopped: AbortSignal;
  readonly patience: AbortSignal;
  readonly tell: (event: FollowEvent) => void;
  /** Called for each page that was read, and for each that is finished: Postgres has stored the position after it. */
  readonly hasRead?: () => void;
  readonly hasKept?: () => void;
}

/** Changes per read, and SKUs per read of the first copy. */
const PAGE = 1000;
const COPIED_SKUS = 100;
/** Changes are also polled this often, so a missed notification loses nothing. */
const POLL_MS = 60_000;
/** Polling interval while there are no notifications. */
const UNHEARD_POLL_MS = 5000;

/**
 * Delivers what follows `at.place`, in order. After each delivered batch it stores the position there and by name,
 * until it is stopped. Waits by LISTEN and a poll a minute; on a standby by polls only, until it is promoted. Polls
 * more often after a poll has found what no notification announced, as behind a pooler. Rejects if Postgres is
 * lost; what was not stored is delivered again.
 *
 * @throws FollowerError
 */
export async function follow(following: Following, at: { place: Place }): Promise<End> {
  const { client, filter, stopped, once, clock } = following;
  const news = newsOf(client);
  const run = new Run(following, at);
  while (!stopped.aborted) {
    const { heard, pollMs } = await news.next();
    const { position } = at.place;
    const { copiedTo } = run;
    const reading = { after: position, seen: newestOf(at.place) };
    const page =
      copiedTo === null
        ? await readChanges(client, reading, PAGE, filter)
        : await readCopy(client, copiedTo, COPIED_SKUS, reading, filter);
    following.hasRead?.();
    if (page.readTo !== position) news.found();
    const end = await run.deliver(page);
    if (end !== null) return end;
    following.hasKept?.();
    if (!page.isEnd || page.readTo !== position) continue;
    if (once) return 'caught-up';
    const over = new AbortController();
    const asleep = clock.sleep(pollMs, AbortSignal.any([stopped, over.signal]));
    const isHeard = await Promise.race([heard.then(() => true), asleep.then(() => false)]);
    over.abort();
    if (!isHeard) news.polled();
  }
  return 'stopped';
}

/** How to wait for further changes. */
interface News {
  /** Resolves with the next notification, and rejects when the session is lost. */
  readonly heard: Promise<void>;
  /** When to poll for changes at the latest. */
  readonly pollMs: number;
}

/**
 * Listens for changes, except on a standby, which refuses LISTEN; there it checks each time whether it was
 * promoted. `polled` reports a wait that ended in a poll, `found` a read that has found something.
 */
function newsOf(client: LoneClient) {
  const fresh = () => {
    const made = Promise.withResolvers<void>();
    // Perhaps nobody is waiting at that moment.
    made.promise.catch(() => {});
    return made;
  };
  let coming = fresh();
  let isPolled = false;
  let isDeaf = false;
  client.on('notification', () => {
    isPolled = isDeaf = false;
    coming.resolve();
    coming = fresh();
  });
  client.on('end', () => coming.reject(new Error('the session was closed')));
  let isListening = false;
  return {
    polled() {
      isPolled = true;
    },
    found() {
      isDeaf ||= isPolled;
      isPolled = false;
    },
    async next(): Promise<News> {
      const { promise: heard } = coming;
      if (!isListening) {
        const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby');
        if (rows[0]?.standby === true) return { heard, pollMs: UNHEARD_POLL_MS };
        await client.query('listen catalog_changes');
        isListening = true;
      }
      return { heard, pollMs: isDeaf ? UNHEARD_POLL_MS : POLL_MS };
    },
  };
}

/** One follower under way: its place, and how it delivers. */
class Run {
  readonly #of: Following;
  readonly #kept: { place: Place };

  /** What the receiver accepts at once, as far as this session knows. */
  #limits: Limits;
  /**
   * The SKU up to which a copy was read before its first batch because nothing passed the filter. Not stored: the
   * next process must know that the copy has not begun.
   */
  #passedOver = '';

  constructor(following: Following, kept: { place: Place }) {
    this.#of = following;
    this.#kept = kept;
    this.#limits = following.sink.limits;
  }

  /** The SKU up to which a copy is done; null if none is under way. */
  get copiedTo(): string | null {
    const { afterSku } = this.#kept.place;
    return afterSku === '' ? this.#passedOver : afterSku;
  }

  /** Delivers a page in batches; returns null if following goes on. */
  async deliver(page: Page): Promise<End | null> {
    const { position, afterSku } = this.#kept.place;
    if (page.shownTo !== undefined) this.#shown(page.shownTo);
    const isOver = afterSku !== null && page.copiedTo === null;
    if (isOver) {
      await this.#keep(position, null, null);
      this.#of.tell({ event: 'copied', position });
      return null;
    }
    let left = page.changes;
    for (let batches = this.#cut(page); batches[0] !== undefined;) {
      const isFirst = left.length === page.changes.length;
      const batch = { ...batches[0], copyBegins: afterSku === '' && isFirst };
      if (this.#of.stopped.aborted) return 'stopped';
      const end = await this.#deliverBatch(batch);
      if (end === 'too-large') batches = this.#cut({ ...page, changes: left });
      else if (end !== null) return end;
      else [left, batches] = [left.slice(batch.lines.length), batches.slice(1)];
    }
    // Whatever did not pass the filter is finished.
    if (page.copiedTo !== null && this.#kept.place.afterSku === '') this.#passedOver = page.copiedTo;
    else if (
      page.readTo !== this.#kept.place.position ||
      (page.copiedTo !== null && page.copiedTo !== this.#kept.place.afterSku)
    )
      await this.#keep(page.readTo, page.copiedTo, null);
    return null;
  }

  /** Returns the batches of a page. A batch that was under way keeps its end, and thus its id. */
  #cut(page: Page): Batch[] {
    const { sendingTo, failures } = this.#kept.place;
    const batches = cut(page, this.#limits, sendingTo);
    const [first] = batches;
    if (first === undefined || failures === 0) return batches;
    // Nothing of it passes the filter any longer, so the next batch is another one.
    const isGone = sendingTo !== null && first.first > sendingTo;
    // It has failed before, perhaps because it is too large; then the limits set since apply.
    if (!isGone && !exceeds(first, this.#limits)) return batches;
    this.#anew();
    return cut(page, this.#limits);
  }

  async #deliverBatch(batch: Batch): Promise<End | 'too-large' | null> {
    const { sink, held, clock, random, stopped, patience, once, attempts, tell } = this.#of;
    let byClockFrom: number | null = null;
    // A nightly restart must not begin that time anew.
    const { clockFailingForMs = 0 } = this.#kept.place;
    for (;;) {
      await held?.sending(batch.last, this.#kept.place);
      // The receiver may get it and this session be lost before that is stored.
      this.#shown(batch.to);
      const begun = clock.monotonic();
      const said = await sink.deliver(batch, patience);
      if (said.isByClock === true) byClockFrom ??= begun - clockFailingForMs;
      const result = judgeByClock(said, begun - (byClockFrom ?? begun));
      if (result.outcome === 'delivered') {
        await this.#keep(batch.to, batch.copiedTo ?? this.#kept.place.afterSku, result);
        tell({
          event: 'delivered',
          changes: batch.lines.length,
          to: batch.to,
          ms: clock.monotonic() - begun,
        });
        return null;
      }
      if (patience.aborted) return 'stopped';
      if (isTooLarge(result) && batch.lines.length > 1) return await this.#makeSmaller(batch, result);
      const failures = this.#kept.place.failures + 1;
      const refusals = this.#kept.place.refusals + (result.outcome === 'refused' ? 1 : 0);
      this.#kept.place = { ...this.#kept.place, sendingTo: batch.last, failures, refusals };
      await held?.failed(failures, refusals, result);
      if (result.outcome === 'unwanted') return 'unwanted';
      if (result.outcome === 'refused' && refusals >= attempts && (await this.#bury(batch, result)))
        return null;
      if (once && Math.max(refusals, failures - refusals) >= attempts) return 'undelivered';
      const retryInMs = backOffMs(failures, result.retryAfterMs, random());
      tell({ event: 'failed', to: batch.to, failures, result, retryInMs });
      await clock.sleep(retryInMs, stopped);
      if (stopped.aborted) return 'stopped';
    }
  }

  /** Halves the limit for the rest of the session; the receiver's will not change. Parts are separate batches. */
  async #makeSmaller(batch: Batch, result: Result): Promise<'too-large'> {
    const { clock, random, stopped, tell } = this.#of;
    const bytes = Math.floor(bytesOf(batch) / 2);
    this.#limits = { ...this.#limits, bytes };
    this.#anew();
    tell({ event: 'smaller', changes: batch.lines.length, bytes, result });
    await clock.sleep(backOffMs(1, result.retryAfterMs, random()), stopped);
    return 'too-large';
  }

  /** Stores a batch that the receiver never accepts as a dead letter, to unblock the others; false if it cannot. */
  async #bury(batch: Batch, result: Result): Promise<boolean> {
    const { held, sink, tell } = this.#of;
    const letter = sink.letterOf?.(batch);
    if (held === null || letter === undefined) return false;
    const { first, last, to, lines } = batch;
    const afterSku = batch.copiedTo ?? this.#kept.place.afterSku;
    const attempts = this.#kept.place.failures;
    if (!(await held.bury({ ...letter, first, last, to, afterSku, changes: lines.length, attempts })))
      return false;
    this.#at(to, afterSku);
    tell({ event: 'buried', first, last, changes: lines.length, attempts, result });
    return true;
  }

  async #keep(position: bigint, afterSku: string | null, result: Result | null): Promise<void> {
    await this.#of.held?.delivered(position, afterSku, result);
    this.#at(position, afterSku);
  }

  #shown(shownTo: bigint): void {
    const { place } = this.#kept;
    if (shownTo > newestOf(place)) this.#kept.place = { ...place, shownTo };
  }

  /** Resets the counts of failures, because the next batch is not the one that failed. */
  #anew(): void {
    const { position, afterSku } = this.#kept.place;
    this.#at(position, afterSku);
  }

  #at(position: bigint, afterSku: string | null): void {
    const { shownTo } = this.#kept.place;
    this.#kept.place = {
      position,
      afterSku,
      sendingTo: null,
      failures: 0,
      refusals: 0,
      ...(shownTo !== undefined && { shownTo }),
    };
  }
}
