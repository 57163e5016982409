import { describe, expect, test } from 'vitest';
import type { CallInputs } from '../../src/store/call/bulk-call.ts';
import type { WantedSkus } from '../../src/store/ledger/claim.ts';
import { ANY_SIZE, type FailedKind } from '../../src/sync/reprice/call-size.ts';
import {
  afterEnded,
  doubtStep,
  type EndedCall,
  isLiveAway,
  type LiveDoubt,
  mayBeOfLive,
  mayFailForSource,
  NO_DOUBT,
} from '../../src/sync/reprice/live-doubt.ts';
import { FIRST_PACKING } from '../../src/sync/reprice/packing.ts';
import {
  afterTurn,
  type CallTurns,
  FIRST_TURNS,
  type Iteration,
  planCall,
} from '../../src/sync/reprice/plan-call.ts';
import { QUIET_PLAN } from '../support/live-plan.ts';
import { settingsWith } from '../support/settings.ts';

const SETTINGS = settingsWith();
const HOUR = 3_600_000;
/** The last call was for SKUs of failed calls, or for a lone live SKU. */
const OTHERS_TURN = { ...FIRST_TURNS, suspectsLast: true };
const TRIED = { ...OTHERS_TURN, triedLast: true };
const live = (...skus: string[]) => skus.map((sku) => ({ sku, live: true }));
const OTHERS = [{ sku: 'S', live: false }];
const FULL = [...live('L1', 'L2'), ...OTHERS];

type Call = Partial<EndedCall> & Pick<EndedCall, 'asked'>;
const fails = (asked: Call['asked'], more: Partial<EndedCall> = {}): Call => ({
  asked,
  answered: false,
  ...more,
});
const works = (asked: Call['asked'], more: Partial<EndedCall> = {}): Call => ({
  asked,
  answered: true,
  ...more,
});

/** Returns the doubt after these calls. Each is sent when the one before has ended, unless it says otherwise. */
const after = (calls: readonly Call[], from = NO_DOUBT, at = 0): LiveDoubt =>
  calls.reduce<LiveDoubt>((doubt, call, n) => {
    const sentAt = call.sentAt ?? at + n * 10;
    return afterEnded(doubt, { answered: false, ...call, sentAt, endedAt: call.endedAt ?? sentAt + 10 });
  }, from);

