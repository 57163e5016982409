import type { App } from '../../src/daemon/app.ts';
import type { World } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { eventually, PATIENCE_MS } from '../support/eventually.ts';
import { expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { FILLED, holds } from '../support/process.ts';
import type { LogLine, Stack } from '../support/stack.ts';

/**
 * What time brings after a fault: waits before another try are over, and so are leases of claims and runs that nobody
 * holds.
 */
export async function timePasses(sql: Sql): Promise<void> {
  await sql`update catalog_internal.tasks set next_at = now() where failures > 0 and next_at > now()`;
  await sql`update catalog_internal.tasks set running_until = now() where running_until < now() + interval '14 seconds'`;
  await sql`update catalog_internal.due set held_until = now()
    where claim is not null and held_until < now() + interval '58 seconds'`;
}

/**
 * Nobody promised how soon a mirror is whole on a machine that is busy with other things: what a fault may cost, each
 * test says itself.
 */
const WHOLE_WITHIN_MS = 150_000;

/** Waits until the mirror has the newest snapshot and owes nothing, time passing quickly. */
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

/** The mirror against the truth, row by row, and its history. */
export async function expectWhole(sql: Sql, world: World): Promise<void> {
  await expectMirrorIsTrue(sql, world);
  await expectHistoryIsAChain(sql);
}

/** Refreshes until a condition in SQL holds. */
export async function untilSql(sql: Sql, what: string, condition: string): Promise<void> {
  await eventually(() => holds(sql, condition), { what });
}

/** The same, while time passes quickly for what waits after a fault. */
export async function untilTimely(sql: Sql, what: string, condition: string): Promise<void> {
  await eventually(
    async () => {
      await timePasses(sql);
      return await holds(sql, condition);
    },
    { what },
  );
}

/** The first log line after `from` lines that fits, once it is there. */
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

/** GET on a daemon in this process; one that never answers fails the test. */
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

/** The SKUs that bulk calls have asked about so far, each as often as it was asked. */
export function askedSkus(stack: Stack): number {
  return stack.sandbox.requests.reduce((sum, { skus }) => sum + (skus?.length ?? 0), 0);
}
