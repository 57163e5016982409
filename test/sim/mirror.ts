import type { Sql } from '../../src/store/db.ts';

/** A SKU as the mirror has it; times are epoch milliseconds. */
export interface Row {
  readonly sku: string;
  readonly state: string;
  readonly listed: boolean;
  readonly source: string | null;
  readonly asked: number | null;
  readonly owed: boolean | null;
  readonly deferrals: number;
  readonly claim: string | null;
  readonly held: number | null;
  readonly prices: Record<string, number | null> | null;
}

/** The mirror at a moment. */
export interface Mirror {
  readonly at: number;
  readonly token: string | null;
  readonly rows: ReadonlyMap<string, Row>;
}

/** All that the invariants need, in one statement; a millisecond goes by. */
export async function readMirror(sql: Sql): Promise<Mirror> {
  const [row] = await sql<[{ at: string; token: string | null; rows: Row[] | null }]>`
    select nextval('sim.clock') as at, snapshot_id as token, (
      select json_agg(json_build_object('sku', k.sku, 'state', k.state, 'listed', k.in_manifest, 'source', k.price_source,
        'asked', round(extract(epoch from k.asked_at) * 1000), 'owed', d.due_at <= sim.now(), 'deferrals', d.deferrals,
        'claim', d.claim::text, 'held', round(extract(epoch from d.held_until) * 1000),
        'prices', (select json_object_agg(size, price) from catalog.prices p where p.sku = k.sku)))
      from catalog.skus k left join catalog_internal.due d using (sku)) as rows
    from catalog_internal.sync`;
  return {
    at: Number(row.at),
    token: row.token,
    rows: new Map((row.rows ?? []).map((one) => [one.sku, one])),
  };
}

/** What is still due to a mirror that is to have the snapshot `newest`, and in how many milliseconds the next wait is over. */
export async function readDue(sql: Sql, newest: string | null) {
  const [owed] = await sql<
    [{ behind: boolean; broken: boolean; due: number; free: number; next: string | null }]
  >`
    select snapshot_id is distinct from ${newest} as behind, chain_broken_at is not null or snapshot_id is null as broken,
      due.due, due.free,
      ceil(extract(epoch from (select min(at) from (
        select greatest(next_at, running_until) as at from catalog_internal.tasks
          where task = 'reprice' or snapshot_id is distinct from ${newest}
            and task = case when chain_broken_at is null and snapshot_id is not null then 'delta' else 'manifest' end
        union all select held_until from catalog_internal.due where due_at <= sim.now()
        union all select backoff_until from catalog_internal.pace
      ) waits where at > sim.now()) - sim.now()) * 1000) as next
    from catalog_internal.sync, lateral (
      select count(*)::int as due,
        count(*) filter (where held_until is null or held_until <= sim.now())::int as free
      from catalog_internal.due where due_at <= sim.now()
    ) due`;
  return owed;
}
