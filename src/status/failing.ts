import { formatAge } from '../lib/duration.ts';
import { remedyOfKind } from '../store/connection/remedies.ts';
import { FAILURES_BEFORE_PAUSE, type TaskName } from '../store/ledger/tasks.ts';
import type { Facts } from './facts.ts';
import { DOCTOR, failuresOf } from './progress.ts';
import { degraded, held, type Reason } from './reason.ts';

/* What calls and tasks that failed last say of the mirror's state. */

/** A call that fails now and then holds nothing up: only its SKUs are asked again. */
export function failingCalls({ failedCalls, tasks, idle: { answeredSeconds } }: Facts): Reason | false {
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
  return (
    failedCalls >= FAILURES_BEFORE_PAUSE &&
    degraded('calls-failing', `bulk calls are failing (${failedCalls} in a row)`, DOCTOR)
  );
}

/** Tasks that ask the partner nothing: they fail for what Postgres objects to. */
const WITHIN_POSTGRES: ReadonlySet<TaskName> = new Set(['maintenance', 'metadata', 'live-plan']);

/**
 * Tasks that failed last. While requests are refused, that is said for all of them; without a baseline, by that. A
 * catalog check that fails has the manifest late, and no more.
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
