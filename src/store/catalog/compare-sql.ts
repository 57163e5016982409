/*
 * The statements that compare a baseline with the mirror, in the order they run. One full join of the staged lines
 * with the mirror makes `differing`, without blocking any writer; baseline-sql.ts uses it.
 */

/**
 * The join and the sorts are as large as the catalog: with the server's own 4 MB they would go through many small
 * files, and compiling them would take longer than it saves. Times are parsed during COPY, while the next lines are
 * read here.
 */
export const CREATE_STAGING = `
  select set_config('work_mem', '64MB', false), set_config('jit', 'off', false);
  create temporary table staging (sku text collate "C" not null, sizes integer, hash text, price_source text, updated_at timestamptz);
  create temporary table rejected_skus (sku text collate "C" not null);
  create temporary table duplicates (sku text collate "C" not null)`;

export const COPY_STAGING = 'copy staging (sku, sizes, hash, price_source, updated_at) from stdin';

/** COMPARE and COUNT_COMPARED see the mirror as of one moment, so that their counts add up. */
export const BEGIN_COMPARE = 'begin isolation level repeatable read';

/**
 * SKUs that differ at this moment, and SKUs with two lines. No others can differ at the merge: until then only deltas
 * change what is compared here, and a delta's report takes precedence.
 */
export const COMPARE = `
  create temporary table differing as
  select sku, s.sku is null as is_absent, coalesce(m.in_manifest, false) as was_listed,
    s.sizes, s.hash, s.price_source, s.updated_at
  from staging s
  full join catalog.skus m using (sku)
  where (s.sku is null and m.in_manifest)
    or (s.sku is not null and (
      m.in_manifest is not true or s.hash is distinct from m.hash or s.price_source is distinct from m.price_source
      or s.sizes is distinct from m.sizes or s.updated_at is distinct from m.updated_at
      or sku in (select sku from duplicates)))`;

/**
 * Lines of SKUs that the mirror does not count as listed are counted by SKU. The number of other lines equals that of
 * the listed SKUs that are not absent, unless some SKUs have two lines.
 */
export const COUNT_COMPARED = `
  select (select count(*) from catalog.skus where in_manifest)::int as "listedBefore",
    (select count(*) from differing where is_absent)::int as absent,
    coalesce(sum(lines), 0)::int as "unlistedLines", count(*)::int as unlisted
  from (select count(*) as lines from differing where not is_absent and not was_listed group by sku) s`;

export const NOTE_DUPLICATES = `
  insert into duplicates select sku from staging group by sku having count(*) > 1`;

/**
 * Keeps one line of a SKU with several, and the SKU is marked due. A live line is preferred: the SKU is then asked as
 * often as if nobody reported its moves.
 */
export const DROP_DUPLICATES = `
  delete from staging s using (
    select ctid, row_number() over (partition by sku order by price_source = 'live' desc, ctid) as nth
    from staging where sku in (select sku from duplicates)
  ) d
  where s.ctid = d.ctid and d.nth > 1`;

/** A manifest line as it is staged (partner rules 2.6). */
export interface StagedLine {
  readonly sku: string;
  readonly sizes: number | null;
  readonly hash: string | null;
  readonly priceSource: 'snapshot' | 'live';
  readonly updatedAt: string | null;
}

/** Returns a line in COPY's text format. Times must be as toISOString writes them. */
export function copyText({ sku, sizes, hash, priceSource, updatedAt }: StagedLine): string {
  return `${copyField(sku)}\t${sizes ?? '\\N'}\t${copyField(hash)}\t${priceSource}\t${updatedAt ?? '\\N'}\n`;
}

const COPY_ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
};
const TO_ESCAPE = /[\\\t\n\r]/;
const EACH_TO_ESCAPE = /[\\\t\n\r]/g;

function copyField(value: string | null): string {
  if (value === null) return '\\N';
  // Tested first: characters to escape are rare, and replacing none costs more than the rest of the line.
  return TO_ESCAPE.test(value) ? value.replaceAll(EACH_TO_ESCAPE, (c) => COPY_ESCAPES[c] ?? c) : value;
}
