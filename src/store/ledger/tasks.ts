import type { Queryable, Sql } from '../connection/db.ts';
import { isOwnMirror } from '../connection/own-mirror.ts';

/** The daemon's own tasks; each has a row in catalog_internal.tasks. */
export const TASKS = [
  'manifest',
  'delta',
  'catalog-check',
  'reprice',
  'metadata',
  'maintenance',
  'live-plan',
] as const;
export type TaskName = (typeof TASKS)[number];
/**
 * Tasks that have runs. Re-pricing works in slices instead, and its row holds only the pause between failing calls.
 */
export type RunTask = Exclude<TaskName, 'reprice'>;

/** How a run ended: successfully, to be retried with back-off, or postponed without having been tried. */
export const TASK_ENDS = ['done', 'failed', 'postponed'] as const;
export type TaskEnd = (typeof TASK_ENDS)[number];

/** How often a task has failed since it last succeeded, including refusals, and how many failures were refusals. */
export interface TaskFailures {
  readonly failures: number;
  readonly refusals: number;
}

export interface TaskRun extends TaskFailures {
  readonly run: string;
}

/**
 * Takes a due task for `leaseMs` (renewed while it runs). Returns null if it is not due, if another worker has it,
 * or if the mirror has become another account's. Any number of queue jobs may wake a task: one runs.
 */
export async function startTask(sql: Sql, task: TaskName, leaseMs: number): Promise<TaskRun | null> {
  const [row] = await sql<TaskRun[]>`
    update catalog_internal.tasks set
      run = nextval('catalog_internal.claim_numbers'), started_at = clock_timestamp(),
      running_until = clock_timestamp() + make_interval(secs => ${leaseMs / 1000}), progress = null
    where task = ${task} and next_at <= clock_timestamp()
      and (running_until is null or running_until <= clock_timestamp()) and ${isOwnMirror(sql, sql)}
    returning run, failures, ${refusalsOf(sql)} as refusals`;
  return row ?? null;
}

/** Extends the lease of a run that still has its task. */
export async function renewTask(sql: Sql, task: TaskName, run: string, leaseMs: number): Promise<void> {
  await sql`
    update catalog_internal.tasks set running_until = clock_timestamp() + make_interval(secs => ${leaseMs / 1000})
    where task = ${task} and run = ${run}`;
}

/** Stores a run's progress for the status; does nothing if the run has lost its task. */
export async function showProgress(
  sql: Sql,
  task: TaskName,
  run: string,
  progress: Readonly<Record<string, number | string | null>>,
): Promise<void> {
  await sql`update catalog_internal.tasks set progress = ${sql.json(progress)} where task = ${task} and run = ${run}`;
}

/** Ends a run: stores its outcome and when the task runs next. A run that was requested meanwhile is kept. */
export async function endTask(
  sql: Sql,
  task: TaskName,
  run: string,
  end: {
    readonly how: TaskEnd;
    readonly outcome: string;
    readonly nextInMs: number;
    /** The partner refused it, as it refuses requests that come too fast (partner rules 5.6 and 5.7). */
    readonly isRefusal?: boolean;
  },
): Promise<void> {
  await sql`
    with ended as (
      update catalog_internal.tasks set
        running_until = null, run = null, finished_at = clock_timestamp(), progress = null, outcome = ${end.outcome},
        succeeded_at = case when ${end.how} = 'done' then clock_timestamp() else succeeded_at end,
        failures = case ${end.how} when 'done' then 0 when 'failed' then failures + 1 else failures end,
        next_at = case when next_at > started_at then next_at
                  else clock_timestamp() + make_interval(secs => ${end.nextInMs / 1000}) end
      where task = ${task} and run = ${run}
      returning task, failures
    ),
    counted as (select task, failures from ended where ${end.how === 'failed'})
    ${countingRefusals(sql, end.isRefusal === true)}`;
}

/**
 * SQL: counts a failure as a refusal if it is one. `counted`, an earlier query of the statement, contains the task.
 * Nothing resets the refusals: when they are read, at most as many count as there were failures since the last success.
 */
