import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Explained } from '../../src/cli/show-explained.ts';
import { storyOf } from '../../src/cli/show-story.ts';

const AT = '2026-11-21T12:00:00Z';
const minutesAgo = (minutes: number) => new Date(Date.parse(AT) - minutes * 60_000).toISOString();

type Parts = {
  readonly [K in keyof Explained]?: Explained[K] extends object | null ? Partial<Explained[K]> : Explained[K];
};

const PROMISE = { max_age_seconds: 600, feasible: true, kept_share: 0.9996, because: null };

function explained(more: Parts = {}): Explained {
  const merged = <T extends object>(base: T, over: unknown): T => ({
    ...base,
    ...(over as Partial<T> | undefined),
  });
  return {
    sku: 'DD1391-100',
    at: AT,
    state: more.state ?? 'priced',
    price_source: 'live',
    in_manifest: true,
    scope: null,
    product: { name: 'Dunk Low', brand: 'Nike', model: 'Dunk', size_type: 'US', refreshed_at: minutesAgo(5) },
    answer: merged(
      {
        asked_at: minutesAgo(5),
        because: 'live',
        priced_at: minutesAgo(5),
        first_priced_at: minutesAgo(90),
        age_seconds: 300,
      },
      more.answer,
    ),
    report: merged(
      { reported_at: null, removed_at: null, asked_since: false, again_at: null, missed_moves: 0 },
      more.report,
    ),
    trust: merged(
      {
        p_right: 0.93,
        size_p_right: 0.981,
        confidence: 0.95,
        actionable: false,
        doubt: null,
        doubted: null,
        stale: false,
        past_target: false,
        target_seconds: 1800,
      },
      more.trust,
    ),
    belief: merged(
      {
        cohort: 'live',
        minutes_between_changes: 66,
        own_rate: true,
        moved_with_line: null,
        hinted_by: null,
        sizes_that_move: 0.25,
        looks: 12_345,
        right_share: 0.931,
        claimed_share: 0.934,
      },
      more.belief,
    ),
    next: merged(
      {
        look_at: minutesAgo(-8),
        due_at: minutesAgo(-8),
        reason: 'live',
        is_due: false,
        lane: null,
        under_way: false,
        held_until: null,
        deferrals: 0,
        failures: 0,
        last_error: null,
        watched: null,
      },
      more.next,
    ),
    promise: more.promise === undefined ? null : merged(PROMISE, more.promise),
    prices: [
      {
        size: '7',
        price: 4100,
        since: minutesAgo(5),
        actionable: true,
        before: { price: 4000, until: minutesAgo(5) },
      },
      { size: '8', price: null, since: minutesAgo(90), actionable: false, before: null },
    ],
  };
}
const said = (more?: Parts) => storyOf(explained(more), null).join('\n');

test('one screen shows where the numbers come from', () => {
  expect(storyOf(explained(), null)).toEqual([
    'SKU       DD1391-100, Dunk Low, Nike, Dunk',
    'state     priced, live-priced, in the manifest',
    'answer    asked 5m ago because its turn among the live SKUs had come',
    'report    the delta has never reported it',
    'right     all sizes 93.0 %, each size 98.1 %; not actionable as a whole: less than 0.95 (ACTIONABLE_CONFIDENCE)',
    'believed  a change every 66m, with 25.0 % of its sizes, learned from its own refreshes',
    'tested    cohort "live": 93.1 % right (claimed 93.4 %) in 12,345 refreshes',
    'next      expected in 8m: live',
    '',
    'size  price  actionable  since    before',
    '----  -----  ----------  -------  ------------------',
    '7     4,100  yes         5m ago   4,000 until 5m ago',
    '8     none   no          90m ago',
  ]);
});