describe('the doubt that calls fail because of their live SKUs', () => {
  test('bars live SKUs after two failures in a row, until a call without them works; then one is tried alone', () => {
    expect(doubtStep(after([fails(FULL)]))).toBeNull();
    const doubted = after([fails(FULL), fails(FULL)]);
    expect(doubtStep(doubted)).toBe('others');
    expect(doubtStep(after([fails(OTHERS)], doubted, 20))).toBe('others');
    expect(doubtStep(after([works(OTHERS)], doubted, 20))).toBe('try');
    expect(doubtStep(after([fails(FULL), works(FULL), fails(FULL)]))).toBeNull();
    expect(doubtStep(after([fails(OTHERS), fails(OTHERS), fails(OTHERS)]))).toBeNull();
  });

  test('counts calls that were under way together as one', () => {
    const together = { sentAt: 0, endedAt: 29 };
    expect(doubtStep(after([fails(FULL, together), fails(FULL, { sentAt: 16, endedAt: 45 })]))).toBeNull();
    const last = fails(FULL, { sentAt: 30, endedAt: 59 });
    expect(doubtStep(after([fails(FULL, together), fails(FULL, { sentAt: 16, endedAt: 45 }), last]))).toBe(
      'others',
    );
  });

  test('becomes an outage when two live SKUs fail alone while others are answered', () => {
    const calls = [fails(FULL), fails(FULL), works(OTHERS), fails(live('L1')), works(OTHERS)];
    expect(isLiveAway(after(calls))).toBe(false);
    expect(isLiveAway(after([...calls, fails(live('L2'))]))).toBe(false);
    expect(isLiveAway(after([...calls, fails(live('L2')), works(OTHERS)]))).toBe(true);
    // The same SKU twice may itself be the reason, and so may SKUs that came with others.
    expect(isLiveAway(after([...calls, fails(live('L1')), works(OTHERS)]))).toBe(false);
    expect(isLiveAway(after([...calls, fails(FULL), works(OTHERS)]))).toBe(false);
  });

  test('does not become an outage if others fail meanwhile: everything may be down', () => {
    const begun = after([fails(FULL), fails(FULL), works(OTHERS), fails(OTHERS), fails(live('L1'))]);
    expect(isLiveAway(after([works(OTHERS), fails(live('L2')), works(OTHERS)], begun, 50))).toBe(false);
    // Sent before the last one that failed: the outage may have begun since.
    const before = [
      fails(FULL),
      fails(FULL),
      works(OTHERS),
      fails(live('L1')),
      works(OTHERS),
      fails(live('L2')),
    ];
    expect(isLiveAway(after([...before, works(OTHERS, { sentAt: 45 })]))).toBe(false);
    const pausing = [fails(FULL), fails(FULL), fails(live('L1')), fails(live('L2')), works(OTHERS)];
    expect(isLiveAway(after(pausing))).toBe(false);
  });

  test('ends with an answered live SKU, and for an hour takes more failures to return', () => {
    const over = after([fails(FULL), fails(FULL), works(OTHERS), works(live('L1'))]);
    const five = [1, 2, 3, 4, 5].map(() => fails(FULL));
    expect(doubtStep(over)).toBeNull();
    expect(doubtStep(after(five.slice(1), over, 50))).toBeNull();
    expect(doubtStep(after(five, over, 50))).toBe('others');
    expect(doubtStep(after(five.slice(3), over, HOUR + 50))).toBe('others');
  });

  test('covers a failed live SKU as long as no daemon has computed one since it failed before', () => {
    const since = (computedAt: number | null, kind: FailedKind = 'timeout', isLive = true, failures = 1) =>
      mayFailForSource({ live: isLive, failures }, kind, { computedAt, now: HOUR }, SETTINGS.intervals);
    expect([null, HOUR - 60_000, HOUR - 59_000].map((at) => since(at))).toEqual([true, true, false]);
    // The wait doubles each time, but counts as no longer than LIVE_INTERVAL.
    const minutes = (count: number) => HOUR - count * 60_000;
    const again = [minutes(3), minutes(4)].map((at) => since(at, 'timeout', true, 3));
    const often = [minutes(29), minutes(30)].map((at) => since(at, 'timeout', true, 12));
    expect([...again, ...often]).toEqual([false, true, false, true]);
    expect(since(null, 'bad-request')).toBe(false);
    expect(since(null, 'not-stored')).toBe(false);
    expect(since(null, 'timeout', false)).toBe(false);
  });

  test('considers only failures that the contents of a call may cause', () => {
    const kinds = ['timeout', 'service-fault', 'network', 'no-skus-read', 'bad-request', 'aborted'] as const;
    expect(kinds.filter(mayBeOfLive)).toEqual(['timeout', 'service-fault', 'network']);
  });
});

test('a try is not a turn of the others, suspects get every second turn, and lanes advance only with quotas', () => {
  const packing = { ...FIRST_PACKING, liveLast: true };
  const call = (wanted: WantedSkus) => ({
    lone: wanted.lone !== undefined,
    wanted,
    ...(wanted.quotas === undefined ? {} : { packing }),
  });
  const [tried, suspected, usual] = [
    call({ lone: { earlySeconds: 0 } }),
    call({ suspects: [{ largestCall: 1, live: false, count: 1 }] }),
    call({ quotas: [] }),
  ];
  const after = [tried, suspected, tried, usual, suspected].reduce<CallTurns[]>(
    (turns, made) => [...turns, afterTurn(turns.at(-1) ?? FIRST_TURNS, made)],
    [],
  );
  expect(after).toEqual([
    { packing: FIRST_PACKING, triedLast: true, suspectsLast: false },
    { packing: FIRST_PACKING, triedLast: false, suspectsLast: true },
    { packing: FIRST_PACKING, triedLast: true, suspectsLast: true },
    { packing, triedLast: false, suspectsLast: false },
    { packing, triedLast: false, suspectsLast: true },
  ]);
});