export function countingRefusals(sql: Sql, isRefusal: boolean) {
  return sql`
    insert into catalog_internal.refused_tasks as r (task, refusals) select task, ${Number(isRefusal)}::int from counted
    on conflict (task) do update set refusals = least(r.refusals, (select failures - 1 from counted)) + excluded.refusals`;
}

const refusalsOf = (sql: Sql) => sql`
  least(failures, coalesce((select r.refusals from catalog_internal.refused_tasks r where r.task = tasks.task), 0))`;

/** Returns those of the tasks that have been due for `forMs` without anybody running them. */
export async function overdueTasks(
  sql: Sql,
  tasks: readonly TaskName[],
  forMs: number,
): Promise<readonly TaskName[]> {
  const rows = await sql<{ task: TaskName }[]>`
    select task from catalog_internal.tasks
    where task = any(${tasks as TaskName[]}) and next_at <= clock_timestamp() - make_interval(secs => ${forMs / 1000})
      and (running_until is null or running_until <= clock_timestamp())`;
  return rows.map(({ task }) => task);
}

/**
 * Brings forward tasks that are further away than their interval (milliseconds), as after a start with a shorter
 * one: they were scheduled when they last ended. Failed or postponed tasks keep waiting. Returns the moved tasks.
 */
export async function bringTasksForward(
  sql: Sql,
  intervals: Readonly<Partial<Record<TaskName, number>>>,
): Promise<readonly TaskName[]> {
  const rows = await sql<{ task: TaskName }[]>`
    update catalog_internal.tasks t set next_at = greatest(clock_timestamp(), t.finished_at + i.every)
    from (
      select task, make_interval(secs => seconds) as every
      from unnest(${Object.keys(intervals)}::text[], ${Object.values(intervals).map((ms) => ms / 1000)}::float8[]) as g(task, seconds)
    ) i
    where t.task = i.task and t.outcome = 'done' and t.failures = 0 and t.running_until is null
      and t.next_at > clock_timestamp() + i.every and t.next_at < 'infinity'
    returning t.task`;
  return rows.map(({ task }) => task);
}

/** Whether a run of the task that began after `since` has ended, and the next one does not follow at once. */
export async function isThrough(sql: Sql, task: TaskName, since: Date): Promise<boolean> {
  const [row] = await sql<{ through: boolean | null }[]>`
    select started_at > ${since} and running_until is null and next_at > finished_at + interval '10 seconds' as through
    from catalog_internal.tasks where task = ${task}`;
  return row?.through === true;
}

/** Makes a task due now, even while it runs (it then runs once more). */
export async function requestTask(sql: Queryable, task: TaskName): Promise<void> {
  await sql`update catalog_internal.tasks set next_at = clock_timestamp(), failures = 0 where task = ${task}`;
}

export interface TaskState {
  readonly task: TaskName;
  readonly nextAt: Date;
  readonly running: boolean;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly succeededAt: Date | null;
  readonly failures: number;
  readonly outcome: string | null;
  readonly progress: Record<string, number | string | null> | null;
}

/**
 * Reads all tasks by name. A task that an operator has put off until `infinity` is next in a hundred years, because
 * Date has no infinity.
 */
export async function readTasks(sql: Sql): Promise<TaskState[]> {
  return await sql<TaskState[]>`
    select task, greatest('epoch', least(next_at, clock_timestamp() + interval '100 years')) as "nextAt",
      coalesce(running_until > clock_timestamp(), false) as running,
      started_at as "startedAt", finished_at as "finishedAt", succeeded_at as "succeededAt", failures, outcome, progress
    from catalog_internal.tasks order by task`;
}

/**
 * From this many consecutive failed bulk calls on, all replicas pause between calls. Before that, each call has
 * fewer SKUs, and others if there are any, because one of them or their number may be the reason.
 */
export const FAILURES_BEFORE_PAUSE = 4;

/*
 * While bulk calls fail, all replicas pause between them. The pause is stored in the row of the task 'reprice':
 * re-pricing has no schedule of its own, so its next_at is free for this.
 */