describe('the story of a SKU includes', () => {
  test.each<[Parts, string]>([
    [
      {
        trust: {
          doubt: 'implausible',
          doubted: { oddity: 'jump', since: minutesAgo(3), before: { 41: 4100, 42: 4300 } },
        },
      },
      'a size is three times as dear as it was, or a third, 3m ago; before: 41: 4,100, 42: 4,300',
    ],
    [
      { trust: { doubt: 'mass-move', doubted: { oddity: null, since: minutesAgo(3), before: {} } } },
      'it moved while prices of many SKUs moved implausibly, 3m ago; before: no price',
    ],
    [{ trust: { doubt: 'owed' } }, 'doubt "owed": a refresh is due'],
    [{ promise: {} }, 'promise   asked again before its price is 10m old; kept in 99.9 % of the last day'],
    [
      { promise: { kept_share: null, because: 'the account cannot' } },
      'no refresh has tested that yet; at present: the account cannot',
    ],
    [{ trust: { actionable: true } }, '; actionable'],
    [
      { trust: { p_right: null, size_p_right: null, doubt: 'pending' } },
      'not known; not actionable, doubt "pending"',
    ],
    [{ answer: { asked_at: null, priced_at: null } }, 'the partner was never asked'],
    [{ answer: { priced_at: minutesAgo(60) } }, 'with a price 60m ago'],
    [{ answer: { priced_at: null } }, 'never with a price'],
    [{ answer: { because: null } }, 'answer    asked 5m ago\n'],
    [{ report: { reported_at: minutesAgo(2) } }, 'reported it 2m ago, and it was not asked about since'],
    [{ report: { reported_at: minutesAgo(9), asked_since: true } }, 'and it was asked about since'],
    [
      { report: { reported_at: minutesAgo(9), asked_since: true, again_at: minutesAgo(-8) } },
      'asked about since; a cache may have answered, so it is asked once more (in 8m)',
    ],
    [
      { report: { missed_moves: 1 } },
      'never reported it; it has left out a change, so the SKU is asked about as a live one is',
    ],
    [
      { report: { reported_at: minutesAgo(2), missed_moves: 3 } },
      'not asked about since; it has left out 3 changes, so the SKU is asked about as a live one is',
    ],
    [{ report: { removed_at: minutesAgo(9) } }, 'removed 9m ago'],
    [{ belief: { own_rate: false } }, 'as SKUs of which nothing is known'],
    [
      { belief: { moved_with_line: 0.6 } },
      'SKUs of its brand and model move at present: it has, too, with 60.0 %',
    ],
    [
      {
        belief: {
          hinted_by: [
            { source: 'orders', at: minutesAgo(2), moved: 0.52 },
            { source: 'sales', at: minutesAgo(1), moved: 0.3 },
          ],
        },
      },
      'hinted    by orders 2m ago (right 52.0 % of the time), sales 60s ago (right 30.0 % of the time)\n',
    ],
    [
      {
        belief: {
          hinted_by: Array.from({ length: 7 }, (_, n) => ({ source: `s${n}`, at: minutesAgo(2), moved: 0 })),
        },
      },
      's4 2m ago (right 0.0 % of the time), 2 more\n',
    ],
    [{ belief: { minutes_between_changes: null } }, 'when a snapshot is built'],
    [{ belief: { looks: null, right_share: null, claimed_share: null } }, 'no refresh has tested the cohort'],
    [{ next: { under_way: true } }, 'being asked at this moment'],
    [{ next: { look_at: null } }, 'due in 8m, no estimate'],
    [{ next: { look_at: null, due_at: null } }, 'no refresh is planned'],
    [
      { next: { deferrals: 2, failures: 1, is_due: true } },
      'live, due, deferred 2 times in a row, failed 1 time in a row',
    ],
    [
      { next: { failures: 2, last_error: 'reported' } },
      'failed 2 times in a row (the partner has it in `errors`)',
    ],
    [
      { next: { failures: 3, last_error: 'call-timeout' } },
      'failed 3 times in a row (calls with it alone fail: timeout)',
    ],
    [{ next: { deferrals: 4, failures: 1, last_error: 'ceiling' } }, 'failed 1 time in a row'],
    [{ next: { look_at: minutesAgo(1) } }, 'expected now'],
    [{ next: { watched: 10 } }, 'watched with weight 10'],
  ])('%j', (more, text) => expect(said(more)).toContain(text));

  const columns = readFileSync('drizzle/objects/views/catalog.sku_trust.sql', 'utf8');
  const valuesOf = (column: string) =>
    (
      new RegExp(`COMMENT ON COLUMN catalog.sku_trust.${column} IS '(.*?)';`).exec(columns)?.[1] ?? ''
    ).replace(/^[^:]*: /, '');

  test('the meaning of each reason', () => {
    const reasons =
      valuesOf('owed_reason')
        .split(/; null/)[0]
        ?.split(', ')
        .map((word) => word.split(' ')[0] ?? '') ?? [];
    expect(reasons).toContain('sweep');
    for (const reason of reasons)
      expect(said({ answer: { because: reason } })).not.toMatch(new RegExp(`because ${reason}$`, 'm'));
  });

  test('the meaning of each doubt', () => {
    const doubts = [...columns.matchAll(/THEN '(\w+)'/g)]
      .map(([, doubt = '']) => doubt)
      .filter((doubt) => !['deferred', 'error'].includes(doubt));
    expect(doubts).toContain('past_target');
    for (const doubt of [
      ...doubts,
      'pending',
      'not_found',
      'removed',
      'no_baseline',
      'catalog_stale',
      'delta_late',
      'implausible',
      'mass-move',
    ])
      expect(said({ trust: { doubt } })).not.toContain('see catalog.sku_trust');
  });
});

test('if rules define the scope, the line names the rule that decides', () => {
  const line = (scope: Explained['scope']) =>
    storyOf({ ...explained(), scope }, null).find((text) => text.startsWith('scope'));
  const brand = { kind: 'brand', value: 'nike', include: true };
  expect(line(null)).toBeUndefined();
  expect(line({ in_scope: true, asked_for_metadata: false, rules: [brand] })).toBe(
    'scope     in: by the rule for brand "nike"',
  );
  const own = { kind: 'sku', value: 'A', include: false };
  expect(line({ in_scope: false, asked_for_metadata: false, rules: [own, brand] })).toBe(
    'scope     out: by the rule for sku "A", before brand "nike" (in)',
  );
  expect(line({ in_scope: false, asked_for_metadata: true, rules: [] })).toBe(
    'scope     out: no rule of catalog.scope matches; it is asked once for its metadata, which a rule needs',
  );
});
