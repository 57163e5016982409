import type { Sql } from '../connection/db.ts';
import type { TaskState } from './tasks.ts';

/*
 * Errors that bulk calls were given up with, other than the partner's: Postgres has refused a statement of theirs, or
 * there is a defect. They are counted for the judge of health alone, beside the failures that calls pause for, and
 * stand in the row of re-pricing, whose `progress` is free for them: so every process sees them.
 */

/** What is counted where Postgres has not said why. */
export const DEFECT = 'defect';

/** Faults since an answer was last stored. */
export interface CallFaults {
  /** The SQLSTATE of the last one, or DEFECT. */
  readonly kind: string;
  readonly times: number;
}

/** Counts a fault; the next answer that is stored forgets all of them (storeLesson). */
export async function noteCallFault(sql: Sql, kind: string): Promise<void> {
  await sql`
    update catalog_internal.tasks set
      progress = jsonb_build_object('fault', ${kind}::text, 'faults', coalesce((progress->>'faults')::int, 0) + 1)
    where task = 'reprice'`;
}

/** Those of the tasks as they were read; null: there were none since an answer was stored. */
export function callFaults(tasks: readonly TaskState[]): CallFaults | null {
  const { fault, faults } = tasks.find(({ task }) => task === 'reprice')?.progress ?? {};
  return typeof fault === 'string' && typeof faults === 'number' ? { kind: fault, times: faults } : null;
}
