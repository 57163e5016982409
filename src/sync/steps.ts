import { remedyOf } from '../store/connection/remedies.ts';
import { isAnswer, rejection, sqlState, storeFailure } from '../store/connection/sql-errors.ts';
import type { TaskOutcome } from './outcome.ts';

/** Steps of a run, each of which may fail by itself. */
export class Steps {
  readonly #failed: { readonly step: string; readonly error: unknown }[] = [];

  /**
   * What the step comes to; null where Postgres has rejected it. Throws a defect, and what is of Postgres as a whole
   * and so of every step.
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

  /** Notes a step that has failed in part. */
  fail(step: string, error: unknown): void {
    this.#failed.push({ step, error });
  }

  async count(step: string, work: () => Promise<number>): Promise<number> {
    return (await this.run(step, work)) ?? 0;
  }

  /** The outcome that names the steps that failed; null where none did. */
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

/** What to do where Postgres has rejected these. */
export function hintFor(errors: readonly unknown[]): string {
  const known = errors.map((error) => remedyOf(error)?.hint ?? null);
  return known.find((hint) => hint !== null) ?? OBJECTS;
}

/** What Postgres says of it, without values. */
export function problemOf(error: unknown): string {
  const rejected = rejection(error);
  return rejected === null ? `SQLSTATE ${sqlState(error)}` : `SQLSTATE ${rejected.state}, by ${rejected.by}`;
}
