import type { Sql } from '../connection/db.ts';
import type { HintRecord, ManifestSource } from '../live/hint-state.ts';
import { MANIFEST_SOURCES } from '../live/hint-state.ts';
import { hintRecordColumns, withHints } from '../sellers/hints.ts';

/*
 * Hints from lines of manifests: a live SKU whose line is newer than its last refresh, or has another number of sizes
 * than the mirror. They wait to be read, like those of sellers.
 */

/** How many live SKUs have moved according to their lines, by source; `live`: lines of live SKUs. */
export interface HintableLines {
  readonly hintable: Readonly<Record<ManifestSource, number>>;
  readonly live: number;
}

export interface ManifestHinting {
  /** Decides for how many of these SKUs there will be hints. */
  readonly most: (lines: HintableLines) => Readonly<Record<ManifestSource, number>>;
  /** Seed for choosing them; an integer. */
  readonly seed: number;
}

/**
 * What is known of each source of a manifest, and how many of its hints wait, including those that are not read yet.
 */
export type ManifestRecords = ReadonlyMap<string, HintRecord & { readonly waiting: number }>;

/** Returns null while another session holds the lock on hints. */
export async function readManifestSources(sql: Sql): Promise<ManifestRecords | null> {
  const rows = await withHints(sql, async (tx) => {
    return await tx<(HintRecord & { source: string; waiting: number })[]>`
      select n.source, ${hintRecordColumns(tx)},
        (select count(*) from catalog_internal.waiting_hints q where q.source = n.source)::int
          + (select count(*) from catalog_internal.hints h where h.source = n.source)::int as waiting
      from unnest(${[...MANIFEST_SOURCES]}::text[]) as n(source) left join catalog_internal.hint_sources s using (source)`;
  });
  return rows === null ? null : new Map(rows.map(({ source, ...record }) => [source, record]));
}

/** Counts all lines, including those out of scope: only the whole manifest shows whether a source says anything. */
const COUNT_HINTABLE = `
  select count(*) filter (where is_newer)::int as newer,
    count(*) filter (where may_be_resized and has_other_sizes)::int as resized
  from diff`;

/**
 * $1, $2 how many hints of either source, $3 a seed, $4 when the snapshot was built. Hints are dated by the change
 * that they report, so a refresh since then clears them. Prices are counted only for as many SKUs as needed to find
 * some whose number differs, starting with those whose line has just changed its number. SKUs out of scope are left
 * out, because nothing refreshes them.
 */
const INSERT_HINTS = `
  with inside as not materialized (
    select * from diff where not exists (
      select from catalog_internal.due d where d.sku = diff.sku and d.outside_due_at is not null)
  )
  insert into catalog_internal.hints (sku, source, hinted_at)
  select sku, source, least(at, clock_timestamp()) from (
    (select sku, 'manifest.updated_at' as source, updated_at as at from inside where is_newer
      order by hashtextextended(sku, $3::bigint) limit $1::int)
    union all
    (select sku, 'manifest.sizes', coalesce($4::timestamptz, updated_at, clock_timestamp()) from (
        select sku, sizes, updated_at from inside where may_be_resized
        order by has_other_sizes desc, hashtextextended(sku, $3::bigint) limit least(2 * $2::int, 5000)
      ) line where sizes <> (select count(*) from catalog.prices p where p.sku = line.sku)
      limit $2::int)
  ) hintable
  where not exists (select from catalog_internal.hints h where h.sku = hintable.sku and h.source = hintable.source)
  order by hashtextextended(sku, $3::bigint)
  limit (select greatest(0, 99999 - coalesce(max(id) - min(id), 0)) from catalog_internal.hints)`;

/** Writes hints by the lines of `diff` (baseline-sql.ts); none if another session holds the lock on hints. */
export async function hintByManifest(
  run: (text: string, values?: unknown[]) => Promise<{ readonly rows: unknown[] }>,
  { most, seed }: ManifestHinting,
  { live, generatedAt }: { readonly live: number; readonly generatedAt: Date | null },
): Promise<void> {
  const { rows: counted } = await run(COUNT_HINTABLE);
  const [{ newer, resized }] = counted as [{ newer: number; resized: number }];
  // If no line is newer, only lines with another number of sizes can show a resize.
  if (newer + resized === 0) return;
  const wanted = most({ hintable: { 'manifest.updated_at': newer, 'manifest.sizes': resized }, live });
  const [updated, sizes] = [wanted['manifest.updated_at'], wanted['manifest.sizes']];
  const { rows } = await run('select catalog_internal.hints_are_free() as free');
  if ((rows as [{ free: boolean }])[0].free) await run(INSERT_HINTS, [updated, sizes, seed, generatedAt]);
}
