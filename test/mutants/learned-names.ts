import { faultsOf, type Mutant } from './mutant.ts';

const KEPT = ['test/store/learned-names.pg.test.ts'];
const RESTARTED = ['test/e2e/learned-names.e2e.test.ts'];

/**
 * Faults in what is stored of the names that the partner does not document. Not listed, because they have no
 * effect: a start that reads nothing about the form learns it from its first answer.
 */
export const LEARNED_NAMES: readonly Mutant[] = [
  ...faultsOf(
    'src/store/catalog/learned-names.ts',
    KEPT,
    ['learned names: the last to store has the last word', 'where l.step = excluded.step - 1', 'where true'],
    [
      'learned names: a field that was never missing is missing at each start',
      'case when missing_since is not null then (',
      'case when true then (',
    ],
    [
      'learned names: the other form is kept when the first is let go',
      'name = ${ALSO} and ${also === null} and',
      'name = ${ALSO} and false and',
    ],
    [
      'learned names: the hour of the other form is not kept',
      'case when ${also?.isMissing === true} then clock_timestamp() end',
      'null::timestamptz',
    ],
    [
      'learned names: that the other form is missing is not stored',
      'where (l.value, l.answers, l.missing_since is null)\n        is distinct from (excluded.value, excluded.answers, excluded.missing_since is null)',
      'where (l.value, l.answers) is distinct from (excluded.value, excluded.answers)',
    ],
    [
      'learned names: the hour of a field begins anew with whatever is learned in it',
      '        missing_since = case when excluded.missing_since is not null then coalesce(l.missing_since, excluded.missing_since) end,\n        learned_at = case when (l.value',
      '        missing_since = excluded.missing_since,\n        learned_at = case when (l.value',
    ],
    ['learned names: the other form is forgotten at each start', 'also: of(ALSO),', 'also: null,'],
    [
      'learned names: no answer without the field is noted',
      'case when ${isMissing} then clock_timestamp() end',
      'case when ${isMissing} then null::timestamptz end',
    ],
    [
      'learned names: the field of the first manifest stays',
      'on conflict (name) do update set value = excluded.value, step = l.step + 1, learned_at = excluded.learned_at\n  where l.value is distinct from excluded.value`',
      'on conflict (name) do nothing`',
    ],
    ['learned names: a field that has no name is remembered', 'where value is not null\n', 'where true\n'],
    [
      'learned names: the field is learned when it is missing',
      'case when (l.value, l.answers) is distinct from',
      'case when (l.value, l.answers) is not distinct from',
    ],
  ),
  ...faultsOf(
    'src/daemon/learned-names.ts',
    KEPT,
    [
      'learned names: the hour without the field begins with each start',
      'missingMs === null ? null : now - missingMs',
      'missingMs === null ? null : now',
    ],
    [
      'learned names: what was read before a change takes its place',
      'if (memory !== before || names.price?.step === step) return;',
      'if (names.price?.step === step) return;',
    ],
    [
      'learned names: the clock of Postgres counts while a daemon runs',
      'if (memory !== before || names.price?.step === step) return;',
      'if (memory !== before) return;',
    ],
    ['learned names: what another has learned is not read', '        await read();\n', ''],
  ),
  ...faultsOf(
    'src/store/catalog/tokens.ts',
    KEPT,
    [
      'learned names: one token that is rejected forgets its field',
      'if (isUnknown && breaks > 1)',
      'if (isUnknown)',
    ],
    [
      'learned names: a delta that is too large forgets the field of the token',
      'if (isUnknown && breaks > 1)',
      'if (breaks > 1)',
    ],
  ),
  ...faultsOf(
    'src/sync/delta.ts',
    ['test/sync/rejected-token.pg.test.ts'],
    [
      'learned names: whatever breaks the chain forgets the field of the token',
      "error.kind === 'snapshot-expired')",
      'true)',
    ],
  ),
  ...faultsOf(
    'src/store/setup/account.ts',
    KEPT,
    ['learned names: an adopted account is read by those of the other', "  'learned_names',\n", ''],
    [
      'learned names: a corrected address is read by those of the wrong one',
      '  await tx`delete from catalog_internal.learned_names`;\n',
      '',
    ],
    [
      'learned names: another key forgets them',
      "if (compared === 'other-partner') await takeOver",
      "if (compared !== 'same') await takeOver",
    ],
  ),
  ...faultsOf('src/store/catalog/baseline-merge.ts', KEPT, [
    'learned names: a manifest that is applied is not remembered',
    'if (readBy) await run(',
    'if (readBy && lines < 0) await run(',
  ]),
  ...faultsOf(
    'src/sync/manifest.ts',
    ['test/sync/manifest.pg.test.ts'],
    ['learned names: nobody tells by which fields a manifest was read', '      readBy: meta.readBy,\n', ''],
  ),
  ...faultsOf('drizzle/0047_learned_names.sql', KEPT, [
    'learned names: what a clock ahead has dated stays ahead',
    'WHERE missing_since > moment OR learned_at > moment;',
    'WHERE missing_since > moment AND learned_at < moment;',
  ]),
  ...faultsOf(
    'src/daemon/sync.ts',
    RESTARTED,
    ['learned names: a restart reads another member', '    formKeeper: names.formKeeper,\n', ''],
    ['learned names: a restart cannot read the manifest', '    knownFields: names.knownFields,\n', ''],
  ),
  ...faultsOf(
    'src/cli/doctor/discovery/shapes.ts',
    ['test/doctor/shapes.test.ts'],
    [
      'learned names: doctor reads another field than the mirror',
      'formOf(records.flat(), configured, held)',
      'formOf(records.flat(), configured)',
    ],
    [
      'learned names: doctor would have another field pinned',
      'Number(b === held?.field) - Number(a === held?.field)',
      '0 * Number(a === b)',
    ],
  ),
  ...faultsOf(
    'src/cli/doctor/discovery/shapes.ts',
    ['test/doctor/known-names.test.ts'],
    [
      'two forms: doctor reads all records by the first',
      'const own = formOfRecord(entries, form, other);',
      'const own = form;',
    ],
    [
      'two forms: doctor takes answers of the second alone for a change of form',
      'found.field === also.field;',
      'found === also;',
    ],
    [
      'two forms: doctor does not know the second that the mirror holds',
      'const readsOther = isHeld && also !== null;',
      'const readsOther = false;',
    ],
  ),
  ...faultsOf(
    'src/cli/doctor/discovery/prices.ts',
    ['test/doctor/known-names.test.ts'],
    [
      'learned names: doctor tells of a field that is there',
      'if (held === null || isHeld) return [];',
      'if (held === null) return [];',
    ],
    [
      'two forms: doctor believes two fields to be read',
      'if (field !== null && read > 0 && shapes.some((shape) => shape.read === 0)) {',
      'if (field === null && read > 0 && shapes.some((shape) => shape.read === 0)) {',
    ],
    [
      'two forms: doctor says of one form that there are two',
      'if (named === 0 || plain === 0) return',
      'if (named === 0 && plain === 0) return',
    ],
  ),
  ...faultsOf(
    'src/cli/doctor/postgres-facts.ts',
    ['test/store/learned-names.pg.test.ts'],
    ['two forms: doctor is not told of the second', 'also: heldAlso(memory, priceFields),', 'also: null,'],
  ),
  ...faultsOf(
    'src/cli/doctor/discovery/checks.ts',
    ['test/doctor/known-names.test.ts'],
    [
      'learned names: doctor reads a manifest by shape alone',
      'snapshotId ?? undefined, known };',
      'snapshotId ?? undefined };',
    ],
  ),
];
