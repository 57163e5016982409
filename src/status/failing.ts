import { formatAge } from '../lib/duration.ts';
import { count, plural } from '../lib/format.ts';
import { remedyOfKind } from '../store/connection/remedies.ts';
import { isPrivilegeLacking } from '../store/connection/sql-errors.ts';
import {
  type CallFaults,
  callFaults,
  DEFECT,
  FAILURES_BEFORE_PAUSE,
  type TaskName,
} from '../store/ledger/tasks.ts';
import { lackingText } from '../store/setup/privileges.ts';
import type { Facts } from './facts.ts';
import { DOCTOR, failuresOf } from './progress.ts';
import { degraded, held, type Reason } from './reason.ts';

/* What the last failures of calls and tasks say about the mirror's state. */

/** What to do if the mirror's role lacks privileges. */
const GRANT = '`catalog-mirror doctor` has the GRANT; it goes on by itself';

/** A single fault may be chance, such as a statement that an operator has cancelled. */
const FAULTS_TOLD = 2;

/**
 * Returns a reason if Postgres has refused statements of calls, or calls fail because of a defect: no answer is
 * stored.
 */
function faultyCalls({ kind, times }: CallFaults, lacking: Facts['lacking']): Reason | false {
  if (times < FAULTS_TOLD) return false;
  const none = 'since then no answer was stored';
  if (kind === DEFECT)
    return degraded(
      'calls-failing',
      `bulk calls are failing for an error of the daemon's own (${count(times)} times), and ${none}`,
      'see `job.failed` in the log, and report it',
    );
  const said = `Postgres refuses statements of bulk calls (SQLSTATE ${kind}, ${count(times)} times), and ${none}`;
  const lacks = lackingText(lacking ?? []);
  if (isPrivilegeLacking(kind) && lacks !== null)
    return degraded('calls-failing', `${said}: ${lacks}`, GRANT);
  return degraded(
    'calls-failing',
    said,
    'see `job.failed` in the log for what it objects to, and put back what was dropped, changed or revoked',
  );
}

/** Returns a reason if calls keep failing. An occasional failure delays nothing: only its SKUs are asked again. */
export function failingCalls(facts: Facts): Reason | false {
  const {
    failedCalls,
    tasks,
    lacking,
    idle: { answeredSeconds },
  } = facts;
  const faults = callFaults(tasks);
  const faulty = faults !== null && faultyCalls(faults, lacking);
  if (faulty !== false) return faulty;
  const why = tasks.find(({ task }) => task === 'reprice')?.outcome ?? null;
  if (failedCalls > 0 && why === 'no-skus-read')
    return answeredSeconds === null
      ? degraded(
          'calls-failing',
          'the partner reads no SKU from bulk calls: PARTNER_BULK_BODY_KEY is not the name it expects',
          'set PARTNER_BULK_BODY_KEY to the name that `catalog-mirror doctor` finds',
        )
      : degraded(
          'calls-failing',
          `the partner reads no SKU from bulk calls, though it did ${formatAge(answeredSeconds)} ago`,
          'it is retried by itself; if it lasts, or PARTNER_BULK_BODY_KEY was changed, run `catalog-mirror doctor`',
        );
  if (failedCalls < FAILURES_BEFORE_PAUSE) return false;
  const inARow = `(${failedCalls} in a row)`;
  if (why !== 'not-stored') return degraded('calls-failing', `bulk calls are failing ${inARow}`, DOCTOR);
  const rejects = `Postgres rejects the answers of bulk calls ${inARow}`;
  const lacks = lackingText(lacking ?? []);
  return lacks === null
    ? degraded('calls-failing', rejects, DOCTOR)
    : degraded('calls-failing', `${rejects}: ${lacks}`, GRANT);
}

/** Tasks that ask the partner nothing: they fail because of what Postgres objects to. */
const WITHIN_POSTGRES: ReadonlySet<TaskName> = new Set(['maintenance', 'metadata', 'live-plan']);

/**
 * Returns reasons for tasks whose last run failed. There are none while requests are refused or there is no
 * baseline, because other reasons say so for all tasks. A failed catalog check only makes the manifest late.
 */
export function failingTasks({ tasks, pace, sync }: Facts): Reason[] {
  if (pace.refusal !== null || sync.manifestAppliedAt === null) return [];
  const codes = { delta: 'delta-failing', manifest: 'manifest-failing' } as const;
  const failing = tasks.filter(({ failures }) => failures > 0);
  const within = failing.filter(({ task }) => WITHIN_POSTGRES.has(task));
  const lines = within.map(({ task }) => `\`${task}.failed\``).join(', ');
  return [
    ...failing.flatMap((state) =>
      state.task === 'delta' || state.task === 'manifest'
        ? [
            degraded(
              codes[state.task],
              `the ${state.task} failed ${failuresOf(state)}`,
              remedyOfKind(state.outcome)?.hint ?? DOCTOR,
            ),
          ]
        : [],
    ),
    ...held([
      within.length > 0 &&
        degraded(
          'task-failing',
          within.map((state) => `the task ${state.task} failed ${failuresOf(state)}`).join(', '),
          within.map(({ outcome }) => remedyOfKind(outcome)?.hint ?? null).find((hint) => hint !== null) ??
            `see ${lines} in the log for what Postgres objects to`,
        ),
    ]),
  ];
}

/** Returns a reason if Postgres rejects rows of SKUs. */
export function notStoredReasons({
  notStored: { skus, last, sample, lacksPrivilege },
  lacking,
}: Facts): Reason[] {
  if (skus === 0) return [];
  const cannot = `${count(skus)} ${plural(skus, 'SKU cannot', 'SKUs cannot')} be stored, last ${last}: ${sample}`;
  const lacks = lacksPrivilege === true ? lackingText(lacking ?? []) : null;
  if (lacks !== null) return [degraded('not-stored', `${cannot}; ${lacks}`, GRANT)];
  return [
    degraded(
      'not-stored',
      cannot,
      lacksPrivilege === true
        ? 'the function of a trigger lacks a privilege, or a policy takes the rows from nobody: GRANT it, or remove them'
        : 'find the constraint or trigger in Postgres that rejects the rows, and remove it',
    ),
  ];
}
