import type { Tx } from '../connection/db.ts';

/*
 * What is learned fades: each refresh leaves a little less of what those before it have found. In Postgres a number
 * that fades on until it is too small for its type, or a product of it, is an error, and not nothing. So it is
 * forgotten long before; else a mirror would fail after months, on SKUs at which nothing happens.
 */

const LEAST = 1e-6;

/** A number that fades, or 0 once next to nothing is left. */
export const faded = (number: number): number => (Math.abs(number) < LEAST ? 0 : number);

/** SQL: the same of an expression. */
export const fadedSql = (tx: Tx, expression: string) =>
  tx`case when abs(${tx.unsafe(expression)}) < ${LEAST} then 0 else ${tx.unsafe(expression)} end`;
