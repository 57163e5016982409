import { faultsOf, type Mutant } from './mutant.ts';

const PACE = [
  'test/pace/policy.test.ts',
  'test/pace/late-requests.test.ts',
  'test/pace/corners.test.ts',
  'test/pace/limits.test.ts',
  'test/auth/evidence.test.ts',
];
const PLAN = [
  'test/sync/packing.test.ts',
  'test/sync/batch.test.ts',
  'test/sync/linger.test.ts',
  'test/sync/retries.test.ts',
];

/** Faults in the decisions about when a request leaves, what a bulk call carries, and which manifest is applied. */
export const DECISIONS: readonly Mutant[] = [
  ...faultsOf(
    'src/pace/policy.ts',
    PACE,
    ['pace: waits for as long as a clock that was ahead has written', 'Math.min(at, now + longestMs)', 'at'],
    [
      'pace: the guard of a short window is half a second',
      'return Math.min(500, limits.windowMs / 20);',
      'return Math.max(500, limits.windowMs / 20);',
    ],
    [
      'pace: as many sends as the share says, with the guard',
      '(windowMs + guardMs(limits))) - 1);',
      '(windowMs + guardMs(limits))));',
    ],
    [
      'pace: calls a minute in calls a window',
      '(sendsPerWindow(limits) * 60_000) / limits.windowMs',
      '(sendsPerWindow(limits) * limits.windowMs) / 60_000',
    ],
    ['pace: beside others nothing stays free', '- others - Math.ceil(limit * HEADROOM_PART);', '- others;'],
    [
      'pace: the floor is no floor',
      'Math.max(1, Math.floor(floor), left)',
      'Math.max(1, Math.min(Math.floor(floor), left))',
    ],
    [
      'pace: beside others the share does not count',
      'return Math.min(share, Math.max(1, Math.floor(floor), left));',
      'return Math.max(1, Math.floor(floor), left);',
    ],
    [
      'pace: a new account begins at the whole share',
      'ceiling: Math.max(1, sendsPerWindow(limits) / 2),',
      'ceiling: Math.max(1, sendsPerWindow(limits)),',
    ],
    [
      'pace: the ceiling is raised more slowly with a large share',
      'const raise = Math.max(5, limits.maxPerWindow / 24);',
      'const raise = Math.min(5, limits.maxPerWindow / 24);',
    ],
    [
      'pace: the ceiling grows beyond the share',
      'return Math.min(sendsPerWindow(limits), Math.max(1, state.ceiling) + raise * windows);',
      'return Math.max(1, state.ceiling) + raise * windows;',
    ],
    [
      'pace: a clock that was set back lowers the ceiling',
      'const windows = Math.max(0, now - state.raisedAt) / limits.windowMs;',
      'const windows = (now - state.raisedAt) / limits.windowMs;',
    ],
    [
      'pace: a send counts for no guard',
      'const recent = sends.filter((at) => at > now - span);',
      'const recent = sends.filter((at) => at > now - limits.windowMs);',
    ],
    [
      'pace: a half-open request is waited for for ever',
      'state.halfOpenSentAt !== null && now < state.halfOpenSentAt + HALF_OPEN_LOST_MS',
      'state.halfOpenSentAt !== null && now < Infinity',
    ],
    [
      'pace: a second half-open request goes at once',
      'state.halfOpenSentAt !== null && now < state.halfOpenSentAt + HALF_OPEN_LOST_MS',
      'state.halfOpenSentAt === now',
    ],
    [
      'pace: a half-open request goes into a full window',
      "    if (leaves !== undefined) return wait(leaves + span, 'window');\n    return { go: true, state: { ...state, halfOpenSentAt: now } };",
      "    if (leaves === now) return { go: false, at: leaves + span, because: 'window' };\n    return { go: true, state: { ...state, halfOpenSentAt: now } };",
    ],
    [
      'pace: a window holds one send more',
      'if (recent.length >= allowed) {',
      'if (recent.length > allowed) {',
    ],
    [
      'pace: a full window is asked again too early',
      'const leaves = recent[recent.length - allowed] ?? last;',
      'const leaves = recent[0] ?? last;',
    ],
    [
      'pace: a refusal of a request that was under way before begins another back-off',
      'isDated && request.sentAt <= state.refusedAt',
      'isDated && request.sentAt < 0',
    ],
    [
      'pace: refusals are passed over until the time to come is there at which a clock ahead has dated the last one',
      '(state.backoffUntil !== null || state.refusedAt <= now)',
      'true',
    ],
    [
      'pace: a refusal that comes once a back-off is over, of a request from before it, begins another one',
      '    refusedAt: state.refusedAt,\n',
      '    refusedAt: null,\n',
    ],
    [
      'pace: the first refusals in a row double the back-off',
      'backoffFor(limits, refusals - SUSPECT_AFTER)',
      'backoffFor(limits, refusals - 1)',
    ],
    [
      'pace: after a refusal it resumes at what was sent',
      'request.sendsInWindow / 2));',
      'request.sendsInWindow));',
    ],
    [
      'pace: when refusals began is forgotten',
      'refusedSince: refusals === 1 ? now : state.refusedSince,',
      'refusedSince: now,',
    ],
    [
      'pace: what was sent when refusals began is forgotten',
      'occupancy: refusals === 1 ? request.sendsInWindow : state.occupancy,',
      'occupancy: request.sendsInWindow,',
    ],
    [
      'pace: refusals of half-open requests lower where it resumes',
      'resumeAt: refusals === 1 ? resumeAt : state.resumeAt,',
      'resumeAt,',
    ],
    ['pace: any answer ends a back-off', 'if (!isHalfOpen) return state;', ''],
    [
      'pace: a half-open request that takes long never ends a back-off',
      'const isHalfOpen = isLast || (state.refusedAt !== null && request.sentAt > state.refusedAt);',
      'const isHalfOpen = isLast;',
    ],
    [
      'pace: a half-open request that takes long and says nothing lets another one go',
      'return isLast ? { ...state, halfOpenSentAt: null, backoffUntil: now + limits.backoffMs / 6 } : state;',
      'return { ...state, halfOpenSentAt: null, backoffUntil: now + limits.backoffMs / 6 };',
    ],
    [
      'pace: a half-open request without an answer ends the back-off',
      '  if (saysNothing(request.outcome))\n',
      "  if (request.outcome === '')\n",
    ],
    [
      'pace: after a back-off it goes on at the whole share',
      'ceiling: state.resumeAt ?? RESUME_FLOOR,',
      'ceiling: Math.max(state.ceiling, state.resumeAt ?? RESUME_FLOOR),',
    ],
    [
      'pace: the back-off has no upper bound',
      'Math.min(LONGEST_BACKOFF, 2 ** Math.max(0, doublings))',
      '2 ** Math.max(0, doublings)',
    ],
    [
      'pace: an account that is not configured is asked on',
      "[...AUTH_CLASS, 'account-not-configured']",
      '[...AUTH_CLASS]',
    ],
    [
      'pace: the floor is above the share',
      'Math.min(rate.floor, rate.share)',
      'Math.max(rate.floor, rate.share)',
    ],
  ),
  ...faultsOf(
    'src/pace/view.ts',
    PACE,
    [
      'pace: refusals within a window mean the credential',
      'if (state.refusals >= SUSPECT_AFTER && quiet)',
      'if (state.refusals >= SUSPECT_AFTER)',
    ],
    [
      'pace: the second refusal after a quiet window means the credential',
      'if (state.refusals >= SUSPECT_AFTER && quiet)',
      'if (state.refusals > 1 && quiet)',
    ],
    ['pace: half of the share is few', '< 0.5 ?', '<= 0.5 ?'],
  ),
  ...faultsOf(
    'src/pace/circuit-breaker.ts',
    ['test/pace/circuit-breaker.test.ts'],
    ['breaker: opens while all are refused', 'fleetPassed = fleet < times;', 'fleetPassed = fleet <= times;'],
    [
      'breaker: what was refused before a success counts',
      '      times = 0;\n      fleetPassed = false;',
      '      fleetPassed = false;',
    ],
    [
      'breaker: stays open although the credential has changed',
      '      fleetPassed = false;\n      openUntil = -Infinity;',
      '      fleetPassed = false;',
    ],
    ['breaker: suspects the credential at the first refusal', 'times < SUSPECT_AFTER', 'times < 1'],
  ),
  ...faultsOf(
    'src/pace/policy.ts',
    ['test/pace/circuit-breaker.test.ts', 'test/pace/fleet.test.ts'],
    [
      'pace: a refusal in a back-off of all concerns one daemon',
      'backoffUntil === null && (sentAt <= since',
      '(sentAt <= since',
    ],
    [
      'pace: a daemon takes its own requests for those of others',
      'sentSince(sends) > sentSince(own)',
      'sentSince(sends) > 0',
    ],
    [
      'pace: of two daemons that are refused at once one tries again',
      'sentAt <= since || sentSince',
      'sentSince',
    ],
  ),
  ...faultsOf(
    'src/pace/pacer.ts',
    ['test/pace/fleet.test.ts'],
    [
      'pace: a daemon with a wrong secret has all back off for ever',
      'const isAlone = isSuspected &&',
      'const isAlone = false &&',
    ],
    [
      'pace: after a refusal a daemon takes the requests before it for those of others',
      'this.#refusedAt = this.#clock.monotonic();\n    this.#events',
      'this.#sends = [];\n    this.#events',
    ],
    [
      'pace: a daemon takes its next request for that of another until it may send it',
      'if (considered.go) this.#sends = [...this.#sendsAt(now), now];',
      'if (considered.go) void this.#clock.sleep(9).then(() => (this.#sends = [...this.#sendsAt(now), now]));',
    ],
    [
      'pace: each request under way lengthens the back-off of a daemon alone',
      'return decidedAt > this.#refusedAt && this.#backOffAlone',
      'return this.#backOffAlone',
    ],
  ),
  ...faultsOf(
    'src/sync/manifest-decision.ts',
    ['test/sync/manifest-decision.test.ts'],
    [
      'manifest: any number of live SKUs is taken',
      'return liveCountDiffers(m) && !(isMiscounted && failures >= tries) ?',
      'return false ?',
    ],
    [
      'manifest: a partner that counts live SKUs otherwise has no baseline',
      'return liveCountDiffers(m) && !(isMiscounted && failures >= tries) ?',
      'return liveCountDiffers(m) ?',
    ],
    [
      'incident: counts of a shrunken catalog are believed',
      'return !isShrunk(offered.skuCount, manifestLines, minShare);',
      'return true;',
    ],
    [
      'incident: counts of an older snapshot are believed',
      "if (judgeOffer(offered, present) === 'older-snapshot') return false;",
      '',
    ],
    [
      'manifest: the same snapshot again is older',
      'generatedAt < present.snapshotGeneratedAt',
      'generatedAt <= present.snapshotGeneratedAt',
    ],
    [
      'manifest: a rejected token is downloaded again',
      'if (present.chainBrokenAt !== null && isRejected',
      'if (present.chainBrokenAt === null && isRejected',
    ],
    [
      'manifest: ten rejected lines refuse a small one',
      'm.rejected > REJECTED_TOLERATED &&',
      'm.rejected >= REJECTED_TOLERATED &&',
    ],
    [
      'manifest: one rejected line in a thousand refuses it',
      'm.rejected > m.lines * REJECTED_PART',
      'm.rejected >= m.lines * REJECTED_PART',
    ],
    ['manifest: more lines than announced are welcome', 'm.lines !== m.skuCount', 'm.lines < m.skuCount'],
    [
      'manifest: as many as may be missing are too many',
      'skus < before * minShare',
      'skus <= before * minShare',
    ],
    ['manifest: a confirmed one is refused', 'if (!m.shrinkConfirmed && isShrunk', 'if (isShrunk'],
  ),
  ...faultsOf(
    'src/sync/reprice/plan-call.ts',
    PLAN,
    [
      'plan: while stale, SKUs of seconds ago are asked again',
      'Math.max(0, intervalMs - Math.min(STALE_MIN_AGE_MS, intervalMs)) / 1000',
      'intervalMs / 1000',
    ],
    [
      'plan: while stale, SKUs wait for their time',
      "if (state !== 'stale') return none;",
      'if (state !== null) return none;',
    ],
    [
      'plan: the call of a plan lingers where something is urgent',
      "if (count(({ lane }) => lane === 'urgent' || lane === PROMISED) > 0) return 0;",
      '',
    ],
  ),
];
