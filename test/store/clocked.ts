import { beforeEach } from 'vitest';
import { noteClock } from '../../src/store/clock.ts';
import { setClockAhead } from '../support/movable-clock.ts';
import { answerAsked, empty, found, knownSkus, type TestStore, useStore } from './support.ts';

/* A mirror whose Postgres has a clock that can be ahead for a while. */

export const DAY = 86_400;
export const HOUR = 3600;
export const LIMITS = { maxPerWindow: 120, windowMs: 60_000, backoffMs: 60_000 };
export const SKUS = ['A', 'B', 'C', 'D', 'E', 'F'];

/** Prices all SKUs by a clock that is right, and sets a baseline, before each test. */
export function useClockedStore(): TestStore {
  const store = useStore({ movableClock: true });
  beforeEach(() => fill(store));
  return store;
}

/** Restores the state before each test, for each run of a property, so that its seed determines everything. */
export async function beginAnew(store: TestStore): Promise<void> {
  await setClockAhead(store.sql, 0);
  await empty(store.sql);
  await fill(store);
}

async function fill({ sql }: TestStore): Promise<void> {
  await sql`
    update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now(), delta_checked_at = now()`;
  await sql`
    update catalog_internal.clock set high_water = clock_timestamp(), steady_since = clock_timestamp()`;
  await knownSkus(sql, SKUS);
  await answerAsked(sql, ...SKUS.map((sku) => found(sku, { 9: 100 })));
}

export interface Trust {
  readonly doubt: string | null;
  readonly fresh: boolean;
  readonly reason: string | null;
}

export async function trust({ sql }: TestStore): Promise<Record<string, Trust>> {
  const rows = await sql<(Trust & { sku: string })[]>`
    select sku, doubt, fresh, owed_reason as reason from catalog.sku_trust order by sku`;
  return Object.fromEntries(rows.map(({ sku, ...rest }) => [sku, rest]));
}

/** Sets the clock ahead; a daemon notices it, `during` happens, a daemon checks again, and the clock is right again. */
export async function ahead(
  { sql }: TestStore,
  seconds: number,
  during: () => Promise<unknown>,
): Promise<void> {
  await setClockAhead(sql, seconds);
  await noteClock(sql, { steady: false });
  await during();
  await noteClock(sql, { steady: true });
  await setClockAhead(sql, 0);
}