/** While calls pause and one of them is under way, other callers read the pause again after this time. */
const TRIAL_UNDER_WAY_MS = 1000;

export interface CallPause {
  /** Milliseconds until the next call may be made; 0 = now. */
  readonly ms: number;
  /** Consecutive failed calls. */
  readonly failures: number;
  /** How many of these were rejections: their kind was none of OUTAGE_KINDS. */
  readonly rejections: number;
}

/**
 * SQL: selects a CallPause as one row. Once calls pause, only one at a time goes out until one works; otherwise an
 * outage would cost as many calls after each pause as may be under way. Claims are searched for only in an outage,
 * because no index serves that. The subtraction is in seconds because Postgres before 17 cannot subtract from
 * `infinity`.
 */
export function callPauseRow(sql: Sql) {
  return sql`
    select greatest(0, (extract(epoch from next_at) - extract(epoch from clock_timestamp())) * 1000, case
        when failures >= ${FAILURES_BEFORE_PAUSE} and exists (
          select from catalog_internal.due where held_until > now() and claim is not null
        ) then ${TRIAL_UNDER_WAY_MS} else 0 end)::float8 as ms, failures, ${refusalsOf(sql)} as rejections
    from catalog_internal.tasks where task = 'reprice'`;
}

/**
 * Ends the pause of calls so that one call tries again, because the reason for the pause may be gone. Failures stay
 * counted until a call works, so if it is not gone, the next pause is the longer one. `after`: ends only a pause
 * after failures of these kinds; null: after any. SKUs that wait only because a call with them met the outage stop
 * waiting. Returns whether there was a pause.
 */
export async function endCallPause(sql: Sql, after: readonly string[] | null): Promise<boolean> {
  const paused = sql`catalog_internal.calls_are_paused(t) and next_at < 'infinity'
    and (${after === null} or outcome = any(${[...(after ?? [])]}::text[]))`;
  const ended = await sql`
    with held as materialized (
      select sku from catalog_internal.due
      where exists (select from catalog_internal.tasks t where ${paused})
        and held_until > now() and claim is null and failures = 0 and deferrals = 0
        and not (reason = 'scope' and due_at > now())
      order by sku for update
    ),
    released as (
      update catalog_internal.due d set held_until = null from held h where d.sku = h.sku and d.claim is null returning 1
    )
    update catalog_internal.tasks t set next_at = clock_timestamp()
    where ${paused}
      -- The ledger first, as whoever refreshes SKUs locks it before this row.
      and (select count(*) from released) >= 0
    returning 1`;
  return ended.length > 0;
}

/** Reads the present pause of bulk calls after failures. */
export async function callPause(sql: Sql): Promise<CallPause> {
  const [row] = await sql<[CallPause]>`${callPauseRow(sql)}`;
  return row;
}

/*
 * Errors that ended bulk calls and were not the partner's: Postgres refused a statement, or there is a defect. They
 * count only for the judge of health, apart from the failures that make calls pause. They are stored in the row of
 * re-pricing, whose `progress` is free for them, so that every process sees them.
 */

/** The kind of a fault for which there is no SQLSTATE. */
export const DEFECT = 'defect';

/** Faults since an answer was last stored. */
export interface CallFaults {
  /** The SQLSTATE of the last fault, or DEFECT. */
  readonly kind: string;
  readonly times: number;
}

/** Counts a fault; the next stored answer clears all of them (storeLesson). */
export async function noteCallFault(sql: Sql, kind: string): Promise<void> {
  await sql`
    update catalog_internal.tasks set
      progress = jsonb_build_object('fault', ${kind}::text, 'faults', coalesce((progress->>'faults')::int, 0) + 1)
    where task = 'reprice'`;
}

/** Extracts the faults from the tasks; null if there were none since an answer was stored. */
export function callFaults(tasks: readonly TaskState[]): CallFaults | null {
  const { fault, faults } = tasks.find(({ task }) => task === 'reprice')?.progress ?? {};
  return typeof fault === 'string' && typeof faults === 'number' ? { kind: fault, times: faults } : null;
}
