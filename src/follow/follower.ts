import type { Clock } from '../lib/clock.ts';
import type { LoneClient } from '../store/connection/db.ts';
import { type Filter, newestOf, type Page, readChanges, readCopy } from '../store/history/feed.ts';
import type { NameHeld } from '../store/history/follower-name.ts';
import type { Place } from '../store/history/followers.ts';
import { type Batch, bytesOf, cut, exceeds, type Limits } from './batch.ts';
import { backOffMs, isTooLarge, judgeByClock, type Result, type Sink } from './delivery.ts';

/** What happens, for whoever tells of it. */
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

/**
 * Why following has ended: told to; everything is delivered; the receiver wants no more; it does not take a batch,
 * and nobody waits.
 */
export type End = 'stopped' | 'caught-up' | 'unwanted' | 'undelivered';

export interface Following {
  /** The session over which everything is read and written, and the name that it holds; null: no position is kept. */
  readonly client: LoneClient;
  readonly held: NameHeld | null;
  readonly sink: Sink;
  readonly filter: Filter;
  /** After so many refusals a batch is a dead letter; with `once`, after so many failures it is over. */
  readonly attempts: number;
  /** Until everything is delivered. */
  readonly once: boolean;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Told to stop: what is being delivered may end, as long as `patience` has not aborted. */
  readonly stopped: AbortSignal;
  readonly patience: AbortSignal;
  readonly tell: (event: FollowEvent) => void;
  /** Told of each page that could be read, and of each that is done with: Postgres has kept the position behind it. */
  readonly hasRead?: () => void;
  readonly hasKept?: () => void;
}

/** Changes that are read at a time, and SKUs of the first copy. */
const PAGE = 1000;
const COPIED_SKUS = 100;
/** A notification that is missed loses nothing, for changes are asked for this often, too. */
const POLL_MS = 60_000;
/** Where there are no notifications, or none come. */
const UNHEARD_POLL_MS = 5000;

/**
 * Delivers what follows `at.place`, in order, and keeps the position there and by name behind each batch once that is
 * delivered, until it is told to stop. Waits by LISTEN and a poll a minute, on a standby by polls alone, until it is
 * promoted; and where a poll has found what no notification told of, as behind a pooler, by more of them. Rejects
 * where Postgres is lost: what was not kept is delivered again.
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

/** What tells of changes from now on. */
interface News {
  /** Resolves with the next notification, and rejects when the session is lost. */
  readonly heard: Promise<void>;
  /** So soon changes are to be asked for besides. */
  readonly pollMs: number;
}

/**
 * Hears of changes, but on a standby, which refuses LISTEN: there, whether it was promoted is asked each time. Is told
 * of each wait that a poll has ended, and of each reading that has found something.
 */
function newsOf(client: LoneClient) {
  const fresh = () => {
    const made = Promise.withResolvers<void>();
    // Nobody may be waiting at that moment.
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

/** One follower under way: where it is, and how it delivers. */
class Run {
  readonly #of: Following;
  readonly #kept: { place: Place };

  /** What the receiver takes at once, as far as this session knows. */
  #limits: Limits;
  /**
   * The SKU up to which a copy was read before its first batch, because nothing passed the filter. Not kept, because
   * the next process has to know that the copy has not begun.
   */
  #passedOver = '';

  constructor(following: Following, kept: { place: Place }) {
    this.#of = following;
    this.#kept = kept;
    this.#limits = following.sink.limits;
  }

  /** The SKU up to which a copy is done; null: none is under way. */
  get copiedTo(): string | null {
    const { afterSku } = this.#kept.place;
    return afterSku === '' ? this.#passedOver : afterSku;
  }

  /** Delivers a page in batches; null where following goes on. */
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
    // What did not pass the filter is done with.
    if (page.copiedTo !== null && this.#kept.place.afterSku === '') this.#passedOver = page.copiedTo;
    else if (
      page.readTo !== this.#kept.place.position ||
      (page.copiedTo !== null && page.copiedTo !== this.#kept.place.afterSku)
    )
      await this.#keep(page.readTo, page.copiedTo, null);
    return null;
  }

  /** The batches of a page. One that was under way keeps its end, and so its id. */
  #cut(page: Page): Batch[] {
    const { sendingTo, failures } = this.#kept.place;
    const batches = cut(page, this.#limits, sendingTo);
    const [first] = batches;
    if (first === undefined || failures === 0) return batches;
    // Nothing of it passes the filter any longer: what comes is another one.
    const isGone = sendingTo !== null && first.first > sendingTo;
    // The receiver has had it in vain, perhaps because it takes less at once: then that is what was set since.
    if (!isGone && !exceeds(first, this.#limits)) return batches;
    this.#anew();
    return cut(page, this.#limits);
  }

  async #deliverBatch(batch: Batch): Promise<End | 'too-large' | null> {
    const { sink, held, clock, random, stopped, patience, once, attempts, tell } = this.#of;
    let byClockFrom: number | null = null;
    // A restart each night is not to begin that anew.
    const { clockFailingForMs = 0 } = this.#kept.place;
    for (;;) {
      await held?.sending(batch.last, this.#kept.place);
      // The receiver may have it, and this session be lost before that is written.
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

  /** For the rest of the session: a receiver that has a limit keeps it. Parts are batches of their own. */
  async #makeSmaller(batch: Batch, result: Result): Promise<'too-large'> {
    const { clock, random, stopped, tell } = this.#of;
    const bytes = Math.floor(bytesOf(batch) / 2);
    this.#limits = { ...this.#limits, bytes };
    this.#anew();
    tell({ event: 'smaller', changes: batch.lines.length, bytes, result });
    await clock.sleep(backOffMs(1, result.retryAfterMs, random()), stopped);
    return 'too-large';
  }

  /** A batch that the receiver never takes holds back no other; false where it cannot be kept for later. */
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

  /** What comes next is another batch than the one that has failed. */
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
