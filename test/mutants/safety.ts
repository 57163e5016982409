import type { Mutant } from './mutant.ts';

const TRAPS = ['test/security/traps.e2e.test.ts'];

/** Each takes back something that keeps others on the server out of the mirror's way. */
export const SAFETY: readonly Mutant[] = [
  {
    breaks: 'session: the search path is as somebody has set it',
    file: 'src/store/session.ts',
    from: "  search_path: 'pg_catalog',\n",
    to: '',
    tests: TRAPS,
  },
  {
    breaks: 'session: the URL can take a pin back',
    file: 'src/store/session.ts',
    from: '!PINNED.has(nameOf(pair)) && ',
    to: '',
    tests: ['test/store/session.test.ts'],
  },
  {
    breaks: 'session: dates are read as somebody has set it',
    file: 'src/store/session.ts',
    from: "  DateStyle: 'ISO, MDY',\n",
    to: '',
    tests: TRAPS,
  },
  {
    breaks: 'session: the queues take settings as they come',
    file: 'src/queues/backend.ts',
    from: 'const settings = { connectionString, ...session,',
    to: 'const settings = { connectionString, ssl: session.ssl,',
    tests: TRAPS,
  },
  {
    breaks: 'schemas of another role are taken',
    file: 'src/store/migrations.ts',
    from: '    await refuseSchemasOfOthers(sql);\n',
    to: '',
    tests: TRAPS,
  },
  {
    breaks: 'locks of our own: of two daemons that start at once none is the first',
    file: 'src/store/instance.ts',
    from: '  const alone = await freeWhenAlone(client, instance);\n',
    to: '  await client.query(REGISTER, [instance.number]);\n  const alone = await freeWhenAlone(client, instance);\n',
    tests: ['test/store/instance.pg.test.ts'],
  },
  {
    breaks: 'locks of our own: the pace is locked where everybody can lock',
    file: 'src/pace/ledger.ts',
    from: "takeTurn(tx, 'pace')",
    to: "tx`select pg_advisory_xact_lock(hashtext('catalog_internal.pace'))`",
    tests: ['test/security/locks.e2e.test.ts'],
  },
];
