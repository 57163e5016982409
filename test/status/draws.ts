import {
  array,
  boolean,
  constant,
  constantFrom,
  integer,
  nat,
  oneof,
  option,
  record,
  subarray,
  type Arbitrary,
} from 'fast-check';
import type { Sql } from '../../src/store/connection/db.ts';
import { STORE_FAILURES, type StoreFailure } from '../../src/store/connection/sql-errors.ts';
import { TASKS, type TaskName } from '../../src/store/ledger/tasks.ts';

/*
 * Randomly drawn mirrors, as a daemon, an operator or a clock change may leave them, and how to store them in
 * Postgres.
 */

/**
 * Seconds from now, negative in the past. None is near a limit that health is judged by, because the faces are
 * read one after the other.
 */
const MOMENTS = [
  -400 * 86_400,
  -90_000,
  -7000,
  -5000,
  -2500,
  -1200,
  -300,
  -20,
  30,
  300,
  2500,
  9000,
  90_000,
  400 * 86_400,
];
const moment = constantFrom(...MOMENTS);
const maybe = <T>(value: Arbitrary<T>) => option(value, { freq: 2 });

export interface DrawnTask {
  readonly task: TaskName;
  readonly next: number | 'infinity' | '-infinity';
  readonly runningFor: number | null;
  readonly failures: number;
}

export interface DrawnDue {
  readonly reason: string;
  readonly due: number;
  readonly deferrals: number;
  readonly failures: number;
}

export interface DrawnMirror {
  readonly daemon: boolean;
  readonly baseline: number | null;
  readonly delta: number | null;
  readonly generated: number | null;
  readonly fault: boolean;
  readonly broken: boolean;
  /** How the manifest route contradicts the delta. */
  readonly refuted: 'behind' | 'differs' | null;
  readonly refused: string | null;
  readonly deltaInterval: number;
  readonly tasks: readonly DrawnTask[];
  readonly pace: {
    readonly refusal: string | null;
    readonly episodes: number;
    readonly since: number;
  } | null;
  readonly incident: 'live-count' | 'deferrals' | null;
  readonly skus: Readonly<Record<'pending' | 'priced' | 'not_found' | 'removed', number>>;
  readonly due: readonly DrawnDue[];
  /** How many of the pending SKUs were asked for and failed. */
  readonly unanswered: number;
  /** Whether the counts that are shown are some seconds old, but of the same rows. */
  readonly counted: boolean;
  /** The age of the oldest snapshot that a session holds, and how many versions of ledger rows it has kept. */
  readonly holder: { readonly seconds: number; readonly versions: number } | null;
}

export interface DrawnOwn {
  readonly queues: string | null;
  readonly storeFailure: StoreFailure | null;
  readonly refused: string | null;
}

const skus = oneof(constant(0), nat(3), integer({ min: 90, max: 110 }));

export const anyMirror: Arbitrary<DrawnMirror> = record({
  daemon: boolean(),
  baseline: oneof({ weight: 4, arbitrary: moment }, { weight: 1, arbitrary: constant(null) }),
  delta: maybe(moment),
  generated: maybe(moment),
  fault: oneof({ weight: 4, arbitrary: constant(false) }, { weight: 1, arbitrary: constant(true) }),
  broken: boolean(),
  refuted: constantFrom(null, null, 'behind', 'differs'),
  refused: oneof({ weight: 4, arbitrary: constant(null) }, { weight: 1, arbitrary: constant('shrunk') }),
  deltaInterval: constantFrom(1, 300, 3600, 7 * 86_400),
  tasks: oneof(
    { weight: 4, arbitrary: constant([...TASKS]) },
    { weight: 1, arbitrary: subarray([...TASKS]) },
  ).chain((names) =>
    array(
      record({
        next: oneof(
          { weight: 8, arbitrary: moment },
          { weight: 1, arbitrary: constantFrom('infinity' as const, '-infinity' as const) },
        ),
        runningFor: oneof({ weight: 3, arbitrary: constant(null) }, { weight: 1, arbitrary: moment }),
        failures: constantFrom(0, 0, 0, 1, 7),
      }),
      { minLength: names.length, maxLength: names.length },
    ).map((rows) => rows.map((row, i): DrawnTask => ({ task: names[i] ?? 'delta', ...row }))),
  ),
  pace: option(
    record({
      refusal: oneof(
        { weight: 3, arbitrary: constant(null) },
        { weight: 1, arbitrary: constantFrom('throttled-or-forbidden', 'account-not-configured') },
      ),
      episodes: constantFrom(1, 3, 20),
      since: moment,
    }),
  ),
  incident: oneof(
    { weight: 4, arbitrary: constant(null) },
    { weight: 1, arbitrary: constantFrom('live-count' as const, 'deferrals' as const) },
  ),
  unanswered: oneof(constant(0), nat(3), constant(110)),
  skus: record({ pending: skus, priced: skus, not_found: nat(3), removed: nat(3) }),
  due: array(
    record({
      reason: constantFrom('changed', 'live', 'new', 'sweep', 'metadata', 'watched'),
      due: moment,
      deferrals: constantFrom(0, 0, 2),
      failures: constantFrom(0, 0, 2),
    }),
    { maxLength: 4 },
  ),
  counted: boolean(),
  holder: option(record({ seconds: constantFrom(300, 7000), versions: constantFrom(9000, 5_000_000) })),
});

