import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Incident } from '../../src/store/live/limits.ts';
import { believedLive, isUsualCount, judgeIncident, trialSize } from '../../src/sync/live/incident.ts';
import { learn } from '../../src/sync/live/learn.ts';
import { QUIET_PLAN } from '../support/live-plan.ts';
import { settingsWith } from '../support/settings.ts';
import { runs } from '../support/soak.ts';

/*
 * A partner that answers as always, whatever its manifest route says: counts that contradict its own file and one
 * another. The mirror's decisions about them are simulated for five days.
 */
const MINUTE = 60_000;
const DAY_MINUTES = 1440;
const SKUS = 1000;
const NONE = { asked: 0, answered: 0, deferred: 0 };

interface Counts {
  readonly live: number;
  readonly skus: number;
}

interface Partner {
  /** SKUs that the file lists as live. */
  readonly listedLive: number;
  /** What the route says at its checks, in rotation. */
  readonly said: readonly Counts[];
  readonly checkMinutes: number;
  /** A manifest is downloaded at every `fileEvery`-th check. */
  readonly fileEvery: number;
  readonly budget: number;
  /** The most SKUs that a call may hold. */
  readonly callSkus: number;
  readonly begun: Incident['because'] | null;
}

const counts: fc.Arbitrary<Counts> = fc.record({
  live: fc.constantFrom(0, 50, 500, 860, 900, 1000, 4000, 5000),
  skus: fc.constantFrom(0, 50, 950, 1000, 1000, 1000, 5000),
});
const partner: fc.Arbitrary<Partner> = fc.record({
  listedLive: fc.constantFrom(0, 50, 300),
  said: fc.array(counts, { minLength: 1, maxLength: 4 }),
  checkMinutes: fc.constantFrom(5, 60, 360),
  fileEvery: fc.constantFrom(1, 5, 1000),
  budget: fc.constantFrom(1, 5, 30, 100),
  callSkus: fc.constantFrom(1, 2, 3, 5, 20, 100),
  begun: fc.constantFrom('live-count' as const, 'deferrals' as const, null),
});

/** The mirror, as far as incidents are concerned. */
class Mirror {
  incident: Incident | null;
  /** The longest duration of any incident, in minutes. */
  longest = 0;
  #disproved = false;
  #miscount = 0;
  readonly #of: Partner;

  constructor(of: Partner) {
    this.#of = of;
    this.incident = of.begun === null ? null : { because: of.begun, since: 0, triedAt: 0 };
  }

  #become(to: Incident['because'] | null, now: number, byTrial = false): void {
    const { incident } = this;
    if (to === (incident?.because ?? null)) return;
    this.#disproved = to === null && byTrial;
    this.incident = to === null ? null : { because: to, since: incident?.since ?? now, triedAt: now };
  }

  check(said: Counts, now: number, ofFile: boolean): void {
    // A file with another number of lines is refused.
    const isTaken = ofFile && said.skus === SKUS;
    if (isTaken) this.#miscount = said.live - this.#of.listedLive;
    const evidence = {
      kind: 'count',
      live: believedLive(said.live, this.#miscount),
      skus: said.skus,
    } as const;
    if (isTaken || isUsualCount(evidence)) this.#disproved = false;
    const minutes = this.incident === null ? 0 : (now - this.incident.since) / MINUTE;
    this.#become(
      judgeIncident(this.incident?.because ?? null, evidence, { minutes, disproved: this.#disproved }),
      now,
    );
  }

  call(now: number): void {
    const { budget, callSkus, checkMinutes, listedLive } = this.#of;
    const { incident } = this;
    if (incident === null) return;
    this.longest = Math.max(this.longest, (now - incident.since) / MINUTE);
    const size = trialSize(incident, now, {
      liveBudget: budget,
      callSkus,
      catalogCheckMs: checkMinutes * MINUTE,
    });
    if (size === null) return;
    const asked = Math.ceil((size * (SKUS - listedLive)) / SKUS);
    const tried = { asked, answered: asked, deferred: 0 };
    const plan = { ...QUIET_PLAN, incident, now };
    const evidence = { live: NONE, snapshot: tried, tried, askedAt: now, answeredAt: now + 1000 };
    const settings = settingsWith({ BULK_MAX_SKUS: String(callSkus) });
    const { incident: change } = learn({ plan, budget, trial: true, callSkus }, evidence, settings).lesson;
    this.incident = { ...incident, triedAt: now };
    if (change !== null) this.#become(change.to, now, true);
  }
}

test('an incident supported only by counts ends, however they contradict the file and one another', () => {
  fc.assert(
    fc.property(partner, (of) => {
      const mirror = new Mirror(of);
      for (let minute = 1; minute <= 5 * DAY_MINUTES; minute += 1) {
        const now = minute * MINUTE;
        if (minute % of.checkMinutes === 0) {
          const nth = minute / of.checkMinutes;
          const said = of.said[nth % of.said.length] as Counts;
          mirror.check(said, now, nth % of.fileEvery === 0);
        }
        mirror.call(now);
      }
      // A trial follows after two checks or ten minutes. A change of cause restarts that time.
      expect(mirror.longest).toBeLessThanOrEqual(2 * Math.max(10, 2 * of.checkMinutes) + 10);
    }),
    { numRuns: runs(200) },
  );
});
