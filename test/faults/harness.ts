import type { App } from '../../src/daemon/app.ts';
import type { World } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { eventually, PATIENCE_MS } from '../support/eventually.ts';
import { expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { FILLED, holds } from '../support/process.ts';
import type { LogLine, Stack } from '../support/stack.ts';

/** Does what time does after a fault: ends waits before retries, and leases of claims and runs that nobody holds. */
export async function timePasses(sql: Sql): Promise<void> {
  await sql`update catalog_internal.tasks set next_at = now() where failures > 0 and next_at > now()`;
  await sql`update catalog_internal.tasks set running_until = now() where running_until < now() + interval '14 seconds'`;
  await sql`update catalog_internal.due set held_until = now()
    where claim is not null and held_until < now() + interval '58 seconds'`;
}

/**
 * There is no promise how soon a mirror is complete on a busy machine. Each test states itself what a fault may
 * cost.
 */
const WHOLE_WITHIN_MS = 150_000;

/** Waits until the mirror has the newest snapshot and nothing is due, while time passes quickly. */
export async function untilWhole(sql: Sql, world: World): Promise<void> {
  await eventually(
    async () => {
      if (!(await holds(sql, `to_regclass('catalog_internal.due') is not null`))) return false;
      await timePasses(sql);
      const token = `(select snapshot_id = '${String(world.newestSnapshot())}' from catalog_internal.sync)`;
      return await holds(
        sql,
        `${token} and ${FILLED} and not exists (select from catalog_internal.due where claim is not null)`,
      );
    },
    { what: 'a mirror that owes nothing', within: WHOLE_WITHIN_MS },
  );
}

/** Compares the mirror with the truth row by row, and checks its history. */
export async function expectWhole(sql: Sql, world: World): Promise<void> {
  await expectMirrorIsTrue(sql, world);
  await expectHistoryIsAChain(sql);
}

/** Polls until a condition in SQL holds. */
export async function untilSql(sql: Sql, what: string, condition: string): Promise<void> {
  await eventually(() => holds(sql, condition), { what });
}

/** Does the same, while waits after a fault pass quickly. */
export async function untilTimely(sql: Sql, what: string, condition: string): Promise<void> {
  await eventually(
    async () => {
      await timePasses(sql);
      return await holds(sql, condition);
    },
    { what },
  );
}

/** Waits for the first matching line after `from` lines of the log, and returns it. */
export async function untilLogged(
  stack: Stack,
  event: string,
  fits: (line: LogLine) => boolean = () => true,
  from = 0,
): Promise<LogLine> {
  const find = () => stack.logs.slice(from).find((line) => line.event === event && fits(line));
  await eventually(() => find() !== undefined, { what: `a line ${event}` });
  return find() as LogLine;
}

/** Sends a GET request to a daemon in this process. One that never answers fails the test. */
export async function get(app: App, path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${app.httpPort}${path}`, {
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  return { status: response.status, text: await response.text() };
}

/** Waits until the daemon says that it is not ready, and why. */
export async function untilUnready(app: App, reason: string): Promise<void> {
  await eventually(
    async () => {
      const { status, text } = await get(app, '/readyz');
      return status === 503 && text.includes(reason);
    },
    { what: `a daemon that says: ${reason}` },
  );
}

/** Returns how many SKUs bulk calls have asked for so far, counting repetitions. */
export function askedSkus(stack: Stack): number {
  return stack.sandbox.requests.reduce((sum, { skus }) => sum + (skus?.length ?? 0), 0);
}
