import { remedyOf } from '../store/connection/remedies.ts';
import { isAnswer, rejection, sqlState, storeFailure } from '../store/connection/sql-errors.ts';
import type { TaskOutcome } from './outcome.ts';

/** Steps of a run, each of which may fail on its own. */
export class Steps {
  readonly #failed: { readonly step: string; readonly error: unknown }[] = [];

  /**
   * Runs a step and returns its result; null if Postgres rejected it. Throws defects, and failures of Postgres as
   * a whole, which would concern every step.
   */
  async run<T>(step: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      if (!isAnswer(error) || storeFailure(error) !== null) throw error;
      this.fail(step, error);
      return null;
    }
  }

  /** Notes a step that failed in part. */
  fail(step: string, error: unknown): void {
    this.#failed.push({ step, error });
  }

  async count(step: string, work: () => Promise<number>): Promise<number> {
    return (await this.run(step, work)) ?? 0;
  }

  /** Returns the outcome that names the failed steps; null if there are none. */
  failure(nextInMs: number): TaskOutcome | null {
    if (this.#failed.length === 0) return null;
    const problem = this.#failed.map(({ step, error }) => `${step}: ${problemOf(error)}`).join('; ');
    return {
      kind: 'failed',
      nextInMs,
      because: this.#failed.map(({ step }) => step).join(', '),
      hint: `${hintFor(this.#failed.map(({ error }) => error))}; the other steps were done`,
      problem,
    };
  }
}

const OBJECTS =
  'find what Postgres objects to: a foreign key or trigger of yours, a privilege that is lacking, or a lock';

/** Returns what to do after Postgres has rejected these. */
export function hintFor(errors: readonly unknown[]): string {
  const known = errors.map((error) => remedyOf(error)?.hint ?? null);
  return known.find((hint) => hint !== null) ?? OBJECTS;
}

/** Returns what Postgres says about the error, without values. */
export function problemOf(error: unknown): string {
  const rejected = rejection(error);
  return rejected === null ? `SQLSTATE ${sqlState(error)}` : `SQLSTATE ${rejected.state}, by ${rejected.by}`;
}
