import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { endChunk, growOld } from './ages.ts';
import { backUp, putBack } from './backups.ts';
import { type Draw, pick, type Weighed } from './faults.ts';
import { Follower } from './follower.ts';
import type { Judge } from './judge.ts';
import { interfere, pauseFor, resume } from './neighbours.ts';
import type { Rig } from './rig.ts';

/** What the acts of others need from a history of daemons. */
interface Played {
  readonly rig: Rig;
  readonly judge: Judge;
  readonly draw: Draw;
  readonly log: string[];
  /** Checks the mirror, and throws what a daemon should not have thrown. */
  readonly look: () => Promise<void>;
  /** Ends all daemons. */
  readonly endAll: () => Promise<void>;
  /** Whether daemons use the pacer. */
  readonly paced: boolean;
}

/** What sellers, neighbours and operators do to the database of a mirror in one history. */
export class Hands {
  readonly #played: Played;
  /** Whether others work on its database, too. */
  readonly #interfered: boolean;
  /** Whether its database is restored to an earlier state. */
  readonly #restored: boolean;
  /** Whether its history grows so old that parts are dropped. */
  readonly #aged: boolean;
  readonly #follower: Follower;
  #hasBackup = false;

  constructor(played: Played, mayRestore: boolean) {
    const { draw, rig } = played;
    this.#played = played;
    this.#interfered = draw(2) === 1;
    this.#restored = mayRestore && draw(3) === 1;
    this.#aged = mayRestore && !this.#restored && draw(3) === 1;
    this.#follower = new Follower(draw, (what) => rig.note(what));
  }

  /** Whether maintenance has more to do than usual. */
  get aged(): boolean {
    return this.#aged;
  }

  /** Checks that followers of the changes have all of them. */
  async followersCatchUp(): Promise<void> {
    await this.#follower.catchUp(this.#played.rig.sql);
  }

  /** Returns what may be done now, with weights. */
  ways(): Weighed<[string, () => unknown]>[] {
    const isBackedUp = this.#restored && this.#hasBackup;
    // Often while an answer is on its way that the replica does not know was requested.
    const isAsked = this.#played.rig.partner.pending.some(({ route }) => route === 'bulk');
    return [
      [this.#interfered ? 25 : 0, 'neighbours', () => this.#interfere()],
      [6, 'call', () => this.#call()],
      [3, 'refresh', () => this.#refresh()],
      [
        this.#aged ? 12 : this.#restored ? 30 : 6,
        'follow',
        () => this.#follower.follow(this.#played.rig.sql),
      ],
      [this.#aged ? 20 : 0, 'a chunk ends', () => this.#endChunk()],
      [this.#aged ? 20 : 0, 'ages', () => this.#growOld()],
      [this.#played.paced ? 8 : 0, 'pause', () => this.#pause()],
      [this.#played.paced ? 8 : 0, 'resume', () => resume(this.#played.rig)],
      [this.#restored ? 15 : 0, 'backup', () => this.#backUp()],
      [isBackedUp ? 10 : 0, 'restore', () => this.#restore()],
      [isBackedUp ? (isAsked ? 60 : 15) : 0, 'failover', () => this.#failOver()],
    ];
  }

  async #endChunk(): Promise<void> {
    const { rig, draw } = this.#played;
    // Often somebody has read what is about to grow old.
    if (draw(4) > 0) await this.#follower.follow(rig.sql);
    rig.hasAged = true;
    rig.note('a chunk ends');
    await endChunk(rig.sql);
  }

  async #growOld(): Promise<void> {
    const { rig, draw, look } = this.#played;
    rig.note('ages');
    await growOld(rig, draw);
    await look();
  }

  async #pause(): Promise<void> {
    const { rig, draw, look } = this.#played;
    rig.note('paused');
    await pauseFor(rig, draw);
    await look();
  }

  async #interfere(): Promise<void> {
    const { rig, judge, draw, log, look } = this.#played;
    const what = await interfere(rig, draw);
    log.push(what);
    rig.note(what);
    if (what === 'rows of the ledger are deleted') judge.truth.ledgerDeleted = true;
    if (what.includes('refresh')) judge.refreshWanted();
    await look();
  }

  /** A seller has SKUs refreshed, and waits. */
  async #call(): Promise<void> {
    const { rig, judge, draw, look } = this.#played;
    const all = [...rig.partner.world.truth().keys()];
    const some = Array.from({ length: 1 + draw(4) }, () => pick(all, draw));
    if (await judge.callers.call(rig.sql, some, rig.time.at)) rig.note('a seller waits');
    judge.refreshWanted();
    await look();
  }

  /** An operator, or a seller who does not wait, has SKUs refreshed. */
  async #refresh(): Promise<void> {
    const { rig, judge, draw, look } = this.#played;
    const all = [...rig.partner.world.truth().keys()];
    const some = [...new Set(Array.from({ length: 1 + draw(4) }, () => pick(all, draw)))];
    if (draw(2) === 0) await refreshSkus(rig.sql, some);
    else await rig.sql`select catalog.refresh(${some}::text[])`;
    judge.refreshWanted(some);
    await look();
  }

  async #backUp(): Promise<void> {
    const { rig, judge, look } = this.#played;
    await look();
    await backUp(rig.sql);
    judge.backedUp();
    this.#hasBackup = true;
  }

  /** Ends all daemons and loads the backup. */
  async #restore(): Promise<void> {
    const { rig, judge, endAll } = this.#played;
    await endAll();
    rig.note('restore');
    const claim = await putBack(rig.sql, 0);
    rig.pause = null;
    await judge.restored(claim);
  }

  /** Replaces the server by a replica that lacks the last commits. Daemons continue with what they know. */
  async #failOver(): Promise<void> {
    const { rig, judge, draw, look } = this.#played;
    rig.note('failover');
    const claim = await putBack(rig.sql, draw(2) === 0 ? 0 : 32);
    rig.pause = null;
    await judge.restored(claim);
    await look();
  }
}
