import type { Queryable, Sql } from './connection/db.ts';

/** A record of the partner's that could not be used; `sample` is at most a few hundred characters. */
export interface Quarantined {
  readonly reason: string;
  readonly sku: string | null;
  readonly sample: string | null;
}

/** Stores samples of unusable records of a `source` ('manifest', 'bulk', 'store'). */
export async function quarantine(
  sql: Queryable,
  source: string,
  records: readonly Quarantined[],
): Promise<void> {
  if (records.length === 0) return;
  await sql`
    insert into catalog_internal.quarantine (source, reason, sku, sample)
    select ${source}, reason, sku, sample
    from unnest(${records.map((r) => r.reason)}::text[], ${records.map((r) => r.sku)}::text[],
      ${records.map((r) => r.sample)}::text[]) as r(reason, sku, sample)`;
}

/** The reason for a SKU whose rows Postgres rejects because a privilege is missing. */
export const NO_PRIVILEGE = 'no-privilege';

/** SKUs set aside because Postgres rejects their rows: how many, and the latest one. */
export interface NotStored {
  readonly skus: number;
  readonly last: string | null;
  readonly sample: string | null;
  /** Whether the latest one is rejected because a privilege is missing. */
  readonly lacksPrivilege?: boolean;
}

/** Counts the SKUs that wait because Postgres rejects their rows. */
export async function readNotStored(sql: Queryable): Promise<NotStored> {
  const [row] = await sql<[NotStored]>`
    select count(distinct q.sku)::int as skus, (array_agg(q.sku order by q.id desc))[1] as last,
      (array_agg(q.sample order by q.id desc))[1] as sample,
      coalesce((array_agg(q.reason order by q.id desc))[1] = ${NO_PRIVILEGE}, false) as "lacksPrivilege"
    from catalog_internal.quarantine q join catalog_internal.due d on d.sku = q.sku
    where q.source = 'store' and d.failures > 0 and d.largest_call = 1 and d.outside_due_at is null`;
  return row;
}

/** Deletes all samples but the newest `keep`. */
export async function pruneQuarantine(sql: Sql, { keep }: { readonly keep: number }): Promise<void> {
  await sql`
    delete from catalog_internal.quarantine
    where id <= (select id from catalog_internal.quarantine order by id desc offset ${keep} limit 1)`;
}
