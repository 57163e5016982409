import { faultsOf, type Mutant } from './mutant.ts';

const DUE = [
  'test/store/ledger-corners.pg.test.ts',
  'test/store/due.pg.test.ts',
  'test/store/due-model.pg.test.ts',
];

/**
 * Faults in deltas, in the ledger, in tasks, and in what calls leave behind. Not included: that a SKU reported as
 * snapshot-priced forgets its hash from before it was live; a price that moves removes that in any case.
 */
export const SQL: readonly Mutant[] = [
  ...faultsOf(
    'src/store/catalog/delta.ts',
    [
      'test/store/delta.pg.test.ts',
      'test/store/broken-chain.pg.test.ts',
      'test/store/schema.pg.test.ts',
      'test/hostile/deltas.pg.test.ts',
      'test/store/delta-pieces.pg.test.ts',
    ],
    [
      'delta: is applied to another token',
      'return sync?.token === token ? { at: sync.at, server: sync.server } : null;',
      'return sync === undefined ? null : { at: sync.at, server: sync.server };',
    ],
    [
      'delta: now_live alone reports nothing',
      'const reported = [...nowLive, ...changed',
      'const reported = [...changed',
    ],
    [
      'delta: the token moves with each piece',
      'applyPart(tx, part, {',
      'applyPart(tx, { ...part, end: delta }, {',
    ],
    [
      'delta: a piece is applied whoever has the token',
      'if (counts === null) return NOTHING;\n    add',
      'if (counts === null) continue;\n    add',
    ],
    [
      'delta: a fault of the catalog outlasts it',
      'catalog_fault = null, chain_breaks = 0`',
      'chain_breaks = 0`',
    ],
    [
      'delta: broken chains are counted for ever',
      'catalog_fault = null, chain_breaks = 0`',
      'catalog_fault = null`',
    ],
    [
      'delta: counts as read while there is more',
      'when snapshot_id = ${toSnapshot} or ${isEnd} then ${checkedAt}',
      'when snapshot_id is not null or ${isEnd} then ${checkedAt}',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/delta-reports.ts',
    [
      'test/store/delta.pg.test.ts',
      'test/store/broken-chain.pg.test.ts',
      'test/store/schema.pg.test.ts',
      'test/hostile/deltas.pg.test.ts',
      'test/store/delta-pieces.pg.test.ts',
    ],
    [
      'delta: a changed SKU keeps its hash',
      'price_source = excluded.price_source, hash = null,',
      'price_source = excluded.price_source,',
    ],
    [
      'delta: a SKU that is reported stays unlisted',
      'coalesce(s.hash, s.hash_before_live) end, in_manifest = true,',
      'coalesce(s.hash, s.hash_before_live) end,',
    ],
    [
      'delta: a removed SKU is not asked once more',
      "  await tx`select catalog_internal.mark_due(${skus as string[]}::text[], 'removed')`;\n",
      '',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/tokens.ts',
    ['test/store/broken-chain.pg.test.ts'],
    [
      'delta: a chain is broken anew by each answer',
      'where snapshot_id = ${token} and chain_broken_at is null',
      'where snapshot_id = ${token}',
    ],
    [
      'delta: a chain that breaks again asks at once',
      'breaks === 1 ? 0 : doubling(',
      'breaks >= 1 ? 0 : doubling(',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/claim.ts',
    [...DUE, 'test/sync/live-plan.pg.test.ts'],
    [
      'ledger: waiting SKUs are claimed by name',
      'where sku = any(${names}::text[]) and ${claimable(sql)} and',
      'where sku = any(${names}::text[]) and',
    ],
    [
      'ledger: the newest of a lane go first',
      'and d.due_at <= now() + make_interval(secs => q.early)\n        order by d.due_at limit',
      'and d.due_at <= now() + make_interval(secs => q.early)\n        order by d.due_at desc limit',
    ],
    ['ledger: rank does not count', 'order by d.rank desc, d.due_at limit', 'order by d.due_at limit'],
    [
      'ledger: suspects ride with others',
      "${claimable(sql, 'd')} and d.live = q.live and d.lane = q.lane\n",
      'd.held_until is null and d.live = q.live and d.lane = q.lane\n',
    ],
    [
      'ledger: what was saved up counts in full',
      'least(claim.asked_at, greatest(credit_from, claim.asked_at - make_interval(secs => ${mostSeconds})))',
      'least(claim.asked_at, credit_from + 0 * make_interval(secs => ${mostSeconds}))',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/due.ts',
    ['test/store/claims-of-another-server.pg.test.ts', ...DUE],
    [
      'ledger: a claim of another server is held by this one',
      ' and coalesce(${server ?? null}::text = ${presentServer(sql)}, true)`;',
      '`;',
    ],
    [
      'ledger: what a claim frees others hold',
      'sku = any(${skus as string[]}) and ${heldBy(sql, claim)} order',
      'sku = any(${skus as string[]}) and claim >= 0 order',
    ],
    [
      'ledger: waits that are not over end',
      'where held_until <= now()\n',
      "where held_until <= now() + interval '30 minutes'\n",
    ],
    [
      'ledger: a released SKU keeps its claim',
      'set held_until = null, claim = null\n    where d.ctid',
      'set held_until = null\n    where d.ctid',
    ],
    [
      'ledger: live SKUs are moved for their metadata',
      '${claimable(sql)} and not live and lane',
      '${claimable(sql)} and lane',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/tasks.ts',
    ['test/store/tasks.pg.test.ts', 'test/sync/outage.pg.test.ts', 'test/store/failed-calls.pg.test.ts'],
    [
      'tasks: one that runs is begun again',
      ' and (running_until is null or running_until <= clock_timestamp()) and ${isOwnMirror(sql, sql)}',
      ' and ${isOwnMirror(sql, sql)}',
    ],
    [
      'tasks: a lost run renews its lease',
      'interval(secs => ${leaseMs / 1000})\n    where task = ${task} and run = ${run}`;',
      'interval(secs => ${leaseMs / 1000})\n    where task = ${task} and ${run} is not null`;',
    ],
    [
      'tasks: a request that came meanwhile is lost',
      'next_at = case when next_at > started_at then next_at\n                  else clock_timestamp()',
      'next_at = case when next_at > clock_timestamp() then next_at\n                  else clock_timestamp()',
    ],
    [
      'tasks: one that was put off has failed',
      "when 'failed' then failures + 1 else failures end",
      'else failures + 1 end',
    ],
    [
      'tasks: failures outlast a success',
      "case ${end.how} when 'done' then 0 when",
      "case ${end.how} when 'done' then failures when",
    ],
    [
      'tasks: a failure is a success',
      "succeeded_at = case when ${end.how} = 'done' then clock_timestamp() else succeeded_at end",
      "succeeded_at = case when ${end.how} <> '' then clock_timestamp() else succeeded_at end",
    ],
    [
      'tasks: what is asked for keeps its failures',
      'set next_at = clock_timestamp(), failures = 0 where',
      'set next_at = clock_timestamp() where',
    ],
    [
      'pause: many calls go out into an outage',
      'when failures >= ${FAILURES_BEFORE_PAUSE} and exists (',
      'when failures < ${FAILURES_BEFORE_PAUSE} and exists (',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/tasks.ts',
    ['test/sync/outage.pg.test.ts'],
    [
      'pause: answers of other routes end any',
      'and (${after === null} or outcome = any(${[...(after ?? [])]}::text[]))`;',
      '`;',
    ],
    [
      'pause: its end frees SKUs that wait for another reason',
      'and held_until > now() and claim is null and failures = 0 and deferrals = 0',
      'and held_until > now() and claim is null',
    ],
    [
      'pause: its end leaves the SKU of the last try waiting',
      'update catalog_internal.due d set held_until = null from held h where d.sku = h.sku',
      'update catalog_internal.due d set held_until = d.held_until from held h where d.sku = h.sku',
    ],
  ),
  ...faultsOf(
    'src/partner/errors.ts',
    ['test/sync/outage.pg.test.ts'],
    [
      'pause: a maintenance page is what the partner has against the calls',
      "  'service-fault',\n  'unreadable',\n  'not-a-route',\n  'no-skus-read',\n];",
      "  'service-fault',\n];",
    ],
  ),
  ...faultsOf(
    'src/sync/ask.ts',
    ['test/sync/outage.pg.test.ts'],
    [
      'pause: a gateway that answered 400 to everything has the calls wait on',
      "asked.kind === 'answer' && failuresBefore > 0 ? null : OUTAGE_KINDS",
      'OUTAGE_KINDS',
    ],
    [
      'pause: a fault of the catalog ends any, where it came again',
      "asked.kind === 'answer' && failuresBefore > 0 ? null",
      'failuresBefore > 0 ? null',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/due.ts',
    ['test/store/failed-calls.pg.test.ts', 'test/sync/incident.pg.test.ts'],
    [
      'failed call: frees its SKUs at once in an outage',
      'held_until = case when ${holdMs > 0} then',
      'held_until = case when ${holdMs < 0} then',
    ],
    [
      'failed call: lets SKUs into larger calls',
      'largest_call = least(largest_call, ${largestCall}::smallint)',
      'largest_call = ${largestCall}::smallint',
    ],
  ),
  ...faultsOf(
    'src/store/call/call-lesson.ts',
    [
      'test/store/ledger-corners.pg.test.ts',
      'test/store/lesson.pg.test.ts',
      'test/store/failed-calls.pg.test.ts',
      'test/sync/incident.pg.test.ts',
    ],
    [
      'failed call: shortens a pause',
      'next_at = greatest(next_at, clock_timestamp()',
      'next_at = greatest(null, clock_timestamp()',
    ],
    [
      'lesson: an incident that another process ended begins again',
      'cause is not distinct from ${from}',
      'true or ${from} is null',
    ],
    ['lesson: an incident begins anew with each cause', 'coalesce(incident_since, now()) end', 'now() end'],
    [
      'lesson: a call that worked does not end the pause',
      "failures = case when task <> 'reprice' or ${worked} then 0 else failures end",
      "failures = case when task <> 'reprice' or ${worked} then failures else failures end",
    ],
    [
      'lesson: deferrals of long ago count',
      "called_at > now() - interval '5 minutes' and snapshot_deferred > 0",
      'snapshot_deferred > 0',
    ],
  ),
  ...faultsOf(
    'src/store/call/call-lesson.ts',
    ['test/store/lesson.pg.test.ts', 'test/store/failed-calls.pg.test.ts'],
    [
      'call size: a late lesson overwrites a newer one',
      'where step = ${size?.step ?? 0}::int - 1 and ${unplanned(',
      'where step >= ${size?.step ?? 0}::int - 1 and ${unplanned(',
    ],
  ),
  ...faultsOf(
    'src/store/setup/instance.ts',
    ['test/process/failpoints.e2e.test.ts'],
    [
      'start: what a daemon that was killed had claimed is put off',
      'set claim = null, held_until = null from claimed c',
      "set claim = null, held_until = null, due_at = due_at + interval '30 days' from claimed c",
    ],
  ),
];