export const anyOwn: Arbitrary<DrawnOwn> = record({
  queues: oneof({ weight: 4, arbitrary: constant(null) }, { weight: 1, arbitrary: constant('no queues') }),
  storeFailure: oneof(
    { weight: 4, arbitrary: constant(null) },
    { weight: 1, arbitrary: constantFrom(...STORE_FAILURES) },
  ),
  refused: oneof(
    { weight: 4, arbitrary: constant(null) },
    { weight: 1, arbitrary: constant('refused alone') },
  ),
});

/** Stores a drawn mirror in an empty one. */
export async function putMirror(sql: Sql, drawn: DrawnMirror): Promise<void> {
  await sql.begin(async (tx) => {
    const at = (seconds: number | null) =>
      seconds === null ? tx`null::timestamptz` : tx`now() + make_interval(secs => ${seconds})`;
    await tx`
      update catalog_internal.sync set manifest_applied_at = ${at(drawn.baseline)}, delta_checked_at = ${at(drawn.delta)},
        snapshot_generated_at = ${at(drawn.generated)}, catalog_fault = ${drawn.fault ? '0012' : null},
        chain_broken_at = ${at(drawn.broken ? -60 : null)}, manifest_refused = ${drawn.refused},
        delta_doubt = ${drawn.refuted === 'behind' ? 'behind' : null}, behind_since = ${at(drawn.refuted === 'behind' ? -90 : null)},
        catalog_differs_at = ${at(drawn.refuted === 'differs' ? -90 : null)}`;
    await tx`update catalog_internal.settings set delta_interval = ${drawn.deltaInterval}`;
    await tx`delete from catalog_internal.tasks`;
    for (const { task, next, runningFor, failures } of drawn.tasks)
      await tx`
        insert into catalog_internal.tasks (task, next_at, running_until, failures, outcome) values (${task},
          ${typeof next === 'number' ? at(next) : tx`${next}::text::timestamptz`}, ${at(runningFor)}, ${failures},
          ${failures > 0 ? 'network' : 'done'})`;
    if (drawn.pace !== null)
      await tx`
        insert into catalog_internal.pace (ceiling, raised_at, episodes, refusal, refused_since, refused_at, occupancy)
        values (59, now(), ${drawn.pace.episodes}, ${drawn.pace.refusal}, ${at(drawn.pace.since)}, now(), 3)`;
    await tx`
      update catalog_internal.live_plan set incident_because = ${drawn.incident},
        incident_since = ${at(drawn.incident === null ? null : -60)}, incident_tried_at = now()`;
    for (const [state, count] of Object.entries(drawn.skus))
      await tx`
        insert into catalog.skus (sku, in_manifest, state, price_source, priced_at)
        select ${state} || n, true, ${state}, 'snapshot', case when ${state} = 'priced' then now() end
        from generate_series(1, ${count}::int) as n`;
    await tx`
      insert into catalog_internal.due (sku, lane, reason, live, due_at, generation, failures)
      select 'pending' || n, catalog_internal.lane_of('error'), 'new', false, now() - interval '1 minute', 1, 1
      from generate_series(1, ${Math.min(drawn.unanswered, drawn.skus.pending)}::int) as n`;
    for (const [i, { reason, due, deferrals, failures }] of drawn.due.entries())
      await tx`
        insert into catalog_internal.due (sku, lane, reason, live, due_at, generation, deferrals, failures)
        values (${`due${i}`}, catalog_internal.lane_of(${reason}), ${reason}, false, ${at(due)}, 1, ${deferrals}, ${failures})`;
  });
}
