import { faultsOf, type Mutant } from './mutant.ts';

const MIGRATION = 'drizzle/0016_strange_databases.sql';
const PARAMETERS = 'drizzle/0042_parameters_and_corrections.sql';
const CHANGES = 'drizzle/0030_whole_changes.sql';
const CHUNKS = 'drizzle/0044_history_chunks.sql';

/** Faults in what a database knows about itself and about whose catalog it mirrors. */
export const DATABASES: readonly Mutant[] = [
  ...faultsOf(
    CHANGES,
    ['test/store/lineage.pg.test.ts', 'test/store/failover.pg.test.ts'],
    [
      'lineage: a copy of the database is the same one',
      'IS NULL OR present.database <> known.database OR present.system',
      'IS NULL OR present.system',
    ],
    [
      'lineage: a server that was started anew is the same one',
      'OR present.started <> known.started THEN',
      'THEN',
    ],
    [
      'lineage: two that go on from one state go on alike',
      'greatest(shifted + floor(random() * 1e9)::bigint, floor(',
      'greatest(shifted, 0 * floor(',
    ],
    ['lineage: the gap is not noted', 'WHERE forked_at < after AND after < resumed_at;', 'WHERE false;'],
    [
      'lineage: the last position before the gap is refused',
      'WHERE forked_at < after AND after < resumed_at;',
      'WHERE forked_at <= after AND after < resumed_at;',
    ],
  ),
  ...faultsOf(
    MIGRATION,
    ['test/store/sequences.pg.test.ts'],
    ['sequences: those of identity columns stay behind', "d.deptype IN ('a', 'i')", "d.deptype = 'a'"],
  ),
  ...faultsOf(
    CHUNKS,
    ['test/store/sequences.pg.test.ts'],
    [
      'sequences: a writer in another database goes on with those that it finds',
      'PERFORM catalog_internal.mend_sequences();',
      'NULL;',
    ],
  ),
  ...faultsOf(
    'drizzle/0051_changes_on_disk.sql',
    ['test/store/changes-on-disk.pg.test.ts'],
    [
      'changes: a crash takes back what was read',
      "= 'off' THEN\n    PERFORM set_config('synchronous_commit', 'local', true);\n  END IF;\n  LOCK TABLE catalog_internal.lock_changes IN EXCLUSIVE MODE;\n  PERFORM",
      "= 'off' THEN\n    NULL;\n  END IF;\n  LOCK TABLE catalog_internal.lock_changes IN EXCLUSIVE MODE;\n  PERFORM",
    ],
    [
      'changes: a crash takes back history that somebody else wrote',
      "= 'off' THEN\n    PERFORM set_config('synchronous_commit', 'local', true);\n  END IF;\n  LOCK TABLE catalog_internal.lock_changes IN EXCLUSIVE MODE;\n  RETURN",
      "= 'off' THEN\n    NULL;\n  END IF;\n  LOCK TABLE catalog_internal.lock_changes IN EXCLUSIVE MODE;\n  RETURN",
    ],
  ),
  ...faultsOf(
    'src/store/setup/migrations.ts',
    ['test/migrations/roles.pg.test.ts'],
    [
      'migrations: the library asks for the right to create a schema that is there',
      '  session.execute = () => Promise.resolve([] as never);\n',
      '',
    ],
    ['migrations: so does the mirror', 'if (!schema) await', 'await'],
  ),
  ...faultsOf(
    'src/store/connection/sql-errors.ts',
    ['test/store/refusals.test.ts'],
    [
      'errors: a statement that is not allowed is a database that lets nobody in',
      'if (!isConnectionLost(error)) return null;',
      '',
    ],
    [
      'errors: a number that is taken is the fault of the rows',
      'if (isNumberTaken(error) || isRoomMissing',
      'if (isRoomMissing',
    ],
    [
      'errors: a key of theirs is none',
      '/^(?:price_history(?:_\\d+)?|product_history|change_batches)_pkey$/',
      '/_pkey$/',
    ],
  ),
  {
    breaks: 'sequences: a daemon that goes on never sets them right',
    file: 'src/sync/maintenance.ts',
    from: "await steps.run('sequences', () => repairSequences(sql));",
    to: '',
    tests: ['test/sync/maintenance.pg.test.ts'],
  },
  ...faultsOf(
    CHUNKS,
    ['test/store/history-chunks.pg.test.ts'],
    [
      'history: an answer fails where the chunk ahead cannot be made',
      'IF ahead OR chunk <= (newest + needed) / 5000000 THEN',
      'IF true THEN',
    ],
    [
      'history: nobody is told that the chunk ahead cannot be made',
      'IF ahead OR chunk <= (newest + needed) / 5000000 THEN',
      'IF chunk <= (newest + needed) / 5000000 THEN',
    ],
    ['history: an answer waits for the chunk ahead', "'lock_timeout', '100ms'", "'lock_timeout', '0'"],
    [
      'history: a writer waits less after it has made a chunk',
      "PERFORM set_config('lock_timeout', patience, true);",
      'NULL;',
    ],
    [
      'history: a writer who comes to the end of a chunk makes no other',
      'CASE WHEN ahead THEN 5000000 ELSE 500000 END',
      'CASE WHEN ahead THEN 5000000 ELSE 0 END',
    ],
  ),
  ...faultsOf(
    PARAMETERS,
    ['test/follow/names.pg.test.ts'],
    [
      'followers: a session of another role holds what was held before the server was started',
      'a.backend_start IS NULL AND session_lives.began >= pg_postmaster_start_time()',
      'a.backend_start IS NULL',
    ],
    [
      'followers: a first copy is behind by the first change that waits',
      'IF f.after_sku IS NOT NULL AND behind > 0 THEN',
      'IF false THEN',
    ],
  ),
  ...faultsOf(
    MIGRATION,
    ['test/store/forgotten-skus.pg.test.ts'],
    [
      'deleted SKUs: their work stays',
      '  DELETE FROM catalog_internal.due WHERE due.sku = ANY (deleted);\n',
      '',
    ],
    [
      'deleted SKUs: nobody is told of their prices',
      'FROM priced WHERE price IS NOT NULL ORDER BY',
      'FROM priced WHERE false ORDER BY',
    ],
    [
      'deleted SKUs: a replica leaves ghosts',
      'ALTER TABLE catalog.skus ENABLE ALWAYS TRIGGER forget_with_skus;\n',
      '',
    ],
  ),
  ...faultsOf(
    MIGRATION,
    ['test/store/deleted-by-hand.pg.test.ts'],
    ['deleted SKUs: no more room is made than for an answer', 'needed => moves', 'needed => 0'],
  ),
  ...faultsOf(
    MIGRATION,
    ['test/migrations/keys.pg.test.ts'],
    ['keys: marks lock as the database sorts', '    ORDER BY s COLLATE "C"\n', '    ORDER BY s\n'],
    [
      'keys: what others were granted is lost',
      'FOR granted IN SELECT statement FROM kept_rights LOOP',
      'FOR granted IN SELECT statement FROM kept_rights WHERE false LOOP',
    ],
  ),
  ...faultsOf(
    MIGRATION,
    ['test/migrations/roles.pg.test.ts'],
    [
      'rights: what everybody may call stays so',
      'WHERE EXISTS (SELECT FROM aclexplode(acl) WHERE grantee = 0)',
      'WHERE false',
    ],
  ),
  ...faultsOf(
    'src/store/setup/migrations.ts',
    ['test/migrations/encoding.pg.test.ts'],
    [
      'encoding: a database that cannot store everything is taken',
      "if (found.ledger === 'none') await refuseEncoding(sql);",
      '',
    ],
  ),
  ...faultsOf(
    'src/store/setup/journal.ts',
    ['test/daemon/outdated.pg.test.ts'],
    [
      'migrations: an old daemon works on beside a later version',
      'coalesce(max(created_at) > ${newest}::float8, false)',
      'coalesce(max(created_at) > ${newest + 1}::float8, false)',
    ],
  ),
  ...faultsOf(
    'src/store/status/holders.ts',
    ['test/store/snapshot-holder.pg.test.ts'],
    [
      'snapshots: those of other roles are not seen by a plain one',
      'or backend_type is null and usesysid is not null',
      'or false',
    ],
  ),
  ...faultsOf(
    'src/store/connection/sql-errors.ts',
    ['test/store/refusals.test.ts'],
    [
      'answers: what the disk of Postgres fails of is the fault of the SKUs',
      "if (FILES_OF_SERVER.has(carried(error, 'routine') ?? '')) return null;",
      '',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/reprice.ts',
    ['test/sync/not-stored.pg.test.ts', 'test/sync/unstored.pg.test.ts'],
    [
      'answers: one that is never stored is asked for with each lease',
      'if (rejected === null) throw error;',
      'throw error;',
    ],
    ['answers: who is locked is right all the same', 'await markUnstored(ctx.sql, claim);', ''],
  ),
  ...faultsOf(
    'src/sync/reprice/failed-call.ts',
    ['test/sync/not-stored.pg.test.ts', 'test/sync/unstored.pg.test.ts'],
    [
      'answers: who is not stored is not named',
      "if (alone !== undefined && because === 'not-stored')",
      'if (false)',
    ],
    [
      'answers: who is not stored is right all the same',
      "if (because === 'not-stored') await markUnstored(sql, claim);",
      '',
    ],
  ),
  ...faultsOf(
    'src/store/connection/db.ts',
    ['test/sync/unstored.pg.test.ts'],
    [
      'answers: what fails after what has failed is told in its place',
      'errors.find((error) => sqlState(error) !== FAILED_BEFORE) ?? errors[0]',
      'errors.at(-1)',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/claim.ts',
    ['test/sync/unstored.pg.test.ts'],
    [
      'answers: one that is not stored counts as reported',
      "'metadata') then 'missed'",
      "'metadata', 'sweep') then 'changed'",
    ],
    ['answers: a spare one that is not stored is right', 'least(d.due_at, clock_timestamp())', 'd.due_at'],
  ),
  ...faultsOf(
    'src/store/setup/migrations.ts',
    ['test/cli/mirror.e2e.test.ts'],
    ["account: another partner's mirror is migrated before it is refused", 'await refuse?.(sql);', ''],
  ),
  ...faultsOf(
    'src/store/setup/account.ts',
    ['test/e2e/strange-databases.e2e.test.ts', 'test/store/account.pg.test.ts'],
    [
      'account: another partner is taken where there is a mirror',
      '((await hasMirror(tx)) || (await countDaemons(tx)) > 1)',
      '((await countDaemons(tx)) > 1)',
    ],
    [
      'account: replicas may have different partners',
      '((await hasMirror(tx)) || (await countDaemons(tx)) > 1)',
      '(await hasMirror(tx))',
    ],
    [
      'account: an adopted one begins with what is trusted',
      'due_at = least(due_at, now()),',
      'due_at = due_at,',
    ],
    [
      'account: an adopted one is spared where the other was asked',
      'asked_at = null, reported_at',
      'reported_at',
    ],
  ),
  ...faultsOf(
    'drizzle/0028_promises.sql',
    ['test/store/forgotten-skus.pg.test.ts'],
    [
      'deleted SKUs: watched ones are lost',
      "WHERE weight IS NOT NULL AND pending IS DISTINCT FROM 'mark' AND NOT EXISTS",
      'WHERE false AND NOT EXISTS',
    ],
  ),
];
