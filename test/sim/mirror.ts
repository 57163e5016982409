import type { Sql } from '../../src/store/connection/db.ts';

/** A SKU in the mirror. `held` is by Postgres's clock, in epoch milliseconds. */
export interface Row {
  readonly sku: string;
  readonly state: string;
  readonly listed: boolean;
  readonly source: string | null;
  /** The claim whose answer it holds. */
  readonly asked: string | null;
  readonly owed: boolean | null;
  readonly deferrals: number;
  readonly claim: string | null;
  readonly held: number | null;
  /** Whether a seller has requested a refresh that the daemon does not know of yet. */
  readonly requested: boolean;
  readonly prices: Record<string, number | null> | null;
}

/** The mirror at a moment, by the world's clock. */
export interface Mirror {
  readonly at: number;
  readonly token: string | null;
  /** Same as `checkedAt` of Trusted, by Postgres's clock. */
  readonly checkedAt: number;
  readonly rows: ReadonlyMap<string, Row>;
}

/** A SKU whose prices are actionable by the mirror's own word. `target` is their maximum age in milliseconds. */
export interface Actionable {
  readonly sku: string;
  readonly covered: boolean;
  readonly target: number;
  readonly prices: Record<string, number | null>;
}

/** What the mirror says about prices and their source. It relies on `route`, last at `checkedAt`. */
export interface Trusted {
  readonly at: number;
  readonly checkedAt: number;
  readonly route: 'delta' | 'manifest';
  readonly rows: readonly Actionable[];
}

/**
 * Reads the actionable SKUs. `covered` are those whose moves the delta reports. Until the first delta, a manifest
 * counts as one.
 */
export async function readActionable(sql: Sql): Promise<Trusted> {
  const [row] = await sql<[Omit<Trusted, 'at' | 'rows'> & { at: string; rows: Actionable[] | null }]>`
    select nextval('sim.clock') as at, (
      select json_agg(json_build_object('sku', t.sku, 'covered', t.in_manifest and t.price_source = 'snapshot',
        -- A live price is judged by its probability, while it is no older than the plan has it wait.
        'target', extract(epoch from case when t.price_source = 'live'
          then greatest(t.target_age, (select longest_wait from catalog_internal.price_beliefs())) else t.target_age end) * 1000,
        'prices', (select coalesce(json_object_agg(size, price), '{}') from catalog.prices p where p.sku = t.sku)))
      from catalog.sku_trust t where t.actionable) as rows,
      extract(epoch from coalesce(delta_checked_at, manifest_applied_at))::float8 * 1000 as "checkedAt",
      case when delta_checked_at is null then 'manifest' else 'delta' end as route
    from catalog_internal.sync`;
  return { ...row, at: Number(row.at), rows: row.rows ?? [] };
}

/** Reads all that the invariants need in one statement, which takes a millisecond. */
export async function readMirror(sql: Sql): Promise<Mirror> {
  const [row] = await sql<[{ at: string; token: string | null; checkedAt: number; rows: Row[] | null }]>`
    select nextval('sim.clock') as at, regexp_replace(snapshot_id, '~[0-9]+$', '') as token,
      extract(epoch from coalesce(delta_checked_at, manifest_applied_at))::float8 * 1000 as "checkedAt", (
      select json_agg(json_build_object('sku', k.sku, 'state', k.state, 'listed', k.in_manifest, 'source', k.price_source,
        'asked', d.asked_claim::text,
        -- What was marked is due, also where a clock that was ahead has dated its mark. What is out of scope is as good as.
        'owed', d.due_at <= now() or d.lane in (1, 3, 4) or d.outside_due_at is not null, 'deferrals', d.deferrals,
        'claim', d.claim::text, 'held', round(extract(epoch from d.held_until) * 1000),
        'requested', exists (select from catalog_internal.refresh_requests r where r.sku = k.sku),
        'prices', (select json_object_agg(size, price) from catalog.prices p where p.sku = k.sku)))
      from catalog.skus k left join catalog_internal.due d using (sku)) as rows
    from catalog_internal.sync`;
  return {
    at: Number(row.at),
    token: row.token,
    checkedAt: row.checkedAt,
    rows: new Map((row.rows ?? []).map((one) => [one.sku, one])),
  };
}

/**
 * Reads what is still due for a mirror that should reach the snapshot `newest`, and in how many milliseconds the
 * next wait ends.
 */
export async function readDue(sql: Sql, newest: string | null) {
  const [owed] = await sql<
    [{ behind: boolean; broken: boolean; due: number; free: number; next: string | null }]
  >`
    select named is distinct from ${newest} as behind, chain_broken_at is not null or snapshot_id is null as broken,
      due.due, due.free,
      ceil(extract(epoch from (select min(at) from (
        select greatest(next_at, running_until) as at from catalog_internal.tasks
          where task = 'reprice' or named is distinct from ${newest}
            and task = case when chain_broken_at is null and snapshot_id is not null then 'delta' else 'manifest' end
        union all select held_until from catalog_internal.due where due_at <= now()
        union all select backoff_until from catalog_internal.pace
      ) waits where at > now()) - now()) * 1000) as next
    from catalog_internal.sync, regexp_replace(snapshot_id, '~[0-9]+$', '') as named, lateral (
      select count(*)::int as due,
        count(*) filter (where held_until is null or held_until <= now())::int as free
      from catalog_internal.due where due_at <= now()
    ) due`;
  return owed;
}
