import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in what is read before a call, in the order of live refreshes, and in the catalog's counts. */
export const INPUTS: readonly Mutant[] = [
  ...faultsOf(
    'src/store/call/bulk-call.ts',
    [
      'test/store/call-inputs.pg.test.ts',
      'test/store/bulk-call.pg.test.ts',
      'test/store/unlisted.pg.test.ts',
    ],
    [
      'call inputs: what a lease has just freed is not counted',
      'select least(${constant(sql, limit)}, w.count + count(*)::int) as count',
      'select least(${constant(sql, limit)}, w.count + 0 * count(*)::int) as count',
    ],
    [
      'call inputs: counting goes beyond its limit',
      'select least(${constant(sql, limit)}, w.count + count(*)::int) as count',
      'select (w.count + count(*)::int) as count',
    ],
    [
      'call inputs: while stale, SKUs wait for their time',
      "case when f.catalog_state = 'stale' then l.stale",
      "case when f.catalog_state = 'none' then l.stale",
    ],
    [
      'call inputs: early minutes are seconds',
      'coalesce(f.early_minutes, 0) * 60',
      'coalesce(f.early_minutes, 0) * 1',
    ],
    [
      'call inputs: unlisted SKUs count before their time',
      "case when l.lane = ${laneOf(sql, 'live')} then now() else l.until end",
      'l.until',
    ],
    [
      'call inputs: suspects of the smallest calls come first',
      'order by s.largest_call desc, s.live desc',
      'order by s.largest_call, s.live desc',
    ],
    [
      'call inputs: a removed SKU is the next to come',
      "live = w.live and lane = w.lane and due_at < 'infinity'",
      'live = w.live and lane = w.lane',
    ],
    [
      'call inputs: the end of a wait wakes nobody',
      '      (select min(held_until) from catalog_internal.due where held_until > now()),\n',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/call/candidates.ts',
    ['test/store/call-inputs.pg.test.ts', 'test/store/bulk-call.pg.test.ts'],
    [
      'call inputs: candidates of a moment ago',
      's.asked_at <= clock_timestamp() - make_interval(secs => ${minutes * 60})',
      's.asked_at <= clock_timestamp() - make_interval(secs => 0 * ${minutes * 60})',
    ],
  ),
  ...faultsOf(
    'src/store/call/bulk-call.ts',
    ['test/store/due-floors.pg.test.ts'],
    [
      'floors: live SKUs that a delta reports stay behind them',
      'case when f.catalog = g.catalog then l.live end',
      'l.live',
    ],
    [
      'floors: SKUs that a delta reports stay behind them',
      'case when f.catalog = g.catalog then l.other end',
      'l.other',
    ],
    [
      'floors: what a lease has just freed is behind them',
      'union all select lane, live, due_at from released where largest_call is null',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/due-floors.ts',
    ['test/store/due-floors.pg.test.ts', 'test/sync/permits.pg.test.ts'],
    [
      'floors: no full pass follows',
      'const floors = isFull ?',
      'const floors = isFull && this.#fullAt < 0 ?',
    ],
    [
      'floors: a reading from before forgets what was given back',
      'if (from.resets !== this.#resets) return;',
      '',
    ],
    ['floors: a time of long ago is no time', 'return floor > 0 ? floor : null;', 'return floor;'],
  ),
  ...faultsOf(
    'src/sync/reprice/failed-call.ts',
    ['test/sync/permits.pg.test.ts'],
    [
      'floors: what is given back stays behind them',
      'skus, options);\n  floors.reset();\n',
      'skus, options);\n',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/claim.ts',
    ['test/store/due-floors.pg.test.ts'],
    [
      'floors: claims pass everything',
      'and d.due_at >= q.since and d.due_at <= now()',
      'and d.due_at <= now()',
    ],
  ),
  ...faultsOf(
    'src/status/health.ts',
    ['test/status/snapshot-held.test.ts', 'test/status/faces.pg.test.ts'],
    [
      'health: a snapshot that costs nothing is told',
      'holder === null || holder.deadVersions < MANY_VERSIONS',
      'holder === null',
    ],
  ),
  ...faultsOf(
    'src/store/live/live.ts',
    [
      'test/store/call-inputs.pg.test.ts',
      'test/store/live.pg.test.ts',
      'test/store/lesson.pg.test.ts',
      'test/sync/live-plan.pg.test.ts',
      'test/sync/incident.pg.test.ts',
    ],
    [
      'live plan: calls of long ago are of the last minute',
      "where called_at > now() - interval '1 minute'\n",
      "where called_at > now() - interval '9 minutes'\n",
    ],
    [
      'live plan: calls of the last minute are forgotten',
      "where called_at < now() - interval '10 minutes'`",
      "where called_at < now() - interval '10 seconds'`",
    ],
    [
      'live plan: a solution of before an incident is stored',
      'is not distinct from ${incidentSince}::float8`',
      'is not distinct from ${incidentSince}::float8 or true`',
    ],
    [
      'live plan: others joined in an incident were never priced',
      "or (${everything} and s.state = 'priced')",
      'or ${everything}',
    ],
    [
      'live plan: a watched SKU weighs as any',
      'coalesce(w.weight, 1)::float8 as weight, ${promisedMinutes(sql)}',
      '1::float8 as weight, ${promisedMinutes(sql)}',
    ],
  ),
  ...faultsOf(
    'src/store/live/limits.ts',
    ['test/store/lesson.pg.test.ts'],
    [
      'ceiling: a late one overwrites a newer one',
      'where step = ${step}::int - 1 and ${unplanned(',
      'where step >= ${step}::int - 1 and ${unplanned(',
    ],
    [
      'ceiling: credit grows through a block',
      'case when blocked_at is not null and ${blockedAt === null} then clock_timestamp() else credit_from end',
      'case when blocked_at is null and ${blockedAt === null} then clock_timestamp() else credit_from end',
    ],
  ),
  ...faultsOf(
    'src/store/live/order.ts',
    [
      'test/store/live-order.pg.test.ts',
      'test/store/call-inputs.pg.test.ts',
      'test/sync/incident.pg.test.ts',
      'test/sync/live-plan.pg.test.ts',
      'test/store/reported-live.pg.test.ts',
    ],
    [
      'live order: SKUs that are asked at the moment are moved',
      'd.sku > ${options.after} and d.claim is null and',
      'd.sku > ${options.after} and',
    ],
    [
      'live order: a report takes its SKU out of the urgent lane',
      "(d.reason = 'changed' and s.price_source = 'live' and",
      "(d.reason = 'changed' and",
    ],
    [
      'live order: what was asked for by name waits for its turn, because it was reported, too',
      "s.price_source = 'live' and d.rank < 'Infinity'",
      "s.price_source = 'live'",
    ],
    [
      'live order: what a manifest has told before it is forgotten with a crossing',
      'coalesce(d.generation - d.asked_generation, 0) <= 1',
      'true',
    ],
    [
      'live order: what was marked or decided meanwhile is overwritten',
      'where d.xmin::text = p.version and d.claim',
      'where d.claim',
    ],
    [
      'live order: what was learned is overwritten',
      'order by sku\n      on conflict (sku) do nothing',
      'order by sku\n      on conflict (sku) do update set alpha = excluded.alpha, beta = excluded.beta',
    ],
    [
      'live order: what counts as live for its deferrals goes back to a sweep',
      "d.reason = 'live' and d.live_left = 0 and",
      "d.reason = 'live' and",
    ],
    [
      'live order: live SKUs go back to a sweep',
      "state = 'priced' and price_source is distinct from 'live' offset 0",
      "state = 'priced' offset 0",
    ],
    [
      'live order: unlisted SKUs go back to a sweep',
      "case when not s.in_manifest then 'unlisted' when",
      "case when s.in_manifest is null then 'unlisted' when",
    ],
  ),
  ...faultsOf(
    'src/store/status/counts.ts',
    [
      'test/store/counts-corners.pg.test.ts',
      'test/store/catalog-counts.pg.test.ts',
      'test/store/unlisted.pg.test.ts',
      'test/store/trust.pg.test.ts',
    ],
    [
      'counts: a SKU that failed once is unanswered, priced or not',
      "where s.state = 'pending' and d.failures > 0",
      'where d.failures > 0',
    ],
    [
      'counts: a SKU that was never asked is unanswered',
      "'pending' and d.failures > 0",
      "'pending' and d.failures >= 0",
    ],
    [
      'counts: SKUs that are deferred are named as failing',
      "where due_at <= now() and put_off = 'error' order by",
      'where due_at <= now() order by',
    ],
    [
      'counts: those are named that have failed least',
      'order by failures desc, due_at',
      'order by failures, due_at',
    ],
    ['counts: a price at its target is not fresh', 'filter (where age <= target)', 'filter (where age < 0)'],
    [
      'counts: unlisted SKUs are as fresh as reported ones',
      'case when unreported then target.live else target.snapshot end as target',
      'target.snapshot as target',
    ],
    [
      'counts: deferred SKUs are counted by their reason',
      'coalesce(put_off, reason) as label',
      'reason as label',
    ],
    [
      'counts: metadata that is due makes prices stale',
      "and (d.due_at <= now() and d.reason not in ('metadata', 'again')\n",
      'and (d.due_at <= now()\n',
    ],
  ),
  ...faultsOf(
    'src/store/status/counts-reader.ts',
    ['test/store/counts-corners.pg.test.ts', 'test/store/catalog-counts.pg.test.ts'],
    [
      'counts: older ones overwrite newer ones',
      'where f.counted_at < excluded.counted_at or',
      'where f.counted_at is not null or',
    ],
    [
      'counts: a manifest does not outdate them',
      "last.countedInMs <= MADE_AT_ONCE_MS || last.outdated === true) return 'count'",
      "last.countedInMs <= MADE_AT_ONCE_MS) return 'count'",
    ],
    ['counts: large catalogs are counted all the time', "if (last.ageMs < rest) return 'show';", ''],
  ),
];
