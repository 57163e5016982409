import { faultsOf, type Mutant } from './mutant.ts';

const TRAPS = ['test/security/traps.e2e.test.ts'];

/** Faults that remove a protection of the mirror against others on the same server. */
export const SAFETY: readonly Mutant[] = [
  {
    breaks: 'session: the search path is as somebody has set it',
    file: 'src/store/connection/session.ts',
    from: "  search_path: 'pg_catalog',\n",
    to: '',
    tests: TRAPS,
  },
  {
    breaks: 'session: the URL can take a pin back',
    file: 'src/store/connection/session.ts',
    from: '!PINNED.has(nameOf(pair).toLowerCase()) &&\n      ',
    to: '',
    tests: ['test/store/session.test.ts'],
  },
  {
    breaks: 'session: dates are read as somebody has set it',
    file: 'src/store/connection/session.ts',
    from: "  DateStyle: 'ISO, MDY',\n",
    to: '',
    tests: TRAPS,
  },
  {
    breaks: 'session: the queues take settings as they come',
    file: 'src/queues/postgres-queues.ts',
    from: 'options: `${options} -c search_path',
    to: 'options: `-c search_path',
    tests: TRAPS,
  },
  {
    breaks: 'schemas of another role are taken',
    file: 'src/store/setup/migrations.ts',
    from: '  if (first !== undefined) throw new OccupiedError([first, ...others]);\n',
    to: '',
    tests: TRAPS,
  },
  {
    breaks: 'locks of our own: of two daemons that start at once none is the first',
    file: 'src/store/setup/instance.ts',
    from: '    return { instance: drawn, alone: await freeWhenAlone(connection, drawn) };\n',
    to: '    await register(connection, drawn);\n    return { instance: drawn, alone: await freeWhenAlone(connection, drawn) };\n',
    tests: ['test/store/instance.pg.test.ts'],
  },
  {
    breaks: 'locks of our own: the pace is locked where everybody can lock',
    file: 'src/pace/ledger.ts',
    from: "waitForLock(tx, 'pace')",
    to: "tx`select pg_advisory_xact_lock(hashtext('catalog_internal.pace'))`",
    tests: ['test/security/locks.e2e.test.ts'],
  },
  ...faultsOf(
    'src/store/history/changes.ts',
    ['test/store/delta-pieces.pg.test.ts', 'test/store/delta.pg.test.ts'],
    [
      'delta: a removed SKU keeps its prices',
      'with gone as (delete from catalog.prices where sku = any(${skus as string[]}) returning sku, size, price)',
      'with gone as (select sku, size, price from catalog.prices where sku = any(${skus as string[]}))',
    ],
    ['delta: prices that were null are moves', 'from gone where price is not null order', 'from gone order'],
  ),
  ...faultsOf(
    'src/store/sellers/watchlist.ts',
    ['test/store/unknown-skus.pg.test.ts', 'test/store/watchlist.pg.test.ts'],
    [
      'forget: a watched SKU',
      '  and not exists (select from catalog_internal.watched w where w.sku = s.sku)\n',
      '',
    ],
    ['forget: a listed SKU', '  not s.in_manifest and s.first', '  s.first'],
    ['forget: a SKU that had a price', 's.first_priced_at is null and ', ''],
    [
      'forget: a SKU that was named just now',
      's.asked_at < now() - make_interval',
      's.asked_at < now() + make_interval',
    ],
    ['forget: what somebody wants refreshed', "and not (d.reason = 'refresh' and d.due_at <= now())", ''],
  ),
  ...faultsOf(
    'src/store/connection/locks.ts',
    ['test/store/watchlist.pg.test.ts'],
    [
      'watchlist: two daemons read it at once',
      'for update skip locked`;\n      if (free',
      '`;\n      if (free',
    ],
  ),
  ...faultsOf(
    'src/store/sellers/watchlist.ts',
    ['test/sync/maintenance.pg.test.ts'],
    [
      'forget: one that is kept keeps back the others',
      'else pieces.push(piece.slice(half), piece.slice(0, half));',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/status/holders.ts',
    ['test/store/lock-holders.pg.test.ts'],
    [
      'lock holders: who waits is named, too',
      'where not exists (select from pg_locks l where l.pid = q.pid and not l.granted)',
      'where true',
    ],
    [
      'lock holders: who has the watchlist is not named',
      "(n.nspname, c.relname) = ('catalog', 'watchlist')",
      "(n.nspname, c.relname) = ('catalog', 'skus')",
    ],
    [
      'lock holders: who has a table of the ledger locked is not named',
      "ledger: ['catalog_internal']",
      'ledger: []',
    ],
    [
      'lock holders: tables of the ledger with any lock count',
      "and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')",
      "and l.mode <> 'None'",
    ],
    [
      'lock holders: sessions of the mirror that are at work are named',
      'own.pid = a.pid and coalesce(own.at_work, true)',
      'own.pid = a.pid and false',
    ],
    [
      'lock holders: sessions of the mirror that are frozen are not named',
      'own.pid = a.pid and coalesce(own.at_work, true)',
      'own.pid = a.pid',
    ],
    [
      'lock holders: a seller who acts as the role is not named',
      " and a.application_name like 'catalog-mirror%')\n    order by",
      ')\n    order by',
    ],
    [
      'lock holders: an error does not name who holds the lock',
      'if (!isLockNotAvailable(error) || error instanceof Locked) return error;',
      'if (error !== null) return error;',
    ],
  ),
  ...faultsOf(
    'src/partner/limits.ts',
    ['test/partner/limits.test.ts', 'test/partner/client.test.ts'],
    ['limits: nesting is not counted', "if (level > depth) return 'nesting';", ''],
    ['limits: levels never end', 'level -= 1', 'level -= 0'],
    ['limits: an escaped quote ends a string', 'if (char === BACKSLASH) at += 1;\n        else if', 'if'],
    ['limits: names do not count', 'char === COLON) parts += 1', 'char === COLON) parts += 0'],
    ['limits: a text is read in one go', 'const PIECE = 2 * MIB', 'const PIECE = 2000 * MIB'],
  ),
  ...faultsOf(
    'src/pace/policy.ts',
    ['test/pace/policy.test.ts'],
    [
      'permit: lapses when a minute at the server has more than the share',
      'LAPSES_AFTER_MS = 1000',
      'LAPSES_AFTER_MS = 2000',
    ],
  ),
  ...faultsOf(
    'src/pace/pacer.ts',
    ['test/sync/permits.pg.test.ts'],
    ['permit: never lapses', '- decidedAt > LAPSES_AFTER_MS', '- decidedAt > Infinity'],
    ['permit: none is had of a slow Postgres', 'if (hasLapsed || !ended.lapsed())', 'if (!ended.lapsed())'],
  ),
  ...faultsOf(
    'src/sync/reprice/reprice.ts',
    ['test/sync/permits.pg.test.ts'],
    ['permit: is used however late', 'if (!permit.lapsed()) return {', 'if (permit !== null) return {'],
    [
      'permit: a call of any size is the first after a back-off',
      'again.permit.halfOpen === permit.halfOpen',
      'again.permit !== permit',
    ],
    ['permit: one that lapsed keeps its place', '  await permit.cancel();\n  const again', '  const again'],
    ['permit: a claim that fails keeps it', 'orGivingBack(prepare, () => permit.cancel());', 'prepare();'],
    ['permit: where none is to be had, SKUs stay claimed', '() => release(ctx, claim),', 'async () => {},'],
    [
      'permit: SKUs of a claim that is not cut down stay claimed',
      'orGivingBack(cutDown, () => release(ctx, claimed));',
      'cutDown();',
    ],
  ),
];
