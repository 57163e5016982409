import { faultsOf, type Mutant } from './mutant.ts';

/** Faults in what is accepted as an origin or a setting, and in the judgement of health. */
export const JUDGEMENTS: readonly Mutant[] = [
  ...faultsOf(
    'src/partner/origin.ts',
    ['test/partner/origin.test.ts', 'test/security/ssrf.test.ts'],
    [
      'origin: one good address is enough',
      '!addresses.every(({ address }) => allowed(address))',
      '!addresses.some(({ address }) => allowed(address))',
    ],
    [
      'origin: a mapped address is public',
      '!(address.match(MAPPED) || address.match(NAT64))',
      '!address.match(NAT64)',
    ],
    ['origin: a listed origin reaches metadata services', '&& !address.match(METADATA_V6)', ''],
    [
      'origin: loopback is reached from anywhere',
      "return origins !== null || isLoopbackUrl(baseUrl) ? null : 'not-public';",
      'return null;',
    ],
    [
      'origin: a listed name may lead to loopback',
      "if (isLoopbackUrl(url)) return 'loopback';\n  return origins === null ? 'public'",
      "if (isLoopbackUrl(url) || origins !== null) return 'loopback';\n  return origins === null ? 'public'",
    ],
    [
      'origin: http is fine for files',
      "  if (target.protocol !== 'https:') return 'scheme';\n  const host",
      '  const host',
    ],
    ['origin: the host agent is public', 'end.toString() !== HOST_AGENT', 'true'],
  ),
  ...faultsOf(
    'src/status/progress.ts',
    ['test/status/health.test.ts', 'test/status/progress.test.ts', 'test/status/refused.test.ts'],
    [
      'health: a manifest that waits for a refusal to end has failed',
      'if (facts.pace.refusal !== null)\n    return filling(',
      'if (facts.pace.refusal === undefined)\n    return filling(',
    ],
    [
      'health: sync that has stopped is degraded',
      'overdue > STOPPED_SECONDS ? broken : degraded',
      'overdue > Infinity ? broken : degraded',
    ],
    [
      'health: the longest wait is that of a retry',
      '2 * Math.max(LONGEST_RETRY_SECONDS, targets.deltaIntervalSeconds)',
      '2 * Math.min(LONGEST_RETRY_SECONDS, targets.deltaIntervalSeconds)',
    ],
    ['health: a run that lasts for ever gets on', 'return held([longRun(facts, next)]);', 'return [];'],
    [
      'health: no call is answered, and nobody says so',
      'differs(facts), chainBroken(facts), stalled(facts)]),',
      'differs(facts), chainBroken(facts)]),',
    ],
    [
      "health: a chain that stays broken is nobody's",
      'differs(facts), chainBroken(facts), stalled(facts)]),',
      'differs(facts), stalled(facts)]),',
    ],
    [
      'health: a daemon that has just started stands still',
      'answeredSeconds ?? Infinity, dueSeconds, daemonSeconds)',
      'answeredSeconds ?? Infinity, dueSeconds)',
    ],
    [
      'health: what waits for a pause stands still',
      ' || incident || isPaused) return false;',
      ' || incident) return false;',
    ],
    ['health: refused requests stand still', 'pace.refusal !== null || incident', 'incident'],
    ['health: a clock that was set back is right', 'back !== null &&', 'false &&'],
    ['health: a clock that is ahead is right', 'aheadSeconds !== null &&', 'false &&'],
  ),
  ...faultsOf(
    'src/status/catalog.ts',
    ['test/status/health.test.ts', 'test/status/backlog.test.ts'],
    [
      'health: a hundredth pending is filling',
      'pending - unanswered > all * FILLING_PART',
      'pending - unanswered >= all * FILLING_PART',
    ],
    [
      'health: SKUs that fail each time are filling for ever',
      'pending - unanswered > all * FILLING_PART',
      'pending > all * FILLING_PART',
    ],
    [
      'health: SKUs that fail are not told of during a fill',
      'held([\n      failingSkus(counts, all),\n      filling(',
      'held([\n      filling(',
    ],
  ),
  ...faultsOf(
    'src/status/health.ts',
    ['test/status/health.test.ts'],
    ['health: the mildest reason decides', 'MIRROR_STATES.toReversed().flatMap', 'MIRROR_STATES.flatMap'],
    [
      'health: a wrong credential is degraded',
      "suspected === 'credential' || suspected === 'account' ? broken",
      "suspected === 'account' ? broken",
    ],
    ['health: without Postgres it is ready', "= ['postgres-unavailable', 'queues", "= ['queues"],
  ),
  ...faultsOf(
    'src/status/failing.ts',
    ['test/status/health.test.ts'],
    [
      'health: three failed calls are a state',
      'failedCalls < FAILURES_BEFORE_PAUSE)',
      'failedCalls < FAILURES_BEFORE_PAUSE - 1)',
    ],
    [
      'health: a manifest that fails is called a delta',
      "manifest: 'manifest-failing' } as const",
      "manifest: 'delta-failing' } as const",
    ],
    [
      'health: tasks fail beside refusals',
      'if (pace.refusal !== null || sync.manifestAppliedAt === null) return [];\n  const codes',
      'if (sync.manifestAppliedAt === null) return [];\n  const codes',
    ],
  ),
  ...faultsOf(
    'src/config/rules.ts',
    ['test/config.test.ts', 'test/config-texts.test.ts'],
    ['configuration: a share of nothing', '.gt(0).max(1)', '.gte(0).max(1)'],
    ['configuration: a duration of nothing', '.min(min ?? 1)', '.min(min ?? 0)'],
    [
      'configuration: a timer beyond what one can wait',
      'const LONGEST_TIMER = 24 * DAY_MS;',
      'const LONGEST_TIMER = 25 * DAY_MS;',
    ],
    ['configuration: a query in the base URL is ignored', '!/[?#]/.test(text) &&', ''],
    ['configuration: a secret with a newline is taken', '.refine((text) => !UNCLEAN.test(text))', ''],
    [
      'configuration: items of a list twice',
      '.pipe(z.array(z.string().min(1)))\n    .transform(unique)',
      '.pipe(z.array(z.string().min(1)))',
    ],
  ),
  ...faultsOf(
    'src/config/combinations.ts',
    ['test/config.test.ts', 'test/config-texts.test.ts'],
    [
      'configuration: a live budget above a call is taken',
      "budget <= max || !isGiven('BULK_LIVE_BUDGET')",
      "budget <= max || isGiven('BULK_LIVE_BUDGET')",
    ],
    ['configuration: a share of less than one request', 'limit * part >= 1', 'limit * part > 0'],
    ['configuration: the default live budget is above a smaller call', 'Math.min(budget, maxSkus)', 'budget'],
  ),
  ...faultsOf(
    'src/status/catalog.ts',
    ['test/status/mass-move.test.ts'],
    [
      'mass moves: many of no answers are said to show a fault',
      'const isCounted = implausible > 0;',
      'const isCounted = true;',
    ],
    [
      'mass moves: how far they go is said before that is stored',
      'return move === null',
      'return move !== null && move < 0',
    ],
  ),
];
