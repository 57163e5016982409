import { type ClockWatch, createClockWatch } from '../../src/daemon/clock-watch.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { type Draw, pick } from './faults.ts';
import type { Rig } from './rig.ts';
import type { Daemon, Worker } from './worker.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * By how much Postgres's clock jumps. Times written under the longest jumps stay in the future, however long a
 * history is.
 */
const JUMPS = [5 * SECOND, 40 * SECOND, 10 * MINUTE, 30 * DAY, 90 * DAY, -40 * SECOND, -HOUR];
/** Nothing in a history may last this long or longer. */
export const LONGEST_PLAN_MS = 8 * DAY;
/**
 * A jump that a history may overtake before anybody has checked it: what was written meanwhile looks younger by
 * that much.
 */
const OVERTAKEN_MS = HOUR;
const HOST_JUMPS = [-HOUR, -10 * MINUTE, HOUR, 3 * DAY];
/** A daemon checks the clocks every two seconds. */
export const UNWATCHED_MS = 2 * SECOND;

interface Watched {
  readonly worker: Worker;
  readonly watch: ClockWatch;
  /** Whether it has checked since the daemon began or a clock was set. */
  looked: boolean;
}

/** The clocks of one history that go wrong, and the daemons' watches over them. */
export class Clocks {
  readonly #rig: Rig;
  readonly #draw: Draw;
  readonly #watches = new Map<Daemon, Watched>();
  /**
   * By how much prices may be older than they seem, because of jumps that nobody can tell from time that has
   * passed.
   */
  slackMs = 0;

  constructor(rig: Rig, draw: Draw) {
    this.#rig = rig;
    this.#draw = draw;
  }

  /** Registers a daemon, which checks the clocks before it does anything else. */
  watch(worker: Worker, ctx: SyncContext): void {
    const watch = createClockWatch(ctx.sql, ctx.clock, ({ event }) => this.#rig.note(event));
    this.#watches.set(worker.daemon, { worker, watch, looked: false });
  }

  /** Tells the daemon that the partner has answered, with its time. */
  answered(daemon: Daemon): void {
    this.#watches.get(daemon)?.watch.partnerAnswered(new Date(this.#rig.time.at));
  }

  /** Decides whether the daemon has yet to make its first check, and therefore does nothing. */
  isBlind(daemon: Daemon): boolean {
    return this.#watches.get(daemon)?.looked === false;
  }

  /** Yields daemons that can check now. */
  *ready(): Generator<Watched> {
    for (const [daemon, watched] of this.#watches)
      if (daemon.alive && !watched.worker.busy && !watched.worker.paused) yield watched;
  }

  /** Makes one check of the daemon, as a job. */
  async look(watched: Watched): Promise<void> {
    await watched.watch.check();
    watched.looked = true;
  }

  /** Sets a clock wrong, or right again. Returns a description. */
  async turn(daemons: readonly Daemon[]): Promise<string> {
    const { time } = this.#rig;
    const alive = daemons.filter((daemon) => daemon.alive);
    if (alive.length > 0 && this.#draw(4) === 0) {
      const { host } = pick(alive, this.#draw);
      host.ahead = host.ahead === 0 ? pick(HOST_JUMPS, this.#draw) : 0;
      return `a host's clock is ${host.ahead / SECOND} s ahead`;
    }
    // If nobody is there and the clock goes back by less than the time of absence, nobody can tell.
    const jumps = alive.length > 0 ? JUMPS : JUMPS.filter((ms) => ms > OVERTAKEN_MS);
    const ahead = time.ahead === 0 || (alive.length > 0 && this.#draw(3) === 0) ? pick(jumps, this.#draw) : 0;
    if (alive.length === 0 && ahead < time.ahead && time.ahead <= OVERTAKEN_MS) return 'no clock is set';
    await this.#set(ahead);
    return `Postgres's clock is ${ahead / SECOND} s ahead`;
  }

  /** Sets all clocks right. */
  async right(daemons: readonly Daemon[]): Promise<void> {
    for (const { host } of daemons) host.ahead = 0;
    if (this.#rig.time.ahead !== 0) await this.#set(0);
  }

  async #set(ahead: number): Promise<void> {
    const { time } = this.#rig;
    if (Math.abs(ahead) < OVERTAKEN_MS) this.slackMs += Math.abs(ahead);
    if (Math.abs(time.ahead) < OVERTAKEN_MS) this.slackMs += Math.abs(time.ahead);
    this.#rig.note(ahead < time.ahead ? 'clock set back' : 'clock set forward');
    await time.setAhead(ahead);
  }
}
