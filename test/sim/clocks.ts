import { type ClockWatch, createClockWatch } from '../../src/daemon/clock-watch.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { type Draw, pick } from './faults.ts';
import type { Rig } from './rig.ts';
import type { Daemon, Worker } from './worker.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** By so much Postgres's clock jumps; what was written under the longest is to come, however long a history goes on. */
const JUMPS = [5 * SECOND, 40 * SECOND, 10 * MINUTE, 30 * DAY, 90 * DAY, -40 * SECOND, -HOUR];
/** From here on nothing of a history may last to. */
export const LONGEST_PLAN_MS = 8 * DAY;
/**
 * A jump that a history may overtake before anybody has looked at it: what was written meanwhile looks younger by so
 * much.
 */
const OVERTAKEN_MS = HOUR;
const HOST_JUMPS = [-HOUR, -10 * MINUTE, HOUR, 3 * DAY];
/** In a daemon's life the clocks are looked at every two seconds. */
export const UNWATCHED_MS = 2 * SECOND;

interface Watched {
  readonly worker: Worker;
  readonly watch: ClockWatch;
  /** Since the daemon began, or a clock was set. */
  looked: boolean;
}

/** The clocks of one history that go wrong, and the daemons' watches over them. */
export class Clocks {
  readonly #rig: Rig;
  readonly #draw: Draw;
  readonly #watches = new Map<Daemon, Watched>();
  /** By so much prices may be older than they seem: jumps that nobody can tell from time that has gone by. */
  slackMs = 0;

  constructor(rig: Rig, draw: Draw) {
    this.#rig = rig;
    this.#draw = draw;
  }

  /** A daemon begins; it looks before it does anything else. */
  watch(worker: Worker, ctx: SyncContext): void {
    const watch = createClockWatch(ctx.sql, ctx.clock, ({ event }) => this.#rig.note(event));
    this.#watches.set(worker.daemon, { worker, watch, looked: false });
  }

  /** The partner has answered the daemon, with its time. */
  answered(daemon: Daemon): void {
    this.#watches.get(daemon)?.watch.partnerAnswered(new Date(this.#rig.time.at));
  }

  /** Whether the daemon has yet to look for the first time, and so works at nothing. */
  isBlind(daemon: Daemon): boolean {
    return this.#watches.get(daemon)?.looked === false;
  }

  /** Daemons that can look now. */
  *ready(): Generator<Watched> {
    for (const [daemon, watched] of this.#watches)
      if (daemon.alive && !watched.worker.busy && !watched.worker.paused) yield watched;
  }

  /** One look of the daemon's, as a job. */
  async look(watched: Watched): Promise<void> {
    await watched.watch.check();
    watched.looked = true;
  }

  /** Sets a clock wrong, or right again; gives back which. */
  async turn(daemons: readonly Daemon[]): Promise<string> {
    const { time } = this.#rig;
    const alive = daemons.filter((daemon) => daemon.alive);
    if (alive.length > 0 && this.#draw(4) === 0) {
      const { host } = pick(alive, this.#draw);
      host.ahead = host.ahead === 0 ? pick(HOST_JUMPS, this.#draw) : 0;
      return `a host's clock is ${host.ahead / SECOND} s ahead`;
    }
    // Where nobody is there, and the clock goes back by less than nobody was, nobody can tell.
    const jumps = alive.length > 0 ? JUMPS : JUMPS.filter((ms) => ms > OVERTAKEN_MS);
    const ahead = time.ahead === 0 || (alive.length > 0 && this.#draw(3) === 0) ? pick(jumps, this.#draw) : 0;
    if (alive.length === 0 && ahead < time.ahead && time.ahead <= OVERTAKEN_MS) return 'no clock is set';
    await this.#set(ahead);
    return `Postgres's clock is ${ahead / SECOND} s ahead`;
  }

  /** All clocks are right. */
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
