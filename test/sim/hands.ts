import { backUp, putBack } from './backups.ts';
import { type Draw, pick, type Weighed } from './faults.ts';
import type { Judge } from './judge.ts';
import { interfere } from './neighbours.ts';
import type { Rig } from './rig.ts';

/** What a history of others needs of the one of daemons. */
interface Played {
  readonly rig: Rig;
  readonly judge: Judge;
  readonly draw: Draw;
  readonly log: string[];
  /** Judges the mirror, and throws what a daemon was not to throw. */
  readonly look: () => Promise<void>;
  /** All daemons end. */
  readonly endAll: () => Promise<void>;
}

/** What sellers, neighbours and operators do to the database of a mirror in one history. */
export class Hands {
  readonly #played: Played;
  /** Whether others work on its database, too. */
  readonly #interfered: boolean;
  /** Whether its database is put back to what it was before. */
  readonly #restored: boolean;
  #hasBackup = false;

  constructor(played: Played, mayRestore: boolean) {
    this.#played = played;
    this.#interfered = played.draw(2) === 1;
    this.#restored = mayRestore && played.draw(3) === 1;
  }

  /** What may be done now. */
  ways(): Weighed<[string, () => unknown]>[] {
    const isBackedUp = this.#restored && this.#hasBackup;
    // Often while an answer is on its way, of which the replica does not know that it was asked for.
    const isAsked = this.#played.rig.partner.pending.some(({ route }) => route === 'bulk');
    return [
      [this.#interfered ? 25 : 0, 'neighbours', () => this.#interfere()],
      [6, 'call', () => this.#call()],
      [this.#restored ? 15 : 0, 'backup', () => this.#backUp()],
      [isBackedUp ? 10 : 0, 'restore', () => this.#restore()],
      [isBackedUp ? (isAsked ? 60 : 15) : 0, 'failover', () => this.#failOver()],
    ];
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

  async #backUp(): Promise<void> {
    const { rig, judge, look } = this.#played;
    await look();
    await backUp(rig.sql);
    judge.backedUp();
    this.#hasBackup = true;
  }

  /** All daemons end, and the backup is loaded. */
  async #restore(): Promise<void> {
    const { rig, judge, endAll } = this.#played;
    await endAll();
    rig.note('restore');
    await judge.restored(await putBack(rig.sql, 0));
  }

  /** A replica that lacks the last commits takes the place of the server; daemons go on with what they know. */
  async #failOver(): Promise<void> {
    const { rig, judge, draw, look } = this.#played;
    rig.note('failover');
    await judge.restored(await putBack(rig.sql, draw(2) === 0 ? 0 : 32));
    await look();
  }
}
