import { FAILURE, line, type LogEvent, OVER, REPEATED, RUN } from './log-event.ts';

/** Tasks whose runs are logged; re-pricing logs its calls instead. */
const RUN_TASKS = ['manifest', 'delta', 'catalog-check', 'metadata', 'maintenance', 'live-plan'] as const;

/** One event of each of the tasks, named `task.end`. */
function each<T extends (typeof RUN_TASKS)[number], E extends string, Event extends LogEvent>(
  tasks: readonly T[],
  end: E,
  event: Event,
): Record<`${T}.${E}`, Event> {
  return Object.fromEntries(tasks.map((task) => [`${task}.${end}`, event])) as Record<`${T}.${E}`, Event>;
}

export const TASK_LINES = {
  ...each(
    RUN_TASKS,
    'failed',
    line(
      ['warn', 'debug'],
      'a task run failed; the mirror is unchanged (rejected requests are logged only as pace.silenced)',
      [...RUN, ...FAILURE, ...REPEATED],
      "it is retried in nextInSeconds; the wait doubles from a minute to an hour, or to the task's interval",
    ),
  ),
  ...each(RUN_TASKS, 'recovered', line('info', 'the task succeeds again', [...OVER])),
  ...each(RUN_TASKS, 'postponed', line('debug', 'a task run was postponed', [...RUN, 'because'])),
} as const;
