import { systemClock } from '../../src/lib/clock.ts';
import { pruneSends, withPace } from '../../src/pace/ledger.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { type AnswerLearning, NO_LEARNING } from '../../src/store/answer/types.ts';
import { type CallInputOptions, readCallInputs } from '../../src/store/call/bulk-call.ts';
import { storeLesson } from '../../src/store/call/call-lesson.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import type { Quota } from '../../src/store/ledger/due.ts';
import { foundRecords, type FoundRecord, NEXT } from '../apply/answer.ts';
import { loadRecords } from '../frame/records.ts';
import { seeded } from '../freshness/random.ts';
import { loadMirror } from '../scrape/load.ts';

/*
 * Bulk calls as a daemon makes them, statement by statement, without a partner. Some are measured; between them many
 * are made at once, by the same statements with more SKUs in each: they leave the same versions of the same rows, in
 * less time.
 */

const MANY = 50;
const AT_ONCE = 20_000;
const SKUS_A_CALL = 100;
const SIZES = 8;
/** Of a call's SKUs. */
const LANES: readonly { readonly lane: Quota['lane']; readonly live: boolean; readonly part: number }[] = [
  { lane: 'urgent', live: false, part: 0.05 },
  { lane: 'live', live: true, part: 0.05 },
  { lane: 'sweep', live: false, part: 0.9 },
];
const WINDOW_MS = 60_000;
/** Of many calls, so that their leases are over when a call is measured, as those of an hour are. */
const LEASE_MS = 1000;
export const OVER_MS = 7000;
const NOT_EARLY = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };
const INPUTS: CallInputOptions = {
  limit: SKUS_A_CALL,
  early: { usual: NOT_EARLY, stale: NOT_EARLY },
  candidates: { perBudget: 12, configuredBudget: 5, least: 16, most: 300, restMinutes: 0 },
};
const SPEND = { skuMs: 1, mostMs: 60_000 };
const WORKED = { failures: 0, callSize: null, cleared: null };
const LESSON = {
  call: { computed: 5, deferred: 0, snapshotAsked: 95, snapshotDeferred: 0 },
  budget: null,
  ceiling: null,
  ceilingStep: 0,
  trial: false,
  incident: null,
};

/**
 * A catalog that is refreshed as fast as may be, and never done: whatever was refreshed is due again, behind all
 * others.
 */
export async function loadBacklog(sql: Sql, skus: number): Promise<void> {
  await loadMirror(sql, skus);
  await loadRecords(sql, SIZES);
  await sql`
    update catalog_internal.due set held_until = null, deferrals = 0, due_at = now() - make_interval(secs => (substr(sku, 5)::bigint * 7919) % 86400)
    where sku in (select sku from catalog.skus where state = 'priced')`;
  await sql.unsafe('vacuum full analyze catalog_internal.due');
}

/** The partner's records of all SKUs: what the mirror has of them. */
export async function recordsOf(sql: Sql): Promise<readonly FoundRecord[]> {
  const skus = await sql<{ sku: string }[]>`select sku from catalog.skus where state = 'priced'`;
  const names = skus.map(({ sku }) => sku);
  const records: FoundRecord[] = [];
  for (let at = 0; at < names.length; at += AT_ONCE)
    records.push(...(await foundRecords(sql, names.slice(at, at + AT_ONCE), 0, Math.random)).records);
  return records;
}

export class Calls {
  readonly #sql: Sql;
  readonly #random = seeded(1);
  readonly #floors = new DueFloors(systemClock);
  readonly #records: Map<string, FoundRecord>;
  readonly #skus: readonly string[];
  made = 0;

  constructor(sql: Sql, records: readonly FoundRecord[]) {
    this.#sql = sql;
    this.#records = new Map(records.map((record) => [record.sku, record]));
    this.#skus = records.map(({ sku }) => sku);
  }

