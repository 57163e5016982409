import { array, assert, constantFrom, integer, property, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ClockSample, type ClocksBefore, judgeClocks } from '../../src/sync/clocks.ts';
import { runs } from '../support/soak.ts';

const NOON = Date.parse('2026-11-20T12:00:00Z');
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** A sample `ms` after noon in which all clocks are right, except by `off`. */
const at = (ms: number, off: Partial<Record<'postgres' | 'host' | 'partner', number>> = {}): ClockSample => ({
  postgres: NOON + ms + (off.postgres ?? 0),
  host: NOON + ms + (off.host ?? 0),
  partner: off.partner === undefined ? null : NOON + ms + off.partner,
  monotonic: 5000 + ms,
  uncertaintyMs: 1,
});

/** Judges samples of the same process, one after the other. */
function judgeAll(...samples: readonly ClockSample[]) {
  let before: ClocksBefore | null = null;
  return samples.map((sample) => {
    const judged = judgeClocks(before, sample);
    before = { sample, ...judged };
    return judged;
  });
}

describe('a clock that jumps', () => {
  test.each([
    ['postgres', { postgres: 8 * DAY }, 8 * DAY],
    ['postgres', { postgres: -3000 }, -3000],
    ['host', { host: -HOUR }, -HOUR],
    ['both', { postgres: 8 * HOUR, host: 8 * HOUR }, 8 * HOUR],
  ] as const)('is recognised by the other clock: %s', (clock, off, ms) => {
    const [, judged] = judgeAll(at(0), at(2000, off));
    expect(judged?.jump).toEqual({ clock, ms });
  });

  test('is not assumed if the reading took long', () => {
    const slow = { ...at(60_000, { postgres: -25_000 }), uncertaintyMs: 25_000 };
    expect(judgeAll(at(0), slow)[1]?.jump).toBeNull();
  });

  test('is recognised beyond the uncertainty of a reading', () => {
    expect(judgeAll(at(0), at(2000, { postgres: 2002 }))[1]?.jump).toBeNull();
    expect(judgeAll(at(0), at(2000, { postgres: 2003 }))[1]?.jump).not.toBeNull();
  });
});

describe('if clocks differ, the wrong one', () => {
  test.each([
    ['none by a minute', { postgres: 60_000, partner: 0 }, null],
    ['postgres, as the partner agrees with the host', { postgres: HOUR, partner: 500 }, ['postgres', HOUR]],
    ['the host, as the partner agrees with postgres', { host: -HOUR, partner: -500 }, ['host', -HOUR]],
    ['the partner, as both of ours agree', { partner: -HOUR }, ['partner', -HOUR]],
    ['nobody knows which', { postgres: HOUR }, ['unknown', HOUR]],
    ['nobody knows which of three', { postgres: HOUR, partner: -HOUR }, ['unknown', HOUR]],
  ] as const)('is %s', (_, off, wrong) => {
    const judged = judgeClocks(null, at(0, off)).wrong;
    expect(judged && [judged.clock, judged.aheadMs]).toEqual(wrong);
  });

  test('is the one that jumped, until they agree again', () => {
    const off = { postgres: -8 * DAY };
    const all = judgeAll(at(0), at(2000, off), at(4000, off), at(6000), at(8000, { host: HOUR }));
    const clocks = all.map(({ wrong }) => wrong?.clock ?? null);
    expect(clocks).toEqual([null, 'postgres', 'postgres', null, 'host']);
  });

  test.each([
    ['this machine has stood still', { postgres: 3 * DAY, partner: 3 * DAY }, 'host'],
    ['that of Postgres was set', { postgres: 3 * DAY, partner: 0 }, 'postgres'],
  ] as const)(
    'stays unknown after Postgres jumped forward, until the partner’s next answer shows that %s',
    (_, off, told) => {
      const { postgres } = off;
      const all = judgeAll(
        at(0, { partner: 0 }),
        // The partner's earlier answer, advanced by the time of this process since.
        at(2000, { postgres, partner: 0 }),
        at(4000, { postgres }),
        at(6000, off),
        // It has not answered for an hour.
        at(8000, { postgres }),
        at(10_000, { postgres: 0 }),
      );
      const clocks = all.map(({ wrong }) => wrong?.clock ?? null);
      expect(clocks).toEqual([null, 'unknown', 'unknown', told, told, null]);
    },
  );

  test.each([
    ['host', { postgres: -HOUR, partner: 0 }, { host: 3000 }, 'postgres', -HOUR - 3000],
    ['postgres', { host: 600_000, partner: 0 }, { postgres: -3000 }, 'host', 603_000],
  ] as const)(
    'is still known after a small step of the %s, which does not explain an earlier difference',
    (_, off, step, clock, aheadMs) => {
      const { partner: _said, ...unknown } = off;
      const all = judgeAll(
        at(0, off),
        at(2000, { ...off, ...step }),
        at(4000, { ...unknown, ...step }),
        at(6000, { ...off, ...step }),
      );
      const found = all.map(
        ({ wrong }) => wrong && [wrong.clock, wrong.clock === 'unknown' ? null : wrong.aheadMs],
      );
      const [first] = found;
      expect(first?.[0]).toBe(clock);
      expect(found.slice(1)).toEqual([
        [clock, aheadMs],
        ['unknown', null],
        [clock, aheadMs],
      ]);
    },
  );

  test('is ours if host and Postgres share a clock that was set, not the partner’s', () => {
    const set = { postgres: HOUR, host: HOUR };
    const all = judgeAll(
      at(0, { partner: 0 }),
      // The partner's last answer does not include the time that a machine has slept.
      at(2000, { ...set, partner: 0 }),
      at(4000, set),
      at(6000, { ...set, partner: 0 }),
      at(8000, { partner: 0 }),
    );
    expect(all.map(({ wrong }) => wrong?.clock ?? null)).toEqual([null, null, null, 'postgres', null]);
    expect(all[3]?.wrong?.aheadMs).toBe(HOUR);
  });

  test.each([-65_000, -HOUR, 65_000, 2 * DAY])(
    'is the partner’s after a sleep, too, if it is off by %i ms',
    (off) => {
      const slept = { postgres: 8 * HOUR, host: 8 * HOUR };
      const clocks = judgeAll(
        at(0, { partner: off }),
        at(2000, slept),
        // Nobody has asked it yet.
        at(4000, slept),
        at(6000, { ...slept, partner: 8 * HOUR + off }),
        at(8000, { ...slept, partner: 8 * HOUR + off }),
      );
      expect(clocks.map(({ wrong }) => wrong && [wrong.clock, wrong.aheadMs])).toEqual([
        ['partner', off],
        null,
        null,
        ['partner', off],
        ['partner', off],
      ]);
      expect(clocks.map(({ suspect }) => suspect)).toEqual([null, 'both', 'both', null, null]);
    },
  );

  test('is the one that jumped even if the partner is off and agrees with neither', () => {
    const off = { partner: -HOUR };
    const clocksOf = (then: { postgres?: number; host?: number; partner: number }) =>
      judgeAll(at(0, off), at(2000, then), at(4000, then), at(6000, off), at(8000, off)).map(
        ({ wrong }) => wrong?.clock ?? null,
      );
    expect(clocksOf({ ...off, postgres: -2 * HOUR })).toEqual([
      'partner',
      'postgres',
      'postgres',
      null,
      'partner',
    ]);
    expect(clocksOf({ ...off, host: 2 * HOUR })).toEqual(['partner', 'host', 'host', 'partner', 'partner']);
    // If it is still off by as much: either the clock of Postgres was set, or a machine stood still.
    expect(clocksOf({ ...off, postgres: 2 * HOUR })).toEqual([
      'partner',
      'unknown',
      'postgres',
      'partner',
      'partner',
    ]);
    const slept = { postgres: 3 * HOUR, partner: 2 * HOUR };
    expect(clocksOf(slept).slice(0, 3)).toEqual(['partner', 'unknown', 'host']);
  });
});

