import { faultsOf, type Mutant } from './mutant.ts';

/** Tests of applying an answer, those that notice most faults first. */
export const APPLIED = [
  'test/store/claims-of-another-server.pg.test.ts',
  'test/store/ledger-corners.pg.test.ts',
  'test/store/answer-corners.pg.test.ts',
  'test/store/answers.pg.test.ts',
  'test/store/answers-guards.pg.test.ts',
  'test/store/due.pg.test.ts',
  'test/store/delta.pg.test.ts',
  'test/store/report-latency.pg.test.ts',
  'test/store/unlisted.pg.test.ts',
  'test/store/refresh.pg.test.ts',
  'test/store/answers-model.pg.test.ts',
];

/** Faults in what a spare slot leaves behind for a SKU that was not due. */
export const SPARE_SLOTS: readonly Mutant[] = faultsOf(
  'src/store/answer/writes.ts',
  ['test/store/spare-slots.pg.test.ts'],
  [
    'spare slots: an answer that nobody can read waits for the sweep',
    'then least(d.due_at, clock_timestamp())\n        when h.deferred',
    'then d.due_at\n        when h.deferred',
  ],
  [
    'spare slots: a deferred SKU waits for its sweep',
    'when h.deferred then least(d.due_at, clock_timestamp() + make_interval(secs => h.wait)) else',
    'else',
  ],
  [
    'spare slots: what nobody can read of a SKU is forgotten while that is out of scope',
    'then least(d.outside_due_at, clock_timestamp()) else',
    'then d.outside_due_at else',
  ],
  [
    'spare slots: what nobody can read makes SKUs that are out of scope due',
    'due_at = case when d.outside_due_at is not null then d.due_at\n        when h.because',
    'due_at = case when h.because',
  ],
  [
    'spare slots: an answer that nobody can read leaves a live price actionable',
    "and d.reason in ('live', 'again', 'metadata') then 'missed' else d.reason end,\n      lane",
    'and false then d.reason else d.reason end,\n      lane',
  ],
  [
    'spare slots: an error that says nothing takes the SKU out of its lane',
    "when h.blame is null and h.because in ('reported', 'omitted') and d.due_at > clock_timestamp() then d.lane",
    'when false then d.lane',
  ],
  [
    'spare slots: an erring SKU that is due stays in its lane',
    "h.because in ('reported', 'omitted') and d.due_at > clock_timestamp() then",
    "h.because in ('reported', 'omitted') then",
  ],
);

/** Faults in how the ledger settles answers. */
export const SETTLED: readonly Mutant[] = [
  ...faultsOf(
    'src/store/answer/writes.ts',
    APPLIED,
    [
      'answer: a SKU that is back keeps its time of removal',
      'removed_at = case when a.found then null else s.removed_at end',
      'removed_at = s.removed_at',
    ],
    [
      'answer: each refresh is the first',
      'then coalesce(s.first_priced_at, ${at}::timestamptz) else',
      'then ${at}::timestamptz else',
    ],
    [
      'answer: a price that moved while live is forgotten',
      'case when s.sku = any(${[...moved]}::text[]) then null else s.hash_before_live end',
      's.hash_before_live',
    ],
    [
      'answer: settles a mark that came after it was asked',
      'due_at = case when d.generation = a.generation then next.due_at else coalesce(d.outside_due_at, d.due_at) end',
      'due_at = next.due_at',
    ],
    [
      'answer: a newer mark loses its reason',
      "reason = case when d.generation = a.generation then next.reason when d.reason = 'scope' then 'changed' else d.reason end",
      'reason = next.reason',
    ],
    [
      'answer: an answered SKU keeps its failures',
      'deferrals = 0, failures = 0, last_error = null, largest_call = null,\n',
      'deferrals = 0, last_error = null, largest_call = null,\n',
    ],
    [
      'answer: an answered SKU keeps its error',
      'last_error = null, largest_call = null,',
      'largest_call = null,',
    ],
    [
      'answer: why a SKU fails is not written down',
      'last_error = case when h.deferred and own.deferrals > 0 then null else h.because end,',
      '',
    ],
    [
      'answer: an answered SKU stays suspected',
      'last_error = null, largest_call = null,',
      'last_error = null,',
    ],
    [
      'answer: a watched SKU that was removed is never asked again',
      '\n        and not exists (select from catalog_internal.watched w where w.sku = s.sku and w.weight is not null)',
      '',
    ],
    [
      'answer: a removed SKU that is listed again is never asked again',
      "s.state = 'removed' and not s.in_manifest\n",
      "s.state = 'removed'\n",
    ],
    [
      'answer: a listed SKU that is not found for once is so for days',
      'where s.in_manifest and a.lost_seconds',
      'where false and a.lost_seconds',
    ],
    [
      'answer: what nobody lists is asked again soon for a 0009',
      'where s.in_manifest and a.lost_seconds',
      'where a.lost_seconds',
    ],
    ['answer: a removed SKU is asked on', "'infinity'::timestamptz", '${after(next.notFoundMs)}'],
    [
      'answer: a deferred SKU counts as a failure',
      "case when h.deferred or h.blame = 'class' then d.failures\n        when h.blame = 'general'",
      "case when h.blame = 'general'",
    ],
    [
      'answer: an error that all share is counted against each',
      "when h.blame = 'general' then greatest(d.failures, 1) else",
      'else',
    ],
    [
      'answer: an error that all share is no error',
      "when h.blame = 'general' then greatest(d.failures, 1) else",
      "when h.blame = 'general' then d.failures else",
    ],
    [
      'answer: an erring SKU counts as deferred',
      'when not h.deferred then own.deferrals when own',
      'when own',
    ],
    [
      'answer: a deferred SKU goes to the lane of errors',
      'when h.deferred and own.deferrals = 0 and (h.because is null',
      'when false and (h.because is null',
    ],
    [
      'answer: a SKU that is deferred again keeps its place before all others',
      'when h.deferred and own.deferrals = 0 and (h.because is null',
      'when h.deferred and (h.because is null',
    ],
    [
      'answer: an error that all share takes a SKU out of its lane',
      "or h.blame in ('general', 'class') or d.lane = 0 then d.lane",
      'or d.lane = 0 then d.lane',
    ],
    ['answer: a deferred SKU does not count as live', 'live = d.live or h.deferred,', 'live = d.live,'],
    [
      'answer: live marks grow without end',
      'least(d.live_marks + 1, ${MAX_LIVE_MARKS}::int)',
      'd.live_marks + 1',
    ],
    [
      'answer: a postponed SKU keeps its claim',
      '    update catalog_internal.due d set\n      claim = null,\n      held_until = case when d.generation',
      '    update catalog_internal.due d set\n      held_until = case when d.generation',
    ],
  ),
];
