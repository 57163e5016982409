import { gunzipSync, gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import type { App } from '../../src/daemon/app.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import type { TaskName } from '../../src/store/ledger/tasks.ts';
import { eventually } from '../support/eventually.ts';
import type { LogLine, Stack } from '../support/stack.ts';

/** Returns the log lines of one event. */
export function logged(stack: Stack, event: string): LogLine[] {
  return stack.logs.filter((line) => line.event === event);
}

/** Waits for the first line of the event after the first `from` lines. */
export async function nextLog(stack: Stack, event: string, from: number): Promise<LogLine> {
  return await eventually(() => {
    const found = stack.logs.slice(from).find((line) => line.event === event);
    if (found === undefined) throw new Error(`no line ${event} yet`);
    return found;
  });
}

/** Returns everything in the seller's tables, times included: equal results mean that nothing was written. */
export async function contents(sql: Sql): Promise<unknown> {
  return {
    skus: await sql`select * from catalog.skus order by sku`,
    prices: await sql`select * from catalog.prices order by sku, size`,
    products: await sql`select * from catalog.products order by sku`,
    moves: await sql`select * from catalog.price_history order by id`,
    corrections: await sql`select * from catalog.product_history order by id`,
  };
}

/** Returns the mirror's position in the catalog. */
export async function token(sql: Sql): Promise<unknown> {
  const [row] = await sql`select snapshot_id, manifest_applied_at, manifest_lines from catalog_internal.sync`;
  return row;
}

export async function catalogState(sql: Sql): Promise<string> {
  const [row] = await sql<[{ state: string }]>`select catalog_state as state from catalog.sync_status`;
  return row.state;
}

/** Returns how a task's last run ended, its failures in a row, and the seconds until its next run. */
export async function taskOf(
  sql: Sql,
  task: TaskName,
): Promise<{ outcome: string | null; failures: number; waits: number }> {
  const [row] = await sql<[{ outcome: string | null; failures: number; waits: number }]>`
    select outcome, failures, extract(epoch from next_at - finished_at)::float8 as waits
    from catalog_internal.tasks where task = ${task}`;
  return row;
}

/**
 * Runs a task now without resetting its failures, and waits until the run has ended and the daemon has logged it:
 * its line and its metrics come after what is in Postgres.
 */
export async function runNow(stack: Stack, app: App, task: TaskName): Promise<void> {
  const from = stack.logs.length;
  const [begun] = await stack.sql<[{ at: Date }]>`
    update catalog_internal.tasks set next_at = clock_timestamp() where task = ${task}
    returning clock_timestamp() as at`;
  await app.wake(task);
  await eventually(async () => {
    const [row] = await stack.sql<[{ ended: boolean }]>`
      select coalesce(started_at >= ${begun.at} and running_until is null, false) as ended
      from catalog_internal.tasks where task = ${task}`;
    expect(row.ended).toBe(true);
  });
  const ends = ['done', 'failed', 'postponed'].map((end) => `${task}.${end}`);
  await eventually(() => stack.logs.slice(from).some(({ event }) => ends.includes(event)), {
    what: `a line of the end of ${task}`,
  });
}

/** Ages the mirror as if nothing had been refreshed for this long. */
export async function letAge(sql: Sql, seconds: number): Promise<void> {
  await sql`
    update catalog_internal.due set due_at = due_at - make_interval(secs => ${seconds}) where due_at > now()`;
}

/**
 * Returns one sample of GET /metrics, or undefined if there is no such series. Labels are in the order of the
 * text. A scrape that had no time to read the mirror, as on a busy machine, says so and is repeated.
 */
export async function metric(app: App, name: string, labels = ''): Promise<number | undefined> {
  const text = await eventually(async () => {
    const scraped = await (await fetch(`http://127.0.0.1:${app.httpPort}/metrics`)).text();
    if (name !== 'mirror_stats_available')
      expect(scraped).toContain('\ncatalog_mirror_mirror_stats_available 1\n');
    return scraped;
  });
  const series = `catalog_mirror_${name}${labels === '' ? '' : `{${labels}}`} `;
  const line = text.split('\n').find((l) => l.startsWith(series));
  return line === undefined ? undefined : Number(line.slice(series.length));
}

export async function readyz(app: App): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`http://127.0.0.1:${app.httpPort}/readyz`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** Returns a fault of the manifest file that changes its correct lines. */
export function bendLines(bend: (lines: string[]) => readonly string[]): (body: Buffer) => Buffer {
  return (body) => {
    const lines = gunzipSync(body).toString('utf8').trimEnd().split('\n');
    return gzipSync(`${bend(lines).join('\n')}\n`);
  };
}

/** Returns the SKU of a manifest line. */
export function skuOfLine(line: string): string {
  return (JSON.parse(line) as { sku: string }).sku;
}

/** Returns the SKUs of every bulk call from the `from`th request on. */
export function askedSince(stack: Stack, from: number): string[][] {
  return stack.sandbox.requests.slice(from).flatMap((r) => (r.route === 'bulk' ? [r.skus] : []));
}