test('if host and Postgres share a clock, a sleep is never blamed on it, but a wrong setting always is', () => {
  const event = record({
    what: constantFrom('slept' as const, 'set' as const, 'set right' as const),
    ms: constantFrom(-2 * HOUR, -130_000, 130_000, HOUR, 9 * DAY),
    silent: integer({ min: 0, max: 3 }),
  });
  const drawn = record({
    partner: constantFrom(-2 * DAY, -HOUR - 5000, -65_000, -59_000, 0, 30_000, 61_000, 3 * HOUR),
    events: array(event, { minLength: 1, maxLength: 12 }),
  });
  assert(
    property(drawn, ({ partner, events }) => {
      let [slept, ahead, ms] = [0, 0, 0];
      let before: ClocksBefore | null = null;
      const look = (isAnswered: boolean) => {
        ms += 2000;
        const ours = slept + ahead;
        const off = { postgres: ours, host: ours, ...(isAnswered && { partner: slept + partner }) };
        const sample = at(ms, off);
        const judged = judgeClocks(before, sample);
        before = { sample, ...judged };
        return judged.wrong?.clock ?? null;
      };
      look(true);
      for (const { what, ms: by, silent } of events) {
        if (what === 'slept') slept += Math.abs(by);
        else ahead = what === 'set' ? by : 0;
        for (let looks = 0; looks < silent; looks += 1) expect(look(false)).not.toBe('partner');
        look(false);
        const isOff = Math.abs(partner - ahead) > 60_000;
        expect(look(true)).toBe(!isOff ? null : ahead === 0 ? 'partner' : 'postgres');
      }
    }),
    { numRuns: runs(300) },
  );
});

test('one wrong clock of three is named, and none while they agree', () => {
  const off = constantFrom(-8 * DAY, -HOUR, -61_000, 61_000, HOUR, 8 * DAY);
  const small = integer({ min: -29_000, max: 29_000 });
  const drawn = record({
    which: constantFrom('postgres' as const, 'host' as const, 'partner' as const),
    off,
    postgres: small,
    host: small,
    partner: small,
  });
  assert(
    property(drawn, ({ which, off: ms, ...noise }) => {
      const agreeing = judgeClocks(null, at(0, noise));
      expect(agreeing).toEqual({ jump: null, wrong: null, suspect: null, partnerAheadMs: null });
      const wrong = { ...noise, [which]: ms + Math.sign(ms) * 30_000 };
      expect(judgeClocks(null, at(0, wrong)).wrong?.clock).toBe(which);
    }),
    { numRuns: runs(200) },
  );
});
