import { settledBy } from './faults.ts';
import { type Mirror, readActionable, readMirror } from './mirror.ts';
import type { Pending } from './partner.ts';
import type { Rig } from './rig.ts';
import { Truth } from './truth.ts';
import { Callers } from './waiting.ts';

/** DEFERRED_INTERVAL, minus the milliseconds that statements take. */
const DEFERRED_AT_MIN_MS = 4.9 * 60_000;

/** The view reads more than all the rest. */
const ACTIONABLE_EVERY = 6;

/** Checks the mirror after every step, and throws if it violates an invariant. */
export class Judge {
  readonly truth: Truth;
  readonly #rig: Rig;
  /** Until when a deferred SKU must not be asked about. */
  readonly #waits = new Map<string, number>();
  #before: Mirror | null = null;
  /** When the mirror last moved `checkedAt`, by the world's clock. */
  #checkedAt = 0;
  #looks = 0;
  clocksWentWrong = false;
  readonly callers = new Callers();
  /** When a refresh of each SKU was last requested. */
  readonly #wanted = new Map<string, number>();
  /** `#answeredAt` at the time of the backup. */
  #answeredBefore: readonly (readonly [string, number])[] = [];
  /** When the last arrived answer of each route was given. */
  readonly #answeredAt = new Map<string, number>();

  constructor(rig: Rig) {
    this.#rig = rig;
    this.truth = new Truth(rig.partner.world, rig.time.at);
    this.truth.omitted = rig.partner.omitted;
    this.truth.isUnreadable = () => (rig.partner.ambiguities.drawn.get('unreadable-field') ?? 0) > 0;
    rig.partner.saidLate = (sku, sizes) => this.truth.saidLate(sku, sizes, rig.time.at);
  }

  /**
   * Notes that a clock was set, and by how much prices may thereby be older than they seem. Waits may become
   * shorter.
   */
  clockSet(slackMs: number): void {
    this.clocksWentWrong = true;
    this.truth.slackMs = slackMs;
    this.#waits.clear();
  }

  /** Notes that somebody wants SKUs refreshed whatever they wait for. `skus` must be refreshed sooner or later. */
  refreshWanted(skus: readonly string[] = []): void {
    this.#waits.clear();
    for (const sku of skus) this.#wanted.set(sku, this.#rig.time.at);
  }

  /** Checks that, at rest, every requested SKU has been refreshed since the request. */
  expectRefreshed(): void {
    const rows = this.#before?.rows;
    const wrong = [...this.#wanted].flatMap(([sku, since]) => this.truth.notSince(rows?.get(sku), since));
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
    this.#rig.note('refreshed as wanted', this.#wanted.size);
    this.#wanted.clear();
  }

  /** Includes what is known of the mirror in the backup. */
  backedUp(): void {
    this.#answeredBefore = [...this.#answeredAt];
    this.truth.backedUp();
  }

  /** Takes the mirror back to the backup. Claims after `lastClaim` never existed. */
  async restored(lastClaim: number): Promise<void> {
    const mirror = await readMirror(this.#rig.sql);
    this.#rig.time.at = mirror.at;
    this.#before = mirror;
    this.#checkedAt = mirror.checkedAt;
    this.#waits.clear();
    this.#answeredAt.clear();
    for (const [route, at] of this.#answeredBefore) this.#answeredAt.set(route, at);
    this.callers.leave();
    this.#wanted.clear();
    this.truth.restored(lastClaim);
    await this.look();
  }

  /** Checks what must hold after every step. */
  async look(): Promise<void> {
    const mirror = await readMirror(this.#rig.sql);
    this.#rig.time.at = mirror.at;
    const answered = await this.callers.answered(this.#rig.sql);
    this.#rig.note('answered to a seller', answered.length);
    const breaches = [
      ...this.truth.breaches(mirror, this.#before),
      ...this.#askedTooSoon(mirror),
      ...answered.flatMap(([sku, since]) => this.truth.notSince(mirror.rows.get(sku), since)),
    ];
    if (breaches.length > 0) throw new Error(breaches.join('\n'));
    if (mirror.checkedAt !== this.#before?.checkedAt) this.#checkedAt = mirror.at;
    this.#before = mirror;
    this.#looks += 1;
    if (this.#looks % ACTIONABLE_EVERY === 0) await this.lookAtActionable();
  }

  /** Checks what the mirror says is safe to act on. */
  async lookAtActionable(): Promise<void> {
    const { at, checkedAt, route, rows } = await readActionable(this.#rig.sql);
    this.#rig.time.at = at;
    this.#rig.note('actionable prices', rows.length);
    this.#rig.note('actionable after a move', this.truth.moved(rows));
    const checked = this.clocksWentWrong ? this.#checkedAt : checkedAt;
    const late = Math.max(0, checked - (this.#answeredAt.get(route) ?? checked));
    const wrong = this.truth.wronglyActionable(rows, at, late);
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
  }

  /** Checks that, at rest and with every report answered and rechecked, no covered SKU is wrong. */
  async expectCoveredAreRight(): Promise<void> {
    const wrong = this.truth.wrong(await readMirror(this.#rig.sql));
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
  }

  /** Checks the mirror after a bulk answer, which must settle no SKU that it omits or contradicts. */
  async refreshAfter({ skus, answer, answeredAt, route }: Pending): Promise<void> {
    this.#answeredAt.set(route, answeredAt);
    const before = this.#before;
    await this.look();
    if (route !== 'bulk' || before === null || answer === null) return;
    const settled = settledBy(answer);
    for (const sku of skus) {
      const [was, is] = [before.rows.get(sku), this.#before?.rows.get(sku)];
      if (settled.has(sku) && was?.claim !== null && is?.owed === true) this.#rig.note('overtaken by a mark');
      if (settled.has(sku) || was?.owed !== true) continue;
      if (is?.owed !== true) throw new Error(`${sku} was settled by an answer that says nothing of it`);
      if (is.state !== was.state)
        throw new Error(`${sku} became ${is.state} by an answer that says nothing of it`);
    }
  }

  *#askedTooSoon(mirror: Mirror): Generator<string> {
    for (const { sku, deferrals, claim } of mirror.rows.values()) {
      const was = this.#before?.rows.get(sku);
      // A refresh by name does not wait, whenever it was requested.
      if (was?.requested === true) this.#waits.delete(sku);
      if (claim !== null && claim !== was?.claim && mirror.at < (this.#waits.get(sku) ?? 0))
        yield `${sku} was asked again before its wait was over`;
      if (deferrals > (was?.deferrals ?? 0)) this.#waits.set(sku, mirror.at + DEFERRED_AT_MIN_MS);
      if (deferrals === 0) this.#waits.delete(sku);
    }
  }
}