describe('the next call', () => {
  const NOW = 10 * HOUR;
  const lanes = (counts: { live?: number; others?: number }): CallInputs['due'] =>
    [
      { lane: 'live' as const, live: true, count: counts.live ?? 0 },
      { lane: 'sweep' as const, live: false, count: counts.others ?? 0 },
    ].filter(({ count }) => count > 0);
  const suspects = (largestCall: number, of: { live?: number; others?: number }): CallInputs['suspects'] =>
    lanes(of).map((each) => ({ largestCall, live: each.live, count: each.count }));

  function plan(
    inputs: Partial<CallInputs>,
    iteration: Partial<Iteration>,
    outageSince: number | null = null,
  ) {
    const all: CallInputs = {
      pause: { ms: 0, failures: 0, rejections: 0 },
      sync: { liveBudget: null, catalogState: 'ok' },
      livePlan: { ...QUIET_PLAN, outageSince, now: NOW },
      callSize: { step: 0, ...ANY_SIZE },
      due: lanes({ live: 100, others: 100 }),
      suspects: [],
      nextDueMs: 0,
      candidates: [],
      untried: null,
      watchlistMoved: false,
      scopeMoved: false,
      hintsCame: false,
      refreshesCame: false,
      ...inputs,
    };
    const planned = planCall(all, { turns: OTHERS_TURN, sinceLastCallMs: Infinity, ...iteration }, SETTINGS);
    if (planned.kind !== 'planned') return planned;
    if (planned.wanted.lone !== undefined) return { live: 1, others: 0, lone: planned.lone };
    const asked = [...(planned.wanted.quotas ?? []), ...(planned.wanted.suspects ?? [])];
    const count = (isLive: boolean) =>
      asked.filter((each) => each.live === isLive).reduce((sum, each) => sum + each.count, 0);
    return { live: count(true), others: count(false), lone: planned.lone };
  }
  const failures = (count: number) => ({ pause: { ms: 0, failures: count, rejections: 0 } });

  test('usually has live SKUs and others', () => {
    expect(plan({}, {})).toEqual({ live: 5, others: 95, lone: false });
  });

  test('in doubt has no live SKU, or one alone at a time once others work', () => {
    const others = { live: 0, others: 100, lone: false };
    const alone = { live: 1, others: 0, lone: true };
    expect(plan({}, { doubt: 'others' })).toEqual(others);
    expect(plan(failures(2), { doubt: 'others' })).toMatchObject({ live: 0, others: 6 });
    expect(plan({}, { doubt: 'try' })).toEqual(alone);
    expect(plan({}, { doubt: 'try', loneUnderWay: true })).toEqual(others);
    expect(plan({}, { doubt: 'try', halfOpen: true })).toEqual(others);
    expect(plan(failures(1), { doubt: 'try' })).toMatchObject({ live: 0, others: 25 });
    const suspected = { due: lanes({ others: 100 }), suspects: suspects(50, { live: 9, others: 90 }) };
    expect(plan(suspected, { doubt: 'try' })).toEqual(alone);
    expect(plan(suspected, { doubt: 'others', turns: FIRST_TURNS })).toEqual({ ...others, others: 50 });
  });

  test('in doubt has live SKUs if nothing else is due, and after every second failure', () => {
    const due = lanes({ live: 100 });
    expect(plan({ due }, { doubt: 'others' })).toMatchObject({ live: 5 });
    // A lone suspect may be healthy, and nothing else may become due for long.
    const alone = { ...failures(1), suspects: suspects(1, { others: 3 }) };
    expect(plan({ due, ...alone }, { doubt: 'others' })).toMatchObject({ live: 0, others: 1 });
    const more = lanes({ live: 100, others: 40 });
    const many = expect.toSatisfy((others: number) => others > 1) as number;
    expect(plan({ due: more, ...alone }, { doubt: 'others' })).toMatchObject({ live: 0, others: many });
    expect(plan({ due }, { doubt: 'try', loneUnderWay: true })).toEqual({ kind: 'idle', nextInMs: 1000 });
    expect(plan(failures(3), { doubt: 'others' })).toMatchObject({ live: 1, others: 0 });
    expect(plan(failures(4), { doubt: 'others' })).toMatchObject({ live: 0, others: 1 });
  });

  test('in an outage has no live SKU except the one that is tried, in a call of its own', () => {
    const since = NOW - HOUR;
    expect(plan({}, {}, since)).toEqual({ live: 1, others: 0, lone: true });
    expect(plan({}, {}, NOW)).toEqual({ live: 0, others: 100, lone: false });
    expect(plan({}, { turns: TRIED }, since)).toEqual({ live: 0, others: 100, lone: false });
    expect(plan({ due: lanes({ live: 9 }) }, { turns: TRIED }, since)).toMatchObject({ lone: true });
    expect(plan(failures(4), {}, since)).toMatchObject({ live: 0, others: 1 });
    expect(plan({ due: lanes({ live: 9 }), ...failures(4) }, {}, since)).toMatchObject({ lone: true });
    expect(plan({ due: lanes({ live: 9 }) }, { halfOpen: true }, since)).toMatchObject({ lone: true });
    expect(plan({ due: lanes({ live: 9 }) }, { loneUnderWay: true }, since)).toEqual({
      kind: 'idle',
      nextInMs: 1000,
    });
    expect(plan({ due: lanes({ others: 9 }), suspects: suspects(1, { live: 1 }) }, {}, since)).toMatchObject({
      lone: true,
    });
    const waiting = plan({ due: [], suspects: suspects(50, { live: 9 }) }, {}, NOW);
    expect(waiting).toEqual({ kind: 'linger', forMs: expect.any(Number) as number });
  });
});
