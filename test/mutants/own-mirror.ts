import { faultsOf, type Mutant } from './mutant.ts';

const OWN = ['test/store/own-mirror.pg.test.ts'];

/** Faults that make a daemon write into the mirror of another account, or mistake one server for another. */
export const OWN_MIRROR: readonly Mutant[] = [
  ...faultsOf(
    'src/store/connection/own-mirror.ts',
    OWN,
    [
      "own mirror: another account's is its own",
      'to`coalesce((${to.unsafe(SALT)}) = ${boundMirror(pool)}::text, true)`',
      'to`coalesce(${boundMirror(pool)}::text is not null, true)`',
    ],
    [
      'own mirror: of a deleted row it is none',
      '`coalesce((${to.unsafe(SALT)}) = ${boundMirror(pool)}::text, true)`',
      '`coalesce((${to.unsafe(SALT)}) = ${boundMirror(pool)}::text, false)`',
    ],
    ['own mirror: the process goes on', '  own.replaced.abort(refusal);\n', ''],
  ),
  ...faultsOf(
    'src/store/setup/account.ts',
    OWN,
    [
      'account: a key that is issued anew makes it another one',
      "salt: compared === 'other-key' ? salt : null,",
      'salt: null,',
    ],
    [
      'account: a key is noted for another account',
      'if (known.salt !== null && known.salt !== boundMirror(sql)) refuseMirror(sql);\n',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/setup/account.ts',
    ['test/store/account.pg.test.ts'],
    ['account: the key tells nothing apart', "['other-partner', 'other-key']", "['other-partner']"],
  ),
  ...faultsOf(
    'src/cli/demo.ts',
    ['test/cli/mirror.e2e.test.ts'],
    [
      'demo: a loopback mirror is its own',
      'const isOurs = await refuseOthers(config, board, stopped).catch(namingDatabase);',
      'const isOurs = true;',
    ],
    ["demo: a sandbox's mirror is its own", '{ ...options, ...CREDENTIAL }', 'options'],
  ),
  ...faultsOf('src/store/setup/instance.ts', OWN, [
    "instance: it registers in another account's",
    " where ${ownMirror('$5')}\n",
    '\n  where $5 is null or true\n',
  ]),
  ...faultsOf(
    'src/store/ledger/claim.ts',
    OWN,
    [
      'ledger: of another account it is claimed before it is refused',
      'where mirror.own and d.ctid',
      'where d.ctid',
    ],
    ['ledger: the claim of another account is none', 'if (first?.own === false) refuseMirror(sql);\n', ''],
  ),
  ...faultsOf('src/store/connection/own-mirror.ts', OWN, [
    'ledger: a claim outlives the account',
    ',\n    (${SALT}))`;',
    ')`;',
  ]),
  ...faultsOf(
    'src/store/catalog/baseline.ts',
    [...OWN, 'test/store/unanswered-commit.pg.test.ts', 'test/store/two-manifests.pg.test.ts'],
    [
      "baseline: it is merged into another account's",
      'if (pool !== undefined && !own) refuseMirror(pool);\n',
      '',
    ],
    [
      'baseline: a COMMIT without an answer is read on any server',
      "case when ${PRESENT_SERVER} = $2 then pg_xact_status($1::xid8) = 'committed' end",
      "case when $2::text is not null then pg_xact_status($1::xid8) = 'committed' end",
    ],
    [
      'baseline: claims of another server are of this one',
      'superseded || (seenOn ?? server) !== server',
      'superseded',
    ],
    ['baseline: a COMMIT without an answer is none', 'return rows[0]?.committed === true;', 'return false;'],
  ),
  ...faultsOf('src/store/catalog/learned-names.ts', OWN, [
    "learned names: another account's are its own",
    '      where ${isOwnMirror(sql, sql)}\n',
    '',
  ]),
  ...faultsOf('src/store/ledger/tasks.ts', OWN, [
    "tasks: another account's are its own",
    ' and ${isOwnMirror(sql, sql)}\n',
    '\n',
  ]),
  ...faultsOf(
    'src/store/catalog/sync-state.ts',
    OWN,
    [
      "sync: the newest snapshot is another account's",
      '${seeing(sql, snapshot)} where ${isOwnMirror(sql, sql)}\n',
      '${seeing(sql, snapshot)}\n',
    ],
    [
      'sync: what is checked is another account’s',
      '      ) then catalog_fault end\n    where ${isOwnMirror(sql, sql)}`;',
      '      ) then catalog_fault end`;',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/delta.ts',
    [...OWN, 'test/store/delta-pieces.pg.test.ts', 'test/store/delta-dates.pg.test.ts'],
    ["delta: it is applied to another account's", 'if (sync?.own === false) refuseMirror(pool);\n', ''],
    ['delta: its parts are of any server', ' || (server !== null && found.server !== server)', ''],
    [
      'delta: it is dated by its COMMIT',
      'least(now(), ${askedAt ?? null}::timestamptz)',
      'least(now(), now() + 0 * (now() - ${askedAt ?? null}::timestamptz))',
    ],
    [
      'delta: one that was asked for earlier sets it back',
      'greatest(${saidAt}, case when delta_checked_at <= now() then delta_checked_at end)',
      '${saidAt}',
    ],
    [
      'delta: a time to come is one at which it was asked for',
      'case when delta_checked_at <= now() then delta_checked_at end)',
      'delta_checked_at)',
    ],
  ),
  ...faultsOf(
    'src/store/history/feed.ts',
    ['test/follow/restored.pg.test.ts'],
    [
      'feed: what a copy has shown is not asked after',
      'const checked = seen > after;',
      'const checked = false;',
    ],
  ),
];
