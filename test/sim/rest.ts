import { requestTask } from '../../src/store/ledger/tasks.ts';
import { refreshManifest } from '../../src/store/sellers/refresh.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { runJob } from './jobs.ts';
import { readDue } from './mirror.ts';
import type { Rig } from './rig.ts';
import type { Worker } from './worker.ts';

export interface Working {
  readonly worker: Worker;
  readonly ctx: SyncContext;
}

/** The one remaining daemon: its worker for the catalog, and its worker for prices. */
export interface Left {
  readonly catalog: Working;
  readonly prices: Working;
}

/**
 * Lets the remaining daemon work until nothing is due and the newest snapshot is reached, with its requests
 * answered at once and truly.
 *
 * @throws Error if that state is not reached, and whatever the daemon's jobs throw
 */
export async function untilNothingIsDue(rig: Rig, left: Left): Promise<void> {
  const owedNow = () => readDue(rig.sql, rig.partner.world.newestSnapshot());
  let fetched = false;
  for (let round = 0; round < 120; round += 1) {
    const owed = await owedNow();
    if (owed.due === 0 && !owed.behind) return;
    if (owed.behind && !fetched) {
      fetched = true;
      await serve(rig, left, owed.broken ? 'manifest' : 'delta');
      if (owed.broken) await acceptShrink(rig);
      continue;
    }
    if (!owed.behind && owed.free > 0 && (await serve(rig, left, 'reprice'))) continue;
    fetched = false;
    // A learned ceiling on live refreshes gives no time, so ask again later.
    await rig.time.pass(Math.max(1, Number(owed.next ?? 20_000)));
  }
  const due = await rig.sql`select * from catalog_internal.due where due_at <= now()`;
  throw new Error(
    `it does not come to rest: ${JSON.stringify([await owedNow(), ...due], (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))}`,
  );
}

/** Confirms the shrinking as operator if a manifest is refused because so few of a small market are left. */
async function acceptShrink({ sql, partner }: Rig): Promise<void> {
  const [{ refused, listed }] = await sql<[{ refused: string | null; listed: number }]>`
    select manifest_refused as refused, (select count(*)::int from catalog.skus where in_manifest) as listed
    from catalog_internal.sync`;
  if (refused !== 'shrunk') return;
  const left = [...partner.world.truth().values()].filter((row) => row.listed).length;
  if (left * 2 >= listed) throw new Error(`${left} of ${listed} SKUs are left, and the manifest is refused`);
  await refreshManifest(sql, true);
}

/** Lets the remaining daemon read the newest manifest, whether or not it needs it. */
export async function readManifest(rig: Rig, left: Left): Promise<void> {
  await requestTask(rig.sql, 'manifest');
  await serve(rig, left, 'manifest');
}

/** Runs a job to its end. Returns whether it made a call. */
export async function serve(rig: Rig, left: Left, job: 'delta' | 'manifest' | 'reprice'): Promise<boolean> {
  const { worker, ctx } = job === 'reprice' ? left.prices : left.catalog;
  let called = false;
  let thrown: unknown;
  await worker.start(async () => {
    called = await runJob(ctx, job).catch((error: unknown) => {
      thrown = error;
      return false;
    });
  });
  while (worker.busy) {
    const [pending] = rig.partner.pending;
    if (pending === undefined) throw new Error('a daemon that waits for nothing');
    await pending.deliver(pending.compute());
  }
  if (thrown !== undefined) throw thrown;
  return called;
}