  /** One call, as a daemon makes it. */
  async one(): Promise<void> {
    const sql = this.#sql;
    await this.#report(1);
    await readCallInputs(sql, INPUTS, this.#floors);
    await this.#permit();
    await this.#refresh();
    await storeLesson(sql, LESSON, WORKED);
    this.made += 1;
  }

  /** A reading of the ledger from its beginning. */
  async fullPass(): Promise<void> {
    await readCallInputs(this.#sql, INPUTS, new DueFloors(systemClock));
  }

  /** What many calls leave, row by row the same versions. */
  async many(): Promise<void> {
    const sql = this.#sql;
    const calls = MANY;
    await this.#report(calls);
    await readCallInputs(sql, INPUTS, this.#floors);
    const claim = await claimDue(sql, { quotas: quotasOf(calls) }, LEASE_MS, null, this.#floors.floors);
    const skus = claim?.skus.map(({ sku }) => sku) ?? [];
    await sql`update catalog.skus set priced_at = now(), asked_at = now() where sku = any(${skus})`;
    await sql`update catalog.products set refreshed_at = now() where sku = any(${skus})`;
    await sql`
      update catalog_internal.due set claim = null, asked_claim = claim, held_until = null, due_at = now(),
        lane = case when live then 2 else 6 end, reason = case when live then 'live' else 'sweep' end
      where sku = any(${skus})`;
    // Each of its own: what one transaction updates twice is gone with its end.
    await sql.unsafe(`
      do $$ begin
        for i in 1..${calls} loop
          insert into catalog_internal.pace_sends (sent_at, lane) values (clock_timestamp(), 'reprice');
          insert into catalog_internal.live_calls (called_at, computed, deferred) values (clock_timestamp(), 5, 0);
          update catalog_internal.live_ceiling set credit_from = clock_timestamp();
          commit;
          -- Of an hour with 12,000 calls: every five seconds, and what tasks there are.
          if i % 17 = 0 then
            update catalog_internal.clock set high_water = clock_timestamp();
            update catalog_internal.tasks set started_at = clock_timestamp() where task in ('reprice', 'maintenance');
            commit;
          end if;
        end loop;
      end $$`);
    await pruneSends(sql, { olderThanMs: 1000 });
    await sql`delete from catalog_internal.live_calls where called_at < now() - interval '1 second'`;
    this.made += calls;
  }

  async #permit(): Promise<void> {
    await withPace(this.#sql, 1000, () => ({ send: 'reprice', result: null }));
  }

  /** A delta reports some SKUs. */
  async #report(calls: number): Promise<void> {
    const skus = new Set(
      Array.from(
        { length: calls * 5 },
        () => this.#skus[Math.floor(this.#random() * this.#skus.length)] ?? '',
      ),
    );
    await this.#sql`select catalog_internal.mark_due(${[...skus]}::text[], 'changed')`;
  }

  async #refresh(): Promise<void> {
    const sql = this.#sql;
    const claim = await claimDue(sql, { quotas: quotasOf(1) }, WINDOW_MS, SPEND, this.#floors.floors);
    if (claim === null) throw new Error('nothing was due');
    const records = claim.skus.flatMap(({ sku }) => this.#records.get(sku) ?? []);
    await applyAnswer(
      sql,
      claim,
      records,
      { ...NEXT, snapshotMs: 1, liveMs: 1 },
      {
        learning: { ...NO_LEARNING, live: learnt },
      },
    );
  }
}

const quotasOf = (calls: number): Quota[] =>
  LANES.map(({ lane, live, part }) => ({
    lane,
    live,
    count: Math.round(calls * SKUS_A_CALL * part),
    earlySeconds: 0,
  }));

const learnt: AnswerLearning['live'] = ({ sku, alpha, beta }) => ({
  sku,
  alpha: alpha ?? 1,
  beta: beta ?? 720,
  sizesSeen: 0,
  sizesMoved: 0,
  nextMs: 1,
});
