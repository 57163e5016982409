import type { Mutant } from './mutant.ts';

const REFUSED = ['test/sync/refused-calls.pg.test.ts'];

/** Faults in what is concluded from a refused call. */
export const REFUSED_CALLS: readonly Mutant[] = [
  {
    breaks: 'refusals: SKUs whose call is refused are never suspected',
    file: 'src/sync/reprice/failed-call.ts',
    from: '  if (!permit.beganBackoff()) return',
    to: '  if (true) return',
    tests: REFUSED,
  },
  {
    breaks:
      'refusals: the first request after a back-off, and all that are under way, make their SKUs suspects',
    file: 'src/sync/reprice/failed-call.ts',
    from: '  if (!permit.beganBackoff()) return',
    to: '  if (false) return',
    tests: REFUSED,
  },
  {
    breaks: 'refusals: a SKU that was in errors is blamed as soon as it is refused',
    file: 'src/sync/reprice/failed-call.ts',
    from: 'mayBlame: hadFailed, failure: error.kind',
    to: 'mayBlame: true, failure: error.kind',
    tests: REFUSED,
  },
  {
    breaks: 'refusals: suspects wait for what is refused to all as for their own failures',
    file: 'src/sync/reprice/failed-call.ts',
    from: 'if (permit.halfOpen && hadFailed)\n    return',
    to: 'if (false)\n    return',
    tests: REFUSED,
  },
  {
    breaks: 'refusals: each half-open call has all that is due first',
    file: 'src/sync/reprice/reprice.ts',
    from: 'claim !== null && halfOpen\n',
    to: 'claim !== null && !halfOpen\n',
    tests: REFUSED,
  },
  {
    breaks: 'refusals: those that are drawn for a half-open call are the first ones',
    file: 'src/sync/reprice/failed-call.ts',
    from: 'drawn: ctx.random() }',
    to: 'drawn: at }',
    tests: REFUSED,
  },
  {
    breaks: 'refusals: a 401 suspects SKUs',
    file: 'src/partner/errors.ts',
    from: "|| kind === 'authorizer-fault';",
    to: "|| kind === 'authorizer-fault' || kind === 'unauthorised';",
    tests: REFUSED,
  },
  {
    breaks: 'refusals: a 429 suspects SKUs',
    file: 'src/partner/errors.ts',
    from: ' && status !== 429)',
    to: ')',
    tests: [...REFUSED, 'test/sync/outcome.test.ts'],
  },
  {
    breaks: 'refusals: of suspects the urgent ones come last',
    file: 'src/store/ledger/claim.ts',
    from: 'd.lane, d.rank desc, d.due_at limit q.count for update skip locked\n    ) p`',
    to: 'd.due_at limit q.count for update skip locked\n    ) p`',
    tests: REFUSED,
  },
  {
    breaks: 'refusals: the first request after a back-off is of suspects',
    file: 'src/sync/reprice/plan-call.ts',
    from: ' && iteration.halfOpen !== true;',
    to: ';',
    tests: REFUSED,
  },
  {
    breaks: 'refusals: the daemon that is nearest to Postgres has each half-open request',
    file: 'src/pace/pacer.ts',
    from: 'if (until === null || !this.#triedInVain',
    to: 'if (until !== 0 || !this.#triedInVain',
    tests: ['test/pace/fleet.test.ts'],
  },
  {
    breaks: 'refusals: a daemon that cannot reach the partner has each half-open request',
    file: 'src/pace/pacer.ts',
    from: 'this.#triedInVain = !letsThrough(outcome);',
    to: 'this.#triedInVain = refuses(outcome);',
    tests: ['test/pace/fleet.test.ts'],
  },
  {
    breaks: 'refusals: a daemon that is let through long since still gives way',
    file: 'src/pace/pacer.ts',
    from: 'if (halfOpen || letsThrough(outcome)) this.',
    to: 'if (halfOpen) this.',
    tests: ['test/pace/fleet.test.ts'],
  },
  {
    breaks: 'refusals: a daemon that gives each half-open request back has them all',
    file: 'src/pace/pacer.ts',
    from: '        this.#triedInVain ||= halfOpen;\n',
    to: '',
    tests: ['test/pace/pacer.pg.test.ts'],
  },
  {
    breaks: 'refusals: other services wait for as long as the credential of the mirror is wrong',
    file: 'drizzle/0082_refused_mirror.sql',
    from: 'p.episodes < 3 OR',
    to: 'true OR',
    tests: ['test/pace/take-request.pg.test.ts'],
  },
  {
    breaks: 'refusals: other services go on after three refusals within a window',
    file: 'drizzle/0082_refused_mirror.sql',
    from: 'OR coalesce(p.refused_at - p.refused_since < span, true)',
    to: '',
    tests: ['test/pace/take-request.pg.test.ts'],
  },
  {
    breaks: 'refusals: each half-open request of a suspected mirror meets what other services send',
    file: 'drizzle/0082_refused_mirror.sql',
    from: 'OR p.backoff_until < moment + span ',
    to: '',
    tests: ['test/pace/take-request.pg.test.ts'],
  },
  {
    breaks: 'refusals: other services go on for an account that is not configured',
    file: 'drizzle/0082_refused_mirror.sql',
    from: "OR p.refusal = 'account-not-configured'",
    to: '',
    tests: ['test/pace/take-request.pg.test.ts'],
  },
];
