import { expect } from 'vitest';
import type { Sql } from '../../src/store/connection/db.ts';
import { takeRefreshes } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';

/** Returns what sellers have asked for and the mirror has not marked yet. */
export async function requested(sql: Sql): Promise<string[]> {
  const rows = await sql<
    { sku: string }[]
  >`select sku from catalog_internal.refresh_requests order by sku, id`;
  return rows.map(({ sku }) => sku);
}

/** Returns how many SKUs catalog.refresh reports as due now. */
export async function askedFor(sql: Sql, skus: readonly (string | null)[] | null): Promise<number> {
  const [row] = await sql<[{ n: number }]>`select catalog.refresh(${skus as string[]}::text[]) as n`;
  return row.n;
}

/** Waits until somebody has asked for these SKUs, and marks them as a daemon does before a call. */
export async function taken(sql: Sql, ...skus: string[]): Promise<void> {
  await eventually(async () => expect(await requested(sql)).toEqual(skus), { what: 'the request' });
  expect(await takeRefreshes(sql)).toBe(new Set(skus).size);
}

/** Returns how a call ended: 'done', or the SQLSTATE, message and detail of its error. */
export async function outcome(call: PromiseLike<unknown>): Promise<string> {
  try {
    await call;
    return 'done';
  } catch (error) {
    const { code, message, detail } = error as { code?: string; message: string; detail?: string };
    return [code, message, detail].filter((part) => part !== undefined).join(' | ');
  }
}

/** Whether a promise has settled by now. */
export async function hasEnded(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  return (await Promise.race([promise.catch(() => null), Promise.resolve(pending)])) !== pending;
}
